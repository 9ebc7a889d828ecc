import type { FuzzRequest } from '../request.ts'
import type { Choices } from './choices.ts'
import { otherHeaders } from './headers.ts'
import { encodeBody } from './json-text.ts'
import { mutatePath } from './paths.ts'
import { encodeText, mutateQuery } from './queries.ts'
import { createMalformed } from './raw.ts'

/** A request before its mutation: one that the service understands. */
export interface SeedRequest {
  /** The operation's id. */
  readonly row: string
  readonly method: string
  readonly path: string
  readonly query?: readonly (readonly [name: string, value: string])[]
  readonly headers?: readonly string[]
  /** A JSON value; absent: no body. */
  readonly body?: unknown
}

/** The part of a request that is mutated. */
export type Mutation = 'none' | 'values' | 'bodies' | 'queries' | 'headers' | 'paths' | 'methods' | 'framing' | 'raw'

const shares: readonly (readonly [Mutation, number])[] = [
  ['none', 50],
  ['values', 13],
  ['bodies', 6],
  ['queries', 6],
  ['headers', 9],
  ['paths', 7],
  ['methods', 3],
  ['framing', 3],
  ['raw', 3],
]
const weighted = shares.flatMap(([mutation, share]) => Array<Mutation>(share).fill(mutation))

export const pickMutation = (choices: Choices): Mutation => choices.pick(weighted)

const oddMethods = [
  'HEAD',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PATCH',
  'PUT',
  'POST',
  'DELETE',
  'PROPFIND',
  'M-SEARCH',
  'QUERY',
  'PURGE',
  'FOO',
  'get',
]

const queryText = (query: SeedRequest['query'] = []): string =>
  query.length === 0 ? '' : `?${query.map(([name, value]) => `${name}=${encodeText(value)}`).join('&')}`

export const mutate = (seed: SeedRequest, mutation: Mutation, choices: Choices): FuzzRequest => {
  const { row, method, path, query, headers = [], body } = seed
  const plain =
    body === undefined
      ? undefined
      : encodeBody(body, mutation === 'values' ? 'value' : mutation === 'bodies' ? 'text' : 'none', choices)
  const target = path + queryText(query)
  const request: FuzzRequest = { row, method, target, headers, ...(plain ? { body: plain } : {}) }
  switch (mutation) {
    case 'none':
      return request
    case 'values':
    case 'bodies': {
      // An operation without a body receives one that it does not expect.
      const sent =
        plain ?? encodeBody({ subdomain: 'acme', holder: 'fuzz' }, mutation === 'values' ? 'value' : 'text', choices)
      return { ...request, row: body === undefined ? 'bodies' : row, body: sent }
    }
    case 'queries': {
      const [name, value] = query && query.length > 0 ? choices.pick(query) : (['sub', 'acme'] as const)
      return { ...request, row: 'queries', target: `${path}?${mutateQuery(name, value, choices)}` }
    }
    case 'headers':
      return { ...request, row: 'headers', headers: [...headers, ...otherHeaders(choices)] }
    case 'paths':
      return { ...request, row: 'paths', target: mutatePath(path, choices) + queryText(query) }
    case 'methods':
      return { ...request, row: 'methods', method: choices.pick(oddMethods) }
    case 'framing':
      return {
        ...request,
        row: 'framing',
        chunked: true,
        body: plain ?? Buffer.from(choices.pick(['', '{}', 'x'.repeat(70_000)])),
      }
    case 'raw': {
      const valid = { method, target, headers, body: plain?.toString('latin1') ?? '' }
      return { ...request, row: 'raw', raw: createMalformed(valid, choices) }
    }
  }
}

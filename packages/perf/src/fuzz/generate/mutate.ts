import type { FuzzRequest } from '../wire/request.ts'
import { otherHeaders } from './headers.ts'
import { bodyBytes } from './json-text.ts'
import { bentPath } from './paths.ts'
import { bentQuery, encoded } from './queries.ts'
import type { Random } from './random.ts'
import { brokenBytes } from './raw.ts'

/** A request before it is bent: one that the service can make sense of. */
export interface Base {
  /** The operation's id. */
  readonly row: string
  readonly method: string
  readonly path: string
  readonly query?: readonly (readonly [name: string, value: string])[]
  readonly headers?: readonly string[]
  /** A value of JSON; absent: no body. */
  readonly body?: unknown
}

/** What of a request is bent; `none`: nothing. */
export type Grammar = 'none' | 'values' | 'bodies' | 'queries' | 'headers' | 'paths' | 'methods' | 'framing' | 'raw'

const shares: readonly (readonly [Grammar, number])[] = [
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
const wheel = shares.flatMap(([grammar, share]) => Array<Grammar>(share).fill(grammar))

export const grammarOf = (random: Random): Grammar => random.pick(wheel)

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

const queryText = (query: Base['query'] = []): string =>
  query.length === 0 ? '' : `?${query.map(([name, value]) => `${name}=${encoded(value)}`).join('&')}`

/** The request that a base becomes when one grammar has been at it. */
export const bent = (base: Base, grammar: Grammar, random: Random): FuzzRequest => {
  const { row, method, path, query, headers = [], body } = base
  const plain =
    body === undefined
      ? undefined
      : bodyBytes(body, grammar === 'values' ? 'value' : grammar === 'bodies' ? 'text' : 'none', random)
  const target = path + queryText(query)
  const request: FuzzRequest = { row, method, target, headers, ...(plain ? { body: plain } : {}) }
  switch (grammar) {
    case 'none':
      return request
    case 'values':
    case 'bodies': {
      // Of a call without a body: one that nobody asked for.
      const sent =
        plain ?? bodyBytes({ subdomain: 'acme', holder: 'fuzz' }, grammar === 'values' ? 'value' : 'text', random)
      return { ...request, row: body === undefined ? 'bodies' : row, body: sent }
    }
    case 'queries': {
      const [name, value] = query && query.length > 0 ? random.pick(query) : (['sub', 'acme'] as const)
      return { ...request, row: 'queries', target: `${path}?${bentQuery(name, value, random)}` }
    }
    case 'headers':
      return { ...request, row: 'headers', headers: [...headers, ...otherHeaders(random)] }
    case 'paths':
      return { ...request, row: 'paths', target: bentPath(path, random) + queryText(query) }
    case 'methods':
      return { ...request, row: 'methods', method: random.pick(oddMethods) }
    case 'framing':
      return {
        ...request,
        row: 'framing',
        framing: 'chunked',
        body: plain ?? Buffer.from(random.pick(['', '{}', 'x'.repeat(70_000)])),
      }
    case 'raw': {
      const whole = { method, target, headers, body: plain?.toString('latin1') ?? '' }
      return { ...request, row: 'raw', raw: brokenBytes(whole, random) }
    }
  }
}

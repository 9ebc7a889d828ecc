import {
  type deploymentProblem,
  type ErrorCode,
  type Operation,
  operations,
  problem,
  toErrorStatus,
} from '@pool/contract'
import { expect } from 'vitest'
import type * as z from 'zod'
import { expectEvents } from './events.ts'

/** The parts of a response that the contract describes. */
export interface ObservedResponse {
  readonly status: number
  readonly headers: Headers | ReadonlyMap<string, string>
  readonly text: string
}

const toPathPattern = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`)

const operationPatterns = Object.values<Operation>(operations).map(operation => ({
  operation,
  pattern: toPathPattern(operation.path),
}))

/** The operation of a request, or null. HEAD counts as GET. A path without parameters is not one with parameters. */
export const findOperation = (method: string, path: string): Operation | null => {
  const [pathname = ''] = path.split('?')
  const wantedMethod = method === 'HEAD' ? 'get' : method.toLowerCase()
  const own = operationPatterns.filter(({ operation }) => operation.path === pathname)
  const matching = own.length > 0 ? own : operationPatterns.filter(({ pattern }) => pattern.test(pathname))
  return matching.find(({ operation }) => operation.method === wantedMethod)?.operation ?? null
}

/** Fails unless the body is an error with exactly the documented fields and the status of its code. Returns the code. */
export const expectProblem = (
  { status, headers, text }: ObservedResponse,
  shape: typeof problem = problem,
  path = '/',
): ErrorCode => {
  expect(headers.get('content-type')).toBe('application/json')
  const body: unknown = JSON.parse(text)
  const read: z.infer<typeof deploymentProblem> = shape.parse(body)
  expect(read, 'an error body has only the fields of the contract').toEqual(body)
  expect(read.requestId !== undefined).toBe(read.error === 'internal-error')
  const hasFaults = read.error === 'invalid-deployment'
  expect([read.field !== undefined, read.faults !== undefined]).toEqual([hasFaults, hasFaults])
  if (hasFaults) expect(read.faults?.[0]).toEqual({ field: read.field, detail: read.detail })
  expect(read.detail ?? 'A sentence.', 'detail is one sentence').toMatch(/^[A-Z"a-z_*].*[.>]$/s)
  expect(status).toBe(toErrorStatus(read.error, path.split('?')[0] ?? ''))
  return read.error
}

/** Fails unless the contract documents the response for this operation: status, media type and exactly these fields. */
export const expectContract = (method: string, path: string, response: ObservedResponse): void => {
  const { status, headers, text } = response
  expect(headers.get('x-request-id'), 'every response has a request id').toMatch(/^[A-Za-z0-9._:/+=@-]{1,128}$/)
  if (method === 'HEAD') {
    expect(text).toBe('')
    return
  }
  const operation = findOperation(method, path)
  const documented = operation?.responses[status]
  if (!documented) {
    // Documented once for all operations: unknown path or method, missing token, page of another origin, internal error.
    const code = expectProblem(response, problem, path)
    expect(
      operation
        ? ['not-found', 'unauthorized', 'forbidden', 'internal-error']
        : ['not-found', 'method-not-allowed', 'unauthorized', 'forbidden'],
    ).toContain(code)
    return
  }
  if (documented.codes) {
    const code = expectProblem(response, documented.schema as typeof problem, path)
    expect(documented.codes, `${operation?.id} does not document ${code}`).toContain(code)
    return
  }
  if (!documented.schema) {
    expect(text, 'a response without a body').toBe('')
    return
  }
  const mediaType = documented.mediaType ?? 'application/json'
  if (mediaType === 'text/event-stream') {
    expect(headers.get('content-type')).toBe(mediaType)
    expectEvents(text)
    return
  }
  if (mediaType === 'application/x-ndjson' || !mediaType.includes('json')) {
    expect(text).not.toBe('')
    return
  }
  expect(headers.get('content-type')?.slice(0, mediaType.length)).toBe(mediaType)
  const body: unknown = JSON.parse(text)
  expect(documented.schema.parse(body), 'only the fields of the contract').toEqual(body)
}

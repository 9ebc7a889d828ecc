import {
  deploymentProblem,
  type ErrorCode,
  type Operation,
  operations,
  problem,
  validationProblem,
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

/** The status of each error code. Repeated here, so that a change of the wire fails a test. */
export const statusByErrorCode: Readonly<Record<ErrorCode, number>> = {
  'invalid-json': 400,
  'invalid-idempotency-key': 400,
  'invalid-deployment': 400,
  'missing-region': 400,
  'invalid-region': 400,
  'invalid-access-key': 400,
  'invalid-secret-key': 400,
  'invalid-token': 400,
  'unsupported-provider': 400,
  unauthorized: 401,
  forbidden: 403,
  'token-mismatch': 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'cooling-off': 409,
  'subdomain-conflict': 409,
  'bucket-conflict': 409,
  'fqdn-conflict': 409,
  'fqdn-remains': 409,
  'domain-not-proven': 409,
  'in-progress': 409,
  'destroy-incomplete': 409,
  'still-up': 409,
  'plan-failed': 409,
  'lock-not-recorded': 409,
  'already-active': 409,
  'dns-writes-off': 409,
  'not-stopped': 409,
  'not-active': 409,
  'reservation-expired': 410,
  'not-empty': 409,
  'lease-changed': 409,
  'body-too-large': 413,
  'invalid-format': 422,
  'invalid-state': 422,
  'invalid-limit': 422,
  'invalid-cursor': 422,
  'invalid-fqdn': 422,
  'missing-token': 422,
  'missing-lb-ip': 422,
  'invalid-lb-ip': 422,
  'unsupported-pool': 422,
  'pool-draining': 422,
  reserved: 422,
  'idempotency-key-reused': 422,
  'too-many-attempts': 429,
  'internal-error': 500,
  'database-unavailable': 503,
  'database-read-only': 503,
  'dns-unavailable': 503,
  'provisioning-unavailable': 503,
  'object-storage-unavailable': 503,
  'provider-unavailable': 503,
  'too-many-readers': 503,
  'witness-unavailable': 503,
  'invalid-import': 422,
}

const toPathPattern = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, '[^/]+')}$`)

const operationPatterns = operations.map(operation => ({ operation, pattern: toPathPattern(operation.path) }))

/** The operation of a request, or null. HEAD counts as GET. */
export const findOperation = (method: string, path: string): Operation | null => {
  const [pathname = ''] = path.split('?')
  const wantedMethod = method === 'HEAD' ? 'get' : method.toLowerCase()
  return (
    operationPatterns.find(({ operation, pattern }) => operation.method === wantedMethod && pattern.test(pathname))
      ?.operation ?? null
  )
}

/** Whether the schema is one of the error bodies. */
export const isProblem = (schema: z.ZodType | undefined): schema is typeof problem =>
  schema === problem || schema === deploymentProblem || schema === validationProblem

/** Fails unless the body is an error with exactly the documented fields and the status of its code. Returns the code. */
export const expectProblem = (
  { status, headers, text }: ObservedResponse,
  shape: typeof problem = problem,
): ErrorCode => {
  expect(headers.get('content-type')).toBe('application/json')
  const body: unknown = JSON.parse(text)
  const read: z.infer<typeof deploymentProblem> = shape.parse(body)
  expect(read, 'an error body has only the fields of the contract').toEqual(body)
  expect(read.requestId !== undefined).toBe(read.error === 'internal-error')
  const hasFaults = read.error === 'invalid-deployment'
  expect([read.field !== undefined, read.faults !== undefined]).toEqual([hasFaults, hasFaults])
  if (hasFaults) expect(read.faults?.[0]).toEqual({ field: read.field, detail: read.detail })
  expect(read.detail ?? 'A sentence.', 'detail is one sentence').toMatch(/^[A-Z"a-z].*[.>]$/s)
  expect(status).toBe(statusByErrorCode[read.error])
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
    const code = expectProblem(response)
    expect(
      operation
        ? ['not-found', 'unauthorized', 'forbidden', 'internal-error']
        : ['not-found', 'method-not-allowed', 'unauthorized', 'forbidden'],
    ).toContain(code)
    return
  }
  if (isProblem(documented.schema)) {
    const code = expectProblem(response, documented.schema)
    // Documented once for all operations.
    if (code === 'forbidden') return
    expect(documented.description, `${operation?.id} does not document ${code} at ${status}`).toContain(code)
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
  if (mediaType !== 'application/json') {
    expect(text).not.toBe('')
    return
  }
  expect(headers.get('content-type')).toMatch(/^application\/json/)
  const body: unknown = JSON.parse(text)
  expect(documented.schema.parse(body), 'only the fields of the contract').toEqual(body)
}

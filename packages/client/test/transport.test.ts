import { leaseProblem, operations, problem } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import { expect, test } from 'vitest'
import type * as z from 'zod'
import { DeadlineError, NoResponseError, ProblemError, UnexpectedResponseError } from '../src/errors.ts'
import type { AttemptEnd } from '../src/hooks.ts'
import type { ClientOptions } from '../src/options.ts'
import { createTransport } from '../src/transport.ts'
import { FakeTiming } from './support/fake-timing.ts'

type Reply = Response | Error | 'hangs' | 'hangs and ignores the signal'

const { checkName, reserveName, validateToken } = operations
const { readLease } = leaseOperations

const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } })
const unavailable = (headers = {}): Response => json(503, { error: 'database-unavailable', detail: 'Retry.' }, headers)
const free = { available: true, fqdn: 'acme.pool.test' }

const toService = (problem: z.ZodType) => ({ operations, problem, isOwn: () => true })

/** A transport whose requests get these replies, one after the other. */
const setUp = (replies: readonly Reply[], options: Partial<ClientOptions> = {}) => {
  const timing = new FakeTiming()
  const sent: { url: string; init: RequestInit & { headers: Record<string, string> } }[] = []
  const ends: AttemptEnd[] = []
  const send = (url: string, init: RequestInit): Promise<Response> => {
    const reply = replies[sent.length]
    sent.push({ url, init: init as never })
    if (reply === undefined) throw new Error('a request that the test does not expect')
    if (reply === 'hangs and ignores the signal') return new Promise(() => undefined)
    if (reply === 'hangs') {
      return new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
    }
    return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply)
  }
  const transport = createTransport(
    {
      baseUrl: 'https://api.example/base/',
      fetch: send as typeof fetch,
      timing,
      hooks: { onAttemptEnd: end => ends.push(end) },
      ...options,
    },
    toService(problem),
  )
  const check = (signal?: AbortSignal) =>
    timing.settle(
      transport.call(
        checkName,
        { path: { domain: 'pool.test' }, query: { sub: 'acme' } },
        { repeat: 'repeatable' },
        { signal },
      ),
    )
  const reserve = (repeat: 'under-key' | 'if-rejected' = 'under-key') =>
    timing.settle(
      transport.call(
        reserveName,
        {
          path: { domain: 'pool.test' },
          body: { subdomain: 'acme', reservationToken: 'former-token' },
          headers: { 'Idempotency-Key': 'key-0123456789' },
        },
        { repeat },
      ),
    )
  return { timing, sent, ends, transport, check, reserve }
}

const catchError = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('the call did not fail')
}

test('sends the parts of a request where the operation has them', async () => {
  const reserved = {
    poolDomain: 'pool.test',
    subdomain: 'acme',
    state: 'reserved',
    reservedAt: '2026-01-31T12:00:00.000Z',
    expiresAt: '2026-01-31T12:10:00.000Z',
    createdBy: '',
    reservationToken: '2b1c7a3e-6a55-4a0e-8a3d-0d3b9f0f4f11',
  }
  const { sent, check, reserve } = setUp([json(200, free), json(201, reserved)], { token: () => 'token-1' })
  expect(await check()).toMatchObject({ status: 200, body: free })
  expect(await reserve()).toMatchObject({ status: 201, body: reserved })
  expect(sent[0]).toMatchObject({
    url: 'https://api.example/base/api/v1/pool/pool.test/check?sub=acme',
    init: { method: 'GET', headers: { Authorization: 'Bearer token-1' }, redirect: 'manual' },
  })
  expect(sent[1]).toMatchObject({
    url: 'https://api.example/base/api/v1/pool/pool.test/reserve',
    init: {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'key-0123456789' },
      body: '{"subdomain":"acme","reservationToken":"former-token"}',
    },
  })
  expect(sent[0]?.init.headers['X-Request-Id']).toMatch(/^[0-9a-f]{32}$/)
})

test('keeps fields that the contract does not have yet', async () => {
  const { check } = setUp([json(200, { ...free, later: 1 })])
  expect((await check()).body).toEqual({ ...free, later: 1 })
})

test('a documented error has code, status, detail and Retry-After', async () => {
  const { check, reserve } = setUp([
    json(429, { error: 'too-many-attempts', detail: 'Wait.' }, { 'Retry-After': '120' }),
    json(409, { error: 'cooling-off', availableAt: '2026-01-31T12:00:00.000Z' }),
  ])
  const tooMany = await catchError(check())
  expect(tooMany).toBeInstanceOf(ProblemError)
  expect(tooMany).toMatchObject({ status: 429, code: 'too-many-attempts', detail: 'Wait.', retryAfter: 120 })
  expect(await catchError(reserve())).toMatchObject({
    code: 'cooling-off',
    body: { availableAt: '2026-01-31T12:00:00.000Z' },
    isOutcomeUnknown: false,
  })
})

test.each([
  ['an unknown error code', json(409, { error: 'later-code', detail: 'New.' }), { status: 409, code: 'later-code' }],
  ['an error page', new Response('<html>', { status: 403 }), { status: 403, code: undefined }],
  ['an undocumented status', json(299, free), { status: 299 }],
  ['a redirect', new Response(null, { status: 302 }), { status: 302 }],
  ['a page instead of JSON', new Response('<html>', { status: 200 }), { reason: 'the body is not application/json' }],
  ['truncated JSON', new Response('{', { headers: { 'Content-Type': 'application/json' } }), { status: 200 }],
  ['another shape', json(200, { available: 'yes' }), { reason: expect.stringContaining('available') }],
])('%s is an unexpected response', async (_, reply, expected) => {
  const { check } = setUp([reply])
  const error = await catchError(check())
  expect(error).toBeInstanceOf(UnexpectedResponseError)
  expect(error).toMatchObject(expected)
})

test('a documented status whose body is not an error is a result', async () => {
  const { timing } = setUp([])
  const lease = { holder: 'a', acquiredAt: '', expiresAt: '', generation: 7 }
  const transport = createTransport(
    { baseUrl: 'http://localhost', fetch: async () => json(412, lease), timing },
    toService(leaseProblem),
  )
  const result = await transport.call(readLease, { path: { slot: 'a/b' } }, { repeat: 'never' })
  expect(result.status === 412 && result.body.generation).toBe(7)
})

test('repeats under the same key and ends with the result', async () => {
  const { sent, ends, reserve } = setUp([
    new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) }),
    unavailable(),
    json(409, { error: 'conflict' }),
  ])
  const error = await catchError(reserve())
  expect(error).toMatchObject({ code: 'conflict', attempts: 3, isOutcomeUnknown: false })
  expect(new Set(sent.map(({ init }) => init.headers['Idempotency-Key']))).toEqual(new Set(['key-0123456789']))
  expect(ends.map(({ attempt, status, retryInMs }) => [attempt, status, retryInMs])).toEqual([
    [1, undefined, 100],
    [2, 503, 200],
    [3, 409, null],
  ])
})

test('a write without a key is not repeated if it may have taken effect', async () => {
  const { sent, reserve } = setUp([new TypeError('fetch failed')])
  const error = await catchError(reserve('if-rejected'))
  expect(error).toBeInstanceOf(NoResponseError)
  expect(error).toMatchObject({ isOutcomeUnknown: true, attempts: 1 })
  expect(sent).toHaveLength(1)
})

test.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'])(
  'a write without a connection (%s) has no effect: its outcome is known, and it is repeated',
  async code => {
    const refused = () => new TypeError('fetch failed', { cause: Object.assign(new Error('connect'), { code }) })
    const { sent, reserve } = setUp(Array.from({ length: 5 }, refused))
    expect(await catchError(reserve('if-rejected'))).toMatchObject({ isOutcomeUnknown: false, attempts: 5 })
    expect(sent).toHaveLength(5)
    const { reserve: later } = setUp([new TypeError('fetch failed'), refused(), refused(), refused(), refused()])
    expect(await catchError(later())).toMatchObject({ isOutcomeUnknown: true, attempts: 5 })
  },
)

test('an attempt that takes too long is repeated; the deadline ends the call', async () => {
  const { timing, ends, check } = setUp(['hangs', 'hangs and ignores the signal', 'hangs'], {
    attemptTimeoutMs: 1_000,
    deadlineMs: 2_500,
  })
  const error = await catchError(check())
  expect(error).toBeInstanceOf(DeadlineError)
  expect(timing.now()).toBe(2_500)
  expect(ends.map(({ durationMs }) => durationMs)).toEqual([1_000, 1_000, 200])
  expect(timing.pending).toEqual([])
})

test('a body that does not end is limited by the deadline, not by the time until the response begins', async () => {
  const silent = new Response(new ReadableStream({ start: () => undefined }), {
    headers: { 'Content-Type': 'application/json' },
  })
  const { timing, check } = setUp([silent], { attemptTimeoutMs: 1_000, deadlineMs: 2_500 })
  expect(await catchError(check())).toBeInstanceOf(DeadlineError)
  expect(timing.now()).toBe(2_500)
  expect(timing.pending).toEqual([])
})

test('a POST that changes nothing has a known outcome', async () => {
  const { timing, transport } = setUp([new TypeError('fetch failed')])
  const call = transport.call(validateToken, { body: {} }, { repeat: 'never' })
  expect(await catchError(timing.settle(call))).toMatchObject({ isOutcomeUnknown: false, attempts: 1 })
})

test('a pause that would exceed the deadline is not made', async () => {
  const { timing, check } = setUp([unavailable({ 'Retry-After': '60' })])
  expect(await catchError(check())).toMatchObject({ code: 'database-unavailable', retryAfter: 60, attempts: 1 })
  expect(timing.now()).toBe(0)
})

test.each([
  ['before the request', [], 0],
  ['during the request', ['hangs' as const], 1],
  ['during a request that ignores it', ['hangs and ignores the signal' as const], 1],
  ['during a pause', [unavailable({ 'Retry-After': '10' })], 1],
])('an abort %s ends the call with the reason', async (_, replies, requests) => {
  const { timing, sent, transport } = setUp(replies)
  const controller = new AbortController()
  if (requests === 0) controller.abort('changed my mind')
  const call = transport.call(
    checkName,
    { path: { domain: 'pool.test' } },
    { repeat: 'repeatable' },
    { signal: controller.signal },
  )
  const caught = catchError(call)
  await new Promise(resolve => setImmediate(resolve))
  controller.abort('changed my mind')
  expect(await caught).toBe('changed my mind')
  expect(sent).toHaveLength(requests)
  expect(timing.pending).toEqual([])
})

test.each([
  ['a relative URL', 'api.example'],
  ['another scheme', 'ftp://api.example'],
  ['a password', 'https://user:hunter2secret@api.example'],
  ['a query', 'https://api.example/?a=1'],
])('rejects a base URL with %s', (_, baseUrl) => {
  const create = () => createTransport({ baseUrl }, toService(problem))
  expect(create).toThrow(TypeError)
  expect(create).not.toThrow(/hunter2secret/)
})

test.each(['', '.', '..'])('rejects a field of the path that a URL cannot have: "%s"', async domain => {
  const { sent, transport } = setUp([])
  const error = await catchError(transport.call(checkName, { path: { domain } }, { repeat: 'repeatable' }))
  expect(error).toBeInstanceOf(TypeError)
  expect(sent).toEqual([])
})

// What a proxy echoes, what a runtime quotes, and what a caller spells wrongly.
test.each([
  ['an error body', json(400, { error: 'invalid-format', detail: 'token-1 key-0123456789 former-token' })],
  ['an unknown error', json(400, { error: 'key-0123456789', detail: 'token-1' })],
  ['a page', new Response('token-1 key-0123456789', { status: 502 })],
  ['a result of another shape', json(201, { 'token-1': 'former-token' })],
  ['broken JSON', new Response('token-1 former-token', { headers: { 'Content-Type': 'application/json' } })],
  ['a failure of fetch', new TypeError('Bearer token-1 is not a valid header', { cause: new Error('key-0123456789') })],
])('no error and no hook has a secret of the call: %s', async (_, reply) => {
  const seen: unknown[] = []
  const { reserve } = setUp([reply], {
    token: 'token-1',
    headers: { 'CF-Access-Client-Secret': 'proxy-secret' },
    retry: { maxAttempts: 1 },
    hooks: {
      onAttempt: info => void seen.push(info),
      onAttemptEnd: end => seen.push(end),
      onCallEnd: end => seen.push(end),
    },
  })
  const error = await catchError(reserve())
  expect(error).toBeInstanceOf(Error)
  const text = [error, ...seen].map(value => toText(value)).join('\n')
  expect(text).not.toMatch(/token-1|key-0123456789|former-token|proxy-secret/)
})

/** Everything that a log could write of a value. */
const toText = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return String(value)
  const own = Object.getOwnPropertyNames(value).map(name => toText((value as Record<string, unknown>)[name]))
  return `${value}\n${own.join('\n')}`
}

test('an invalid token is not quoted', async () => {
  const { check } = setUp([], { token: 'token-1\n' })
  const error = await catchError(check())
  expect(error).toBeInstanceOf(TypeError)
  expect(toText(error)).not.toContain('token-1')
})

test('a hook that throws does not fail the call, and its headers are sent', async () => {
  const { sent, check } = setUp([json(200, free)], {
    hooks: {
      onAttempt: () => ({ traceparent: '00-1-2-01' }),
      onAttemptEnd: () => {
        throw new Error('a hook')
      },
      traceCall: (call, run) => {
        expect(call).toEqual({ operation: 'checkName', method: 'GET', route: checkName.path })
        return run()
      },
    },
  })
  await check()
  expect(sent[0]?.init.headers.traceparent).toBe('00-1-2-01')
})

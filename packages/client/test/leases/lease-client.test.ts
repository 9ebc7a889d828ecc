import { expect, test, vi } from 'vitest'
import { NoResponseError, ProblemError, UnexpectedResponseError } from '../../src/errors.ts'
import { createIdentity } from '../../src/leases/identity.ts'
import { LeaseClient } from '../../src/leases/lease-client.ts'
import { RenewalBatch } from '../../src/leases/renewal-batch.ts'

const LEASE = {
  holder: 'a',
  acquiredAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:00:30.000Z',
  generation: 6,
}
const WRITE = { holder: 'a', generation: 5, ttlMs: 1_500 }
const UNIQUE = createIdentity('a')
const UNIQUE_LEASE = { ...LEASE, holder: UNIQUE }

type Responder = () => Response
const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers })
const lost: Responder = () => {
  throw new TypeError('fetch failed')
}

/** A client whose requests get these responses, in this order. */
const createClient = (...responders: Responder[]) => {
  const requests: { method: string; url: string; headers: Headers; body: unknown }[] = []
  const send = vi.fn(async (url: string, init: RequestInit) => {
    const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    requests.push({ method: init.method ?? '', url, headers: new Headers(init.headers), body })
    const respond = responders.shift()
    if (!respond) throw new Error(`an unexpected request: ${init.method} ${url}`)
    return respond()
  })
  const client = new LeaseClient({ baseUrl: 'http://witness', token: 'secret', fetch: send as unknown as typeof fetch })
  const summary = () => requests.map(({ method, url }) => `${method} ${url.slice('http://witness'.length)}`)
  return { client, requests, summary }
}

test('a read returns the lease and its remaining time', async () => {
  const { client, summary } = createClient(() => json(200, LEASE, { 'Lease-Remaining-Ms': '12000' }))
  expect(await client.read('region-pair/primary')).toEqual({
    lease: LEASE,
    remainingMs: 12_000,
    isVacant: false,
    grantedWaitSeconds: 0,
  })
  expect(summary()).toEqual(['GET /lease/region-pair%2Fprimary'])
})

test.each<[string, 'acquire' | 'read' | 'readMany' | 'release' | 'renew' | 'renewMany', unknown[], RegExp]>([
  ['an object as the slot', 'acquire', [{ slot: 'a' }, WRITE], /^slot must be text/],
  ['a read of an object', 'read', [{ slot: 'a' }], /slot must be text/],
  ['a list of objects', 'readMany', [[{ slot: 'a' }]], /slot must be text/],
  ['no write', 'release', ['a', {}], /holder must be .*generation must be/],
  [
    'ttlSeconds',
    'renew',
    ['a', { holder: 'a', generation: 5, ttlSeconds: 9 }],
    /has no option ttlSeconds; it has .*ttlMs/,
  ],
  ['a batch without ttlMs', 'renewMany', ['a', [{ slot: 'a', generation: 1 }]], /^ttlMs must be/],
  ['a limit as text', 'read', ['a', { deadlineMs: '3s' }], /^readLease: deadlineMs must be a number/],
])('%s is a TypeError, and no request is sent', async (_, method, values, message) => {
  const { client, requests } = createClient()
  const call = client[method].bind(client) as (...values: unknown[]) => Promise<unknown>
  const error = await call(...values).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(TypeError)
  expect((error as TypeError).message).toMatch(message)
  expect(requests).toEqual([])
})

test('a client without options names the one that it needs', () => {
  expect(() => new (LeaseClient as unknown as new () => LeaseClient)()).toThrow(
    /^The client needs an object with its options: baseUrl,/,
  )
})

test('a slot that was never written is vacant', async () => {
  const { client } = createClient(() => json(404, { error: 'not-found', detail: 'This slot was never written.' }))
  expect(await client.read('slot')).toMatchObject({ lease: { generation: 0, holder: '' }, isVacant: true })
})

test.each([
  [404, 'not-found', 'No such route: a path begins with /api/v1. The operator listener has more.'],
  [404, 'not-found', 'This path does not exist.'],
  [404, 'not-found', undefined],
  [401, 'unauthorized', 'Operator token required: send Authorization: Bearer <token>.'],
])('an error of another service or path is no vacant slot: %i %s, %s', async (status, error, detail) => {
  const calls: Readonly<Record<string, (client: LeaseClient) => Promise<unknown>>> = {
    read: client => client.read('slot'),
    waitUntilVacant: client => client.waitUntilVacant('slot'),
    waitForChange: client => client.waitForChange('slot', 1),
    history: client => client.history('slot'),
    acquire: client => client.acquire('slot', WRITE),
  }
  for (const [name, call] of Object.entries(calls)) {
    const { client } = createClient(() => json(status, { error, detail }))
    const thrown = await call(client).catch((reason: unknown) => reason)
    expect(thrown, name).toBeInstanceOf(UnexpectedResponseError)
    expect(thrown, name).toMatchObject({ status, detail, reason: expect.stringContaining('a wrong path') })
  }
})

test('a wait states which wait was granted', async () => {
  const { client, requests } = createClient(() =>
    json(200, LEASE, { 'Lease-Remaining-Ms': '1', 'Preference-Applied': 'wait=25' }),
  )
  expect(await client.waitUntilVacant('slot', 40)).toMatchObject({ grantedWaitSeconds: 25, isVacant: false })
  expect(requests[0]).toMatchObject({ url: 'http://witness/lease/slot?until=vacant' })
  expect(requests[0]?.headers.get('Prefer')).toBe('wait=40')
})

test('a wait for a change ends without one', async () => {
  const { client, requests } = createClient(() => new Response(null, { status: 304 }))
  expect(await client.waitForChange('slot', 6, 10)).toBeNull()
  expect(requests[0]?.headers.get('If-None-Match')).toBe('"6"')
})

test('a write is fenced by its generation', async () => {
  const { client, requests } = createClient(() => json(200, LEASE, { 'Lease-Remaining-Ms': '1500' }))
  expect(await client.acquire('slot', WRITE)).toMatchObject({ kind: 'applied', confirmedBy: 'response' })
  expect(requests[0]?.headers.get('If-Match')).toBe('"5"')
  expect(requests[0]?.body).toEqual({ holder: 'a', ttlSeconds: 1.5, op: 'acquire' })
})

test('a write sends the value of the lease if there is one, also an empty one, and not in a batch', async () => {
  const signal = new AbortController().signal
  const renewed = () => json(200, { ...LEASE, value: 'x' }, { 'Lease-Remaining-Ms': '1500' })
  const results = [{ slot: 'slot', status: 200, lease: LEASE, remainingMs: 1_500 }]
  const { client, requests } = createClient(renewed, renewed, () => json(200, { results }))
  expect(await client.renew('slot', { ...WRITE, value: 'x' })).toMatchObject({ current: { lease: { value: 'x' } } })
  expect(await client.calls.renew('slot', { ...WRITE, value: '' }, { signal })).toMatchObject({ lease: { value: 'x' } })
  await new RenewalBatch({ leases: client, identity: 'a' }).calls.renew('slot', { ...WRITE, value: 'x' }, { signal })
  expect(requests.map(({ body }) => (body as { value?: unknown }).value)).toEqual(['x', '', undefined])
  expect(JSON.stringify(requests[2]?.body)).not.toContain('value')
})

test('a rejected write returns the reason and the current lease', async () => {
  const held = { ...LEASE, holder: 'b' }
  const { client } = createClient(() => json(412, held, { 'Lease-Conflict': 'held', 'Lease-Remaining-Ms': '900' }))
  expect(await client.renew('slot', WRITE)).toEqual({
    kind: 'rejected',
    conflict: 'held',
    current: { lease: held, remainingMs: 900, isVacant: false, grantedWaitSeconds: 0 },
  })
})

test.each([
  ['applied', UNIQUE_LEASE, { kind: 'applied', confirmedBy: 'read' }],
  ['unapplied', { ...UNIQUE_LEASE, generation: 5 }, { kind: 'unapplied', error: expect.any(NoResponseError) }],
  ['superseded', { ...LEASE, holder: 'b' }, { kind: 'rejected' }],
])('a write without a response is not repeated: a read shows that it is %s', async (_, current, expected) => {
  const { client, summary } = createClient(lost, () => json(200, current, { 'Lease-Remaining-Ms': '1000' }))
  expect(await client.renew('slot', { ...WRITE, holder: UNIQUE })).toMatchObject(expected)
  expect(summary()).toEqual(['PUT /lease/slot', 'GET /lease/slot'])
})

test('a write that the witness failed to answer is not repeated either', async () => {
  const unavailable = () => json(503, { error: 'lease-unavailable' }, { 'Retry-After': '1' })
  const { client, summary } = createClient(unavailable, () => json(200, UNIQUE_LEASE, { 'Lease-Remaining-Ms': '1000' }))
  const write = { ...WRITE, holder: UNIQUE }
  expect(await client.acquire('slot', write)).toMatchObject({ kind: 'applied', confirmedBy: 'read' })
  expect(summary()).toEqual(['PUT /lease/slot', 'GET /lease/slot'])
})

test('without a response, a lease with a name that was chosen may be of another process', async () => {
  const { client } = createClient(lost, () => json(200, LEASE, { 'Lease-Remaining-Ms': '1000' }))
  expect(await client.acquire('slot', WRITE)).toMatchObject({ kind: 'rejected', mayBeOwn: true })
})

test.each([
  ['of a name from createIdentity', 'acquire', UNIQUE, UNIQUE, { kind: 'applied', confirmedBy: 'read' }],
  ['of a name that was chosen', 'acquire', 'a', 'a', { kind: 'rejected', conflict: 'generation', mayBeOwn: true }],
  ['of a released lease', 'release', 'a', '', { kind: 'applied', confirmedBy: 'read' }],
  ['of another holder', 'release', 'a', 'b', { kind: 'rejected', conflict: 'generation' }],
] as const)(
  'a write that a proxy sent twice is rejected with the lease %s',
  async (_, kind, holder, shown, expected) => {
    const rejected = () => json(412, { ...LEASE, holder: shown }, { 'Lease-Conflict': 'generation' })
    const { client, summary } = createClient(rejected)
    expect(await client[kind]('slot', { ...WRITE, holder })).toMatchObject(expected)
    expect(summary()).toHaveLength(1)
  },
)

test('a rejection without a lease is an error, and nothing is read', async () => {
  const { client, summary } = createClient(() => json(403, { error: 'forbidden' }))
  await expect(client.acquire('slot', WRITE)).rejects.toBeInstanceOf(ProblemError)
  expect(summary()).toEqual(['PUT /lease/slot'])
})

test('a release returns the generation after it', async () => {
  const { client, requests } = createClient(() => new Response(null, { status: 204, headers: { ETag: '"6"' } }))
  expect(await client.release('slot', { holder: 'a', generation: 5 })).toMatchObject({
    kind: 'applied',
    current: { lease: { generation: 6 }, isVacant: true },
  })
  expect(requests[0]?.headers.get('X-Holder')).toBe('a')
})

test('a release without a response, of a lease that another client holds since', async () => {
  const { client } = createClient(lost, () => json(200, { ...LEASE, holder: 'b', generation: 7 }))
  expect(await client.release('slot', WRITE)).toMatchObject({ kind: 'applied', confirmedBy: 'read' })
})

test('the calls of an elector send one request', async () => {
  const signal = new AbortController().signal
  const unavailable = () => json(503, { error: 'draining' }, { 'Retry-After': '7' })
  const { client, summary } = createClient(lost, unavailable, lost, () => json(200, LEASE))
  expect(await client.calls.renew('slot', WRITE, { signal })).toMatchObject({ kind: 'unknown' })
  expect(await client.calls.acquire('slot', WRITE, { signal })).toMatchObject({ kind: 'failed', retryAfterMs: 7_000 })
  expect(await client.calls.read('slot', { signal })).toMatchObject({ kind: 'failed' })
  // A proxy removed Lease-Remaining-Ms: the lease that was just granted has its TTL.
  expect(await client.calls.acquire('slot', WRITE, { signal })).toMatchObject({
    kind: 'granted',
    lease: { remainingMs: 1_500, generation: 6 },
  })
  expect(summary()).toEqual(['PUT /lease/slot', 'PUT /lease/slot', 'GET /lease/slot', 'PUT /lease/slot'])
})

test('a batch renews many slots in one request, and each has its own result', async () => {
  const signal = new AbortController().signal
  const results = [
    { slot: 'one', status: 200, lease: LEASE, remainingMs: 1_500 },
    { slot: 'two', status: 412, conflict: 'held', lease: { ...LEASE, holder: 'b' }, remainingMs: 700 },
    { slot: 'three', status: 503, error: 'overloaded' },
    { slot: 'four', status: 403, error: 'forbidden' },
  ]
  const { client, requests, summary } = createClient(() => json(200, { results }), lost)
  const batch = new RenewalBatch({ leases: client, identity: 'a' })
  const renew = (slot: string) => batch.calls.renew(slot, WRITE, { signal })
  expect(await Promise.all(['one', 'two', 'three', 'four'].map(renew))).toMatchObject([
    { kind: 'granted', lease: { generation: 6, remainingMs: 1_500 } },
    { kind: 'observed', lease: { holder: 'b', remainingMs: 700 } },
    { kind: 'unknown' },
    { kind: 'failed' },
  ])
  expect(requests[0]?.body).toMatchObject({
    holder: 'a',
    leases: [{ slot: 'one', generation: 5, ttlSeconds: 1.5 }, {}, {}, {}],
  })
  expect(await Promise.all(['one', 'two'].map(renew))).toMatchObject([{ kind: 'unknown' }, { kind: 'unknown' }])
  expect(summary()).toEqual(['POST /leases/renew', 'POST /leases/renew'])
})

test('a batch request ends when no elector waits for it', async () => {
  let isSent = false
  let isAborted = false
  const send = (_url: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => {
      isSent = true
      signal?.addEventListener('abort', () => {
        isAborted = true
        reject(signal.reason)
      })
    })
  const client = new LeaseClient({ baseUrl: 'http://witness', fetch: send as unknown as typeof fetch })
  const batch = new RenewalBatch({ leases: client, identity: 'a', windowMs: 0 })
  const first = new AbortController()
  const second = new AbortController()
  const results = [first, second].map(({ signal }, index) => batch.calls.renew(`slot-${index}`, WRITE, { signal }))
  await expect.poll(() => isSent).toBe(true)
  first.abort()
  expect(isAborted).toBe(false)
  second.abort()
  expect(await Promise.all(results)).toMatchObject([{ kind: 'unknown' }, { kind: 'unknown' }])
  expect(isAborted).toBe(true)
})

test('history, and lists', async () => {
  const history = { slot: 'slot', transitions: [] }
  const list = { consistency: 'eventual', detail: 'from copies', leases: [] }
  const exact = {
    consistency: 'exact',
    leases: [
      { slot: 'a', error: 'overloaded' },
      { slot: 'b', ...LEASE, waiters: 2 },
    ],
  }
  const { client, summary } = createClient(
    () => json(200, history),
    () => json(404, { error: 'not-found', detail: 'This slot was never written.' }),
    () => json(200, list),
    () => json(200, exact),
  )
  expect(await client.history('slot')).toEqual(history)
  expect(await client.history('slot')).toBeNull()
  expect(await client.list({ prefix: 'eu/', limit: 10 })).toEqual(list)
  expect(await client.readMany(['a', 'b'])).toEqual(exact)
  expect(summary().slice(2)).toEqual(['GET /leases?prefix=eu%2F&limit=10', 'GET /leases?slot=a&slot=b'])
})

test('a drain, page by page, and the health', async () => {
  const page = { drained: 1_000, pending: [], readableAt: '2026-01-01T00:01:00.000Z', nextCursor: 'c2' }
  const last = { drained: 3, pending: [{ slot: 'a', reason: 'it is written' }], readableAt: '2026-01-01T00:01:00.000Z' }
  const { client, requests, summary } = createClient(
    () => json(200, page),
    () => json(200, last),
    () => json(409, { error: 'not-draining' }),
    () => json(503, { status: 'unhealthy' }),
  )
  expect(await client.drain()).toEqual(page)
  expect(await client.drain({ cursor: 'c2' })).toEqual(last)
  await expect(client.drain({ slots: ['a'] })).rejects.toMatchObject({ status: 409, code: 'not-draining' })
  expect(await client.readHealth()).toEqual({ status: 'unhealthy' })
  expect(requests.map(({ body }) => body)).toEqual([{}, { cursor: 'c2' }, { slots: ['a'] }, undefined])
  expect(summary()).toEqual([...Array(3).fill('POST /leases/drain'), 'GET /healthz'])
})

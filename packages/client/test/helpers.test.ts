import { idempotencyKey } from '@pool/contract'
import { expect, test } from 'vitest'
import { AllocationClient, type LogEntry, NotPublishedError } from '../src/index.ts'
import { FakeTiming } from './support/fake-timing.ts'

interface Request {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: unknown
}

const json = (status: number, body: unknown): Response =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } })

/** A stream of these parts that ends, breaks, or stays open and silent. */
const stream = (mediaType: string, parts: readonly string[], end: 'ends' | 'breaks' | 'is silent') => {
  const rest = parts.map(part => new TextEncoder().encode(part))
  return (signal: AbortSignal | null | undefined): Response => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        signal?.addEventListener('abort', () => controller.error(signal.reason))
      },
      async pull(controller) {
        const part = rest.shift()
        if (part) controller.enqueue(part)
        else if (end === 'ends') controller.close()
        else if (end === 'breaks') controller.error(new TypeError('terminated'))
        else await new Promise(() => undefined)
      },
    })
    return new Response(body, { headers: { 'Content-Type': mediaType } })
  }
}

type Reply = Response | ReturnType<typeof stream>

const setUp = (replies: readonly Reply[]) => {
  const timing = new FakeTiming()
  const requests: Request[] = []
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const reply = replies[requests.length]
    const { pathname, search } = new URL(url)
    requests.push({
      method: init.method ?? '',
      path: pathname + search,
      headers: init.headers as Record<string, string>,
      body: init.body ? JSON.parse(String(init.body)) : undefined,
    })
    if (reply === undefined) throw new Error(`unexpected request ${pathname}`)
    return typeof reply === 'function' ? reply(init.signal) : reply
  }
  const client = new AllocationClient({ baseUrl: 'http://localhost', fetch: send as typeof fetch, timing })
  return { client, timing, requests }
}

const at = '2026-01-31T12:00:00.000Z'
const active = (status: 'pending' | 'published' | 'failing', detail?: string) => ({
  poolDomain: 'pool.test',
  subdomain: 'acme',
  state: 'active',
  reservedAt: at,
  createdBy: '',
  sovereignFQDN: 'acme.pool.test',
  loadBalancerIP: '203.0.113.10',
  committedAt: at,
  dns: { status, ...(detail ? { detail } : {}) },
})
const reserved = {
  poolDomain: 'pool.test',
  subdomain: 'acme',
  state: 'reserved',
  reservedAt: at,
  expiresAt: at,
  createdBy: '',
}
const name = { domain: 'pool.test', subdomain: 'acme' }
const unavailable = () => json(503, { error: 'database-unavailable' })

test('waits until the records are published, also while the service is unavailable', async () => {
  const replies = [
    json(200, active('pending')),
    ...Array.from({ length: 6 }, unavailable),
    json(200, active('failing', 'no')),
  ]
  const { client, timing } = setUp([...replies, json(200, active('published'))])
  const seen: string[] = []
  const wait = client.waitUntilPublished(name, { onPending: dns => seen.push(dns.status) })
  expect((await timing.settle(wait)).dns.status).toBe('published')
  expect(seen).toEqual(['pending', 'failing'])
})

test('stops waiting at the deadline, and says what is wrong', async () => {
  const { client, timing } = setUp(Array.from({ length: 20 }, () => json(200, active('failing', 'zone refused'))))
  const error = await timing.settle(client.waitUntilPublished(name, { deadlineMs: 5_000 }).catch((e: unknown) => e))
  expect(error).toBeInstanceOf(NotPublishedError)
  expect(error).toMatchObject({ message: 'acme.pool.test is not published: the status is failing: zone refused' })
  expect(timing.now()).toBeLessThanOrEqual(5_000)
})

test('a name that is only reserved is never published', async () => {
  const { client, timing } = setUp([json(200, reserved)])
  await expect(timing.settle(client.waitUntilPublished(name))).rejects.toBeInstanceOf(NotPublishedError)
})

test('reserveAndCommit releases nothing if the outcome of the commit is unknown', async () => {
  const token = '2b1c7a3e-6a55-4a0e-8a3d-0d3b9f0f4f11'
  const { client, timing, requests } = setUp([
    json(201, { ...reserved, reservationToken: token }),
    ...Array.from({ length: 5 }, unavailable),
  ])
  const call = client.reserveAndCommit({ ...name, loadBalancerIP: '203.0.113.10' }, { idempotencyKey: 'k' })
  await expect(timing.settle(call)).rejects.toMatchObject({ isOutcomeUnknown: true, attempts: 5 })
  expect(requests.map(({ path }) => path.split('/').at(-1))).toEqual(['reserve', ...Array(5).fill('commit')])
  expect(new Set(requests.map(({ headers }) => headers['Idempotency-Key']))).toEqual(new Set(['k-reserve', 'k-commit']))
  expect(requests[1]?.body).toMatchObject({ reservationToken: token, sovereignFQDN: 'acme.pool.test' })
})

test('reserveAndCommit takes an Idempotency-Key whose derived keys are valid, and sends nothing with a longer one', async () => {
  const reservation = json(201, { ...reserved, reservationToken: '2b1c7a3e-6a55-4a0e-8a3d-0d3b9f0f4f11' })
  const { client, timing, requests } = setUp([reservation, json(200, active('published'))])
  const call = (length: number) =>
    timing.settle(
      client.reserveAndCommit({ ...name, loadBalancerIP: '203.0.113.10' }, { idempotencyKey: 'k'.repeat(length) }),
    )
  await expect(call(248)).rejects.toThrow(
    new TypeError('reserveAndCommit: idempotencyKey must have 247 characters at most.'),
  )
  expect(requests).toEqual([])
  await call(247)
  const keys = requests.map(({ headers }) => headers['Idempotency-Key'])
  expect(keys.map(key => idempotencyKey.safeParse(key).success)).toEqual([true, true])
})

const EVENTS = 'text/event-stream'
const line = (message: string) => ({ time: at, phase: 'apply', level: 'info', message })
const event = (id: number) => `id: ${id}\ndata: ${JSON.stringify(line(`line ${id}`))}\n\n`
const deployment = {
  id: '2b1c7a3e-6a55-4a0e-8a3d-0d3b9f0f4f11',
  status: 'ready',
  startedAt: at,
  finishedAt: at,
  orgName: 'Acme',
  sovereignFQDN: 'acme.pool.test',
  providers: ['local'],
  region: 'fsn1',
  objectStorageRegion: '',
  objectStorageBucket: '',
  numEvents: 4,
}
const done = `event: done\ndata: ${JSON.stringify(deployment)}\n\n`

const collect = async (entries: AsyncIterable<LogEntry>): Promise<readonly string[]> => {
  const seen: string[] = []
  for await (const entry of entries) seen.push(entry.kind === 'line' ? entry.line.message : entry.deployment.status)
  return seen
}

test('follows a log over lost connections, and yields each line once', async () => {
  const { client, timing, requests } = setUp([
    stream(EVENTS, ['retry: 1000\n\n', event(1), event(2).slice(0, 20)], 'breaks'),
    stream(EVENTS, [event(2).slice(0, 30), event(2).slice(30) + event(3)], 'ends'),
    stream(EVENTS, [': idle\n\n'], 'is silent'),
    unavailable(),
    stream(EVENTS, [event(4), done], 'is silent'),
  ])
  const log = await timing.settle(collect(client.followLogs({ id: deployment.id })))
  expect(log).toEqual(['line 1', 'line 2', 'line 3', 'line 4', 'ready'])
  expect(requests.map(({ headers }) => headers['Last-Event-ID'])).toEqual(['', '1', '3', '3', '3'])
  expect(timing.pending).toEqual([])
})

test('follows changes over lost connections, from the last event', async () => {
  const change = (id: string, ...topics: string[]) => `id: ${id}\ndata: ${JSON.stringify({ topics })}\n\n`
  const { client, timing, requests } = setUp([
    stream(EVENTS, ['retry: 1000\n\n', change('1~0~0~0', 'names', 'zones', 'deployments', 'samples')], 'ends'),
    stream(EVENTS, [': idle\n\n', change('2~0~0~0', 'names')], 'breaks'),
    unavailable(),
    stream(EVENTS, [change('2~0~1~0', 'deployments')], 'is silent'),
  ])
  const controller = new AbortController()
  const seen: string[] = []
  const follow = async () => {
    for await (const topics of client.changes({ signal: controller.signal })) {
      seen.push(topics.join())
      if (seen.length === 3) controller.abort('enough')
    }
  }
  await expect(timing.settle(follow())).rejects.toBe('enough')
  expect(seen).toEqual(['names,zones,deployments,samples', 'names', 'deployments'])
  expect(requests.map(({ headers }) => headers['Last-Event-ID'])).toEqual([undefined, '1~0~0~0', '2~0~0~0', '2~0~0~0'])
  expect(timing.pending).toEqual([])
})

test('an abort ends the log with the reason of the signal', async () => {
  const { client, timing } = setUp([stream(EVENTS, [event(1)], 'is silent')])
  const controller = new AbortController()
  const seen: LogEntry[] = []
  const follow = async () => {
    for await (const entry of client.followLogs({ id: deployment.id }, { signal: controller.signal })) {
      seen.push(entry)
      controller.abort('enough')
    }
  }
  await expect(follow()).rejects.toBe('enough')
  expect(seen).toHaveLength(1)
  expect(timing.pending).toEqual([])
})

test.each([
  ['not JSON', 'id: 1\ndata: {\n\n'],
  ['another shape', 'id: 1\ndata: {"message":"secret-text"}\n\n'],
])('an event that the contract does not have ends the log: %s', async (_, text) => {
  const { client, timing } = setUp([stream(EVENTS, [text], 'is silent')])
  const error = await timing.settle(collect(client.followLogs({ id: deployment.id })).catch((e: unknown) => e))
  expect(error).toMatchObject({ name: 'UnexpectedResponseError', operation: 'followDeployment' })
  expect(String(error)).not.toContain('secret-text')
})

test('a truncated export is an error', async () => {
  const header = { type: 'header', format: 'pool-allocation-export', version: 1, schema: 1 }
  const { client } = setUp([stream('application/x-ndjson', [`${JSON.stringify(header)}\n{"type":"end"`], 'ends')])
  const read = async () => {
    for await (const { type } of client.exportLines()) expect(type).toBe('header')
  }
  await expect(read()).rejects.toMatchObject({ name: 'UnexpectedResponseError', operation: 'exportInstallation' })
})

test('a plan that failed after its response had begun rejects as a 409', async () => {
  const problem = { error: 'plan-failed', detail: 'No quota.' }
  const { client, timing } = setUp([json(200, { operation: 'apply', text: 'Error', json: null, problem })])
  const planning = timing.settle(client.planDeployment({ id: '0a000000-0000-4000-8000-000000000001' }))
  await expect(planning).rejects.toMatchObject({
    name: 'ProblemError',
    status: 409,
    code: 'plan-failed',
    body: problem,
  })
})

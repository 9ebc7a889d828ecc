import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { type Service, startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Client, createClient, parseLease, writeLease } from './support/client.ts'
import { closeWaiters, openWaiter, openWaiters, untilWaiting, type Waiter } from './support/waiter.ts'
import { temporaryDirectory } from './support/witness.ts'

/** The witness's limit per slot. */
const MAX_WAITERS = 2_000
const WAIT_SECONDS = 60
const READER_TOKEN = 'token-of-a-reader-0123456789abcdef'
/** Not a performance requirement: it only detects a forgotten waiter, which gets its response at the end of its wait. */
const MAX_DELAY_MS = 50_000

const directory = temporaryDirectory()
let witness: Service
let client: Client

beforeAll(async () => {
  witness = await startLocalWitness(directory.path, {
    MAX_WAIT_SECONDS: '60',
    BEARER_TOKENS_CSV: `${TOKEN},${READER_TOKEN}`,
  })
  client = createClient(witness.port)
})

afterAll(async () => {
  client?.[Symbol.dispose]()
  await witness?.process.stop()
  directory[Symbol.dispose]()
})

const readGeneration = async (slot: string): Promise<number> => {
  const response = await client.send('GET', `/lease/${encodeURIComponent(slot)}`)
  return response.status === 404 ? 0 : parseLease(response).generation
}

const acquire = async (slot: string, ttlSeconds = 3_600) => {
  const body = { op: 'acquire', ttlSeconds } as const
  const response = await writeLease(client, 'holder', slot, await readGeneration(slot), body)
  expect(response.status, response.text).toBe(200)
  return parseLease(response)
}

/** Releases the slot while `waiters` wait. Each must get a response. */
const releaseFor = async (slot: string, waiters: readonly Waiter[]) => {
  const { generation } = await acquire(slot)
  const received = Promise.all(waiters.map(waiter => waiter.wait(generation, WAIT_SECONDS)))
  await untilWaiting(client, slot, waiters.length)
  const sentAt = performance.now()
  const released = await writeLease(client, 'holder', slot, generation, 'release')
  expect(released.status).toBe(204)
  for (const { response, receivedAt } of await received) {
    expect(response.status).toBe(200)
    expect(JSON.parse(response.text)).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: generation + 1 })
    expect(response.headers.get('etag')).toBe(`"${generation + 1}"`)
    // No waiter was notified before the release was sent.
    expect(receivedAt).toBeGreaterThan(sentAt)
    expect(receivedAt - sentAt).toBeLessThan(MAX_DELAY_MS)
  }
}

/** Whether one more wait is accepted, of one second: a full slot ends its oldest wait instead. */
const acceptsOneMore = async (slot: string, generation: number): Promise<boolean> => {
  const waiter = await openWaiter(witness.port, slot)
  try {
    const { response } = await waiter.wait(generation, 1)
    return response.status === 304
  } finally {
    closeWaiters([waiter])
  }
}

const startWaiting = (waiters: readonly Waiter[], generation: number, seconds = WAIT_SECONDS) =>
  // A waiter whose connection is closed gets no response.
  waiters.map(waiter => waiter.wait(generation, seconds).catch(() => undefined))

test('a slot full of the waits of one token accepts that of another, and one of the first token ends with 503', async () => {
  const slot = 'shared'
  const { generation } = await acquire(slot)
  const waiters = await openWaiters(witness.port, slot, MAX_WAITERS, READER_TOKEN)
  try {
    const received = startWaiting(waiters, generation)
    await untilWaiting(client, slot, MAX_WAITERS)
    expect(await acceptsOneMore(slot, generation)).toBe(true)
    const displaced = await Promise.race(received)
    expect(displaced?.response.status).toBe(503)
    expect(JSON.parse(displaced?.response.text ?? '')).toMatchObject({ error: 'overloaded' })
    await untilWaiting(client, slot, MAX_WAITERS - 1)
  } finally {
    closeWaiters(waiters)
  }
  await untilWaiting(client, slot, 0)
})

test('a full slot accepts waiters, also after its clients have closed or reset their connections', async () => {
  const slot = 'full'
  let { generation } = await acquire(slot)
  const waiters: Waiter[] = []
  const fill = async (count: number) => {
    const more = await openWaiters(witness.port, slot, count - waiters.length)
    waiters.push(...more)
    startWaiting(more, generation)
    await untilWaiting(client, slot, count)
  }
  try {
    await fill(MAX_WAITERS)
    expect(await acceptsOneMore(slot, generation)).toBe(true)
    // Those that only close stay in the count until they are notified or their time is up.
    for (const { connection } of waiters.splice(0)) connection.socket.destroy()
    expect(await acceptsOneMore(slot, generation)).toBe(true)
    expect((await writeLease(client, 'holder', slot, generation, 'release')).status).toBe(204)
    await untilWaiting(client, slot, 0)

    generation = (await acquire(slot)).generation
    await fill(MAX_WAITERS)
    closeWaiters(waiters.splice(0, 1_050))
    await untilWaiting(client, slot, waiters.length)
    await fill(MAX_WAITERS)
    expect(waiters.every(({ connection }) => connection.unread === '' && connection.isOpen)).toBe(true)
  } finally {
    closeWaiters(waiters)
  }
  await untilWaiting(client, slot, 0)
  expect(await acceptsOneMore(slot, generation)).toBe(true)
})

test.each([1, 500])('a release notifies every waiter of %i', async count => {
  const slot = `released/${count}`
  const waiters = await openWaiters(witness.port, slot, count)
  await releaseFor(slot, waiters).finally(() => closeWaiters(waiters))
})

// The witness does not notice a connection that only the client has closed, as a client does that aborts its request or is killed.
test.concurrent('the waits of closed connections and aborted requests end when their time is up', async () => {
  const slot = 'closed'
  const { generation } = await acquire(slot)
  const waiters = await openWaiters(witness.port, slot, 50)
  startWaiting(waiters, generation, 10)
  const aborted = new AbortController()
  const headers = { Authorization: `Bearer ${TOKEN}`, 'If-None-Match': `"${generation}"`, Prefer: 'wait=10' }
  const fetches = waiters.map(() =>
    fetch(`${witness.url}/lease/${slot}`, { headers, signal: aborted.signal }).catch(() => undefined),
  )
  await untilWaiting(client, slot, 2 * waiters.length)
  for (const { connection } of waiters) connection.socket.destroy()
  aborted.abort()
  expect((await Promise.all(fetches)).filter(Boolean)).toEqual([])
  await untilWaiting(client, slot, 0)
})

test.concurrent.each([1, 500])('an expiry notifies every waiter of %i, and not too early', async count => {
  const slot = `expired/${count}`
  const waiters = await openWaiters(witness.port, slot, count)
  try {
    const { generation, expiresAt } = await acquire(slot, 2)
    const wait = async (waiter: Waiter) => {
      const { response } = await waiter.wait(generation, WAIT_SECONDS)
      const afterMs = Date.now() - Date.parse(expiresAt)
      expect(response.status).toBe(200)
      expect(JSON.parse(response.text)).toMatchObject({ holder: 'holder', generation, expiresAt })
      expect(afterMs).toBeGreaterThanOrEqual(0)
      expect(afterMs).toBeLessThan(MAX_DELAY_MS)
    }
    await Promise.all(waiters.map(wait))
  } finally {
    closeWaiters(waiters)
  }
})

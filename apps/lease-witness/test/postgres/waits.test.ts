import { until } from '@pool/test-kit/poll.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { WaitCondition } from '../../src/lease/lease.ts'
import type { ReadOutcome } from '../../src/lease-service.ts'
import { createTestDatabase, startTestReplica, type TestDatabase, type TestReplica } from './support/database.ts'
import { replaceLeaseClock, type TestClock } from './support/test-clock.ts'

const LONG_MS = 60_000

let database: TestDatabase
let clock: TestClock
let [here, there] = [] as unknown as [TestReplica, TestReplica]
const others: TestReplica[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  clock = await replaceLeaseClock(database.sql)
  here = await startTestReplica(database.url)
  there = await startTestReplica(database.url)
})
afterEach(async () => {
  await clock.stopAt(undefined)
  await Promise.all(others.splice(0).map(replica => replica.close()))
})
afterAll(async () => {
  await Promise.all([here.close(), there.close()])
  await database[Symbol.asyncDispose]()
})

let slotNumber = 0
let slot = ''
beforeEach(() => {
  slotNumber += 1
  slot = `slot-${slotNumber}`
})

const address = (name = slot) => ({ slot: name, encoded: name })
const acquire = async (generation: number, { ttlMs = LONG_MS, replica = here, holder = 'a' } = {}) => {
  const outcome = await replica.leases.write(address(), { kind: 'acquire', holder, ttlMs, generation }, '')
  expect(outcome.kind).toMatch(/^(?:granted|renewed)$/)
}
const release = async (generation: number, replica = here) => {
  const outcome = await replica.leases.write(address(), { kind: 'release', holder: 'a', generation }, '')
  expect(outcome.kind).toBe('released')
}
const wait = (
  replica: TestReplica,
  {
    caller = '',
    condition = { kind: 'vacant' } as WaitCondition,
    maxMs = LONG_MS,
    signal = new AbortController().signal,
  } = {},
): Promise<ReadOutcome> =>
  replica.leases.wait(address(), {
    caller,
    condition,
    known: condition.kind === 'changed' ? condition.known : [],
    maxMs,
    signal,
  })
const untilWaiting = (replica: TestReplica, count = 1) =>
  until('clients wait', () => replica.waits.countWaiters(slot) === count)
const changed = (...known: number[]): WaitCondition => ({ kind: 'changed', known })

test.each([
  ['the same replica', () => here],
  ['another replica', () => there],
])('a release ends the wait of a client of %s', async (_, replica) => {
  await acquire(0)
  const outcome = wait(replica())
  await untilWaiting(replica())
  await release(1)
  expect(await outcome).toMatchObject({ kind: 'lease', lease: { holder: '', generation: 2 } })
  expect(replica().waits.countWaiters(slot)).toBe(0)
})

test('the expiry of the lease ends a wait on every replica, without any request', async () => {
  await acquire(0, { ttlMs: 300 })
  const outcomes = await Promise.all([wait(here), wait(there, { condition: changed(1) })])
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ kind: 'lease', lease: { holder: 'a', generation: 1 }, remainingMs: 0 })
  }
})

test('a renewal moves the expiry for which a client waits', async () => {
  const start = Date.now()
  await clock.stopAt(start)
  await acquire(0, { ttlMs: 200 })
  const outcome = wait(there)
  await untilWaiting(there)
  await acquire(1, { ttlMs: 400 })
  slot = `${slot}/not-renewed`
  await acquire(0, { ttlMs: 200 })
  const firstExpiry = wait(there)
  await untilWaiting(there)
  await clock.stopAt(start + 200)
  // If the first expiry ended the other wait, its lease would remain for 200 ms.
  await firstExpiry
  await clock.stopAt(start + 400)
  expect(await outcome).toMatchObject({ lease: { generation: 2 }, remainingMs: 0 })
})

test('a client that disconnects frees its place', async () => {
  await acquire(0)
  const client = new AbortController()
  const outcome = wait(here, { signal: client.signal })
  await untilWaiting(here)
  client.abort()
  expect(await outcome).toEqual({ kind: 'absent' })
  expect(here.waits.countWaiters(slot)).toBe(0)
  expect(await wait(here, { signal: client.signal })).toEqual({ kind: 'absent' })
})

test('a change whose notification is lost is seen when the slots are read again', async () => {
  const deaf = await startTestReplica(database.url, { listens: false, recheckMs: 50 })
  others.push(deaf)
  await acquire(0)
  const outcome = wait(deaf)
  await untilWaiting(deaf)
  await release(1)
  expect(await outcome).toMatchObject({ kind: 'lease', lease: { generation: 2 } })
})

test('a connection that listens and is lost is replaced, and waiters miss nothing', async () => {
  const replica = await startTestReplica(database.url)
  others.push(replica)
  await acquire(0)
  const outcome = wait(replica)
  await untilWaiting(replica)
  await database.sql`select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()`
  await release(1)
  expect(await outcome).toMatchObject({ kind: 'lease', lease: { generation: 2 } })
})

test('a stop ends all waits as unavailable, and each later one', async () => {
  const replica = await startTestReplica(database.url)
  others.push(replica)
  await acquire(0)
  const outcomes = [wait(replica), wait(replica, { condition: changed(1) })]
  await untilWaiting(replica, 2)
  replica.waits.stop()
  for (const outcome of [...(await Promise.all(outcomes)), await wait(replica)]) {
    expect(outcome).toMatchObject({ kind: 'lease-unavailable' })
  }
})

test('a token takes no room of another: the token with the most waits loses its oldest', async () => {
  const replica = await startTestReplica(database.url, { maxWaiters: 3 })
  others.push(replica)
  await acquire(0)
  const [oldest, ...rest] = [1, 2, 3].map(() => wait(replica, { caller: 'reader' }))
  await untilWaiting(replica, 3)
  const standby = wait(replica, { caller: 'standby' })
  expect(await oldest).toMatchObject({ kind: 'overloaded' })
  const another = wait(replica, { caller: 'reader' })
  expect(await rest[0]).toMatchObject({ kind: 'overloaded' })
  await release(1)
  for (const outcome of await Promise.all([standby, another, rest[1]])) expect(outcome).toMatchObject({ kind: 'lease' })
})

test('one read ends the waits of 3,000 clients, and the number of waiters is known', async () => {
  await acquire(0)
  const outcomes = Array.from({ length: 3_000 }, () => wait(there))
  await untilWaiting(there, 3_000)
  expect(await there.leases.readMany([address(), address('unknown')])).toMatchObject([
    { kind: 'lease', waiters: 3_000 },
    { kind: 'absent', waiters: 0 },
  ])
  await release(1)
  const ended = await Promise.all(outcomes)
  expect(ended.every(outcome => outcome.kind === 'lease' && outcome.lease.generation === 2)).toBe(true)
})

import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { LeaseWrite } from '../../src/lease/lease.ts'
import { type OpenLeases, openLeases } from '../../src/node/leases.ts'
import { createTestDatabase, getTestDsn, type TestDatabase } from './support/database.ts'

/** Long enough for a write on a busy machine, because some tests wait for it. */
const TIMEOUT_MS = 3_000

let database: TestDatabase
let proxy: TcpProxy
let witness: OpenLeases
const server = postgres(getTestDsn(), { max: 1, onnotice: () => {} })
beforeAll(async () => {
  database = await createTestDatabase({ connections: 2 })
  proxy = await startTcpProxy(Number(new URL(database.url).port))
  const url = Object.assign(new URL(database.url), { port: String(proxy.port) }).href
  witness = await openLeases({
    database: { url, listenUrl: url, usesTls: false, poolSize: 2, timeoutMs: TIMEOUT_MS },
    settings: { LOG_LEVEL: 'error' },
    allowsLostWrites: false,
  })
})
afterEach(() => {
  proxy.thaw()
  proxy.refuse(false)
})
afterAll(async () => {
  await witness.stop()
  await witness.close()
  await proxy.close()
  await server.end()
  await database[Symbol.asyncDispose]()
})

let slotNumber = 0
let slot = ''
beforeEach(() => {
  slotNumber += 1
  slot = `slot-${slotNumber}`
})

const write = (request: LeaseWrite, name = slot) => witness.leases.write({ slot: name, encoded: name }, request, '')
const acquire = (generation: number, name = slot) =>
  write({ kind: 'acquire', holder: 'a', ttlMs: 60_000, generation }, name)
const read = (name = slot) => witness.leases.read({ slot: name, encoded: name }, [])
const lockRow = async (name: string) => {
  const locked = Promise.withResolvers<void>()
  const ending = Promise.withResolvers<void>()
  const ended = database.sql.begin(async transaction => {
    await transaction`select from leases where slot = ${name} for update`
    locked.resolve()
    await ending.promise
  })
  await locked.promise
  return async () => {
    ending.resolve()
    await ended
  }
}

test('a locked row delays the writes of its slot only; reads and rejections do not wait, and a late write has no effect', async () => {
  for (const name of [slot, 'other']) expect((await acquire(0, name)).kind).toBe('granted')
  const unlock = await lockRow(slot)
  // Before a write of the same row waits, because the writes of a row are executed one at a time.
  expect(await acquire(7)).toMatchObject({ kind: 'rejected', reason: 'generation' })
  let isWaiting = true
  const locked = acquire(1).finally(() => {
    isWaiting = false
  })
  for (let generation = 1; generation < 5; generation += 1) {
    expect((await acquire(generation, 'other')).kind).toBe('renewed')
  }
  expect(await read()).toMatchObject({ kind: 'lease', lease: { generation: 1 } })
  expect(isWaiting).toBe(true)
  expect(await locked).toMatchObject({ kind: 'lease-unavailable' })
  await unlock()
  expect(await read()).toMatchObject({ lease: { generation: 1 } })
  expect((await acquire(1)).kind).toBe('renewed')
})

test('a row that is locked for a moment delays its writes and rejects none', async () => {
  expect((await acquire(0)).kind).toBe('granted')
  const unlock = await lockRow(slot)
  const locked = acquire(1)
  await until('the statement waits', async () => {
    const [row] =
      await server`select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%write_leases%'`
    return row
  })
  await unlock()
  expect((await locked).kind).toBe('renewed')
})

// As managed databases do while their disk is full. The setting applies to new sessions.
test('a read-only moment: writes are unavailable without an effect, and no session stays read-only', async () => {
  expect((await acquire(0)).kind).toBe('granted')
  const name = new URL(database.url).pathname.slice(1)
  await server.unsafe(`alter database ${name} set default_transaction_read_only = on`)
  await server`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`
  await until('it is unhealthy', async () => !(await witness.leases.checkHealth()))
  await until('writes are rejected', async () => (await acquire(1)).kind === 'lease-unavailable')
  await server.unsafe(`alter database ${name} reset default_transaction_read_only`)
  await until('it is healthy', () => witness.leases.checkHealth())
  const outcomes = await Promise.all(Array.from({ length: 10 }, (_, index) => acquire(0, `${slot}/${index}`)))
  expect(outcomes.map(({ kind }) => kind)).toEqual(outcomes.map(() => 'granted'))
  expect((await acquire(1)).kind).toBe('renewed')
})

test('a database that does not answer: unavailable in time, also at the end of a wait, and then it serves', async () => {
  expect((await acquire(0)).kind).toBe('granted')
  proxy.freeze()
  const wait = witness.leases.wait(
    { slot, encoded: slot },
    { caller: '', condition: { kind: 'vacant' }, known: [], maxMs: 100, signal: new AbortController().signal },
  )
  const outcomes = await Promise.all([read(), acquire(1), wait])
  expect(outcomes.map(({ kind }) => kind)).toEqual(outcomes.map(() => 'lease-unavailable'))
  await until('it is unhealthy', async () => !(await witness.leases.checkHealth()))
  proxy.thaw()
  await until('it serves', async () => (await read()).kind === 'lease')
  await until('it is healthy', () => witness.leases.checkHealth())
  // The statement reached the server after its deadline.
  expect(await read()).toMatchObject({ lease: { generation: 1 } })
})

test('a database that goes away: unavailable, and waits continue when it is back', async () => {
  expect((await acquire(0)).kind).toBe('granted')
  const wait = witness.leases.wait(
    { slot, encoded: slot },
    { caller: '', condition: { kind: 'vacant' }, known: [], maxMs: 60_000, signal: new AbortController().signal },
  )
  proxy.refuse(true)
  await until('it is away', async () => (await read()).kind === 'lease-unavailable')
  const list = await witness.directory.list({ prefix: '', limit: 1 })
  expect(list).toMatchObject({ kind: 'copy-unavailable', detail: expect.stringMatching(/^The database did not/) })
  proxy.refuse(false)
  await until('it serves', async () => {
    const { kind } = await write({ kind: 'release', holder: 'a', generation: 1 })
    return kind === 'released' || kind === 'rejected'
  })
  expect(await wait).toMatchObject({ kind: 'lease', lease: { holder: '', generation: 2 } })
})

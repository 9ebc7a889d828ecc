import { afterEach, expect, test } from 'vitest'
import { declareRestore } from '../../src/postgres/epochs.ts'
import { createTestDatabase, startTestReplica, TIMEOUT_MS } from './support/database.ts'
import { RecordingClient } from './support/fencing.ts'

const JUMP = 2 ** 20

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
})

const startClient = async (url: string): Promise<RecordingClient> => {
  const replica = await startTestReplica(url, { listens: false })
  cleanups.push(() => replica.close())
  return new RecordingClient(replica)
}

const setUp = async () => {
  const database = await createTestDatabase()
  cleanups.push(() => database[Symbol.asyncDispose]())
  return { ...database, client: await startClient(database.url) }
}

test('a declared restore raises all generations by more than all writes since the newest one that is stored', async () => {
  const { sql, client } = await setUp()
  const before = await client.acquire('held', 'a', 0)
  const lostMs = 86_400_000
  await sql`update leases set written_at = written_at - ${lostMs}::bigint`
  const epoch = await declareRestore(sql, TIMEOUT_MS)
  expect(epoch).toMatchObject({ epoch: 2, reason: 'declared' })
  expect(epoch.generationBase).toBeGreaterThan(JUMP + 100 * lostMs)
  expect(await client.read('held')).toBe(before + epoch.generationBase)
  expect(await client.acquire('held', 'a', before + epoch.generationBase)).toBe(before + epoch.generationBase + 1)
  expect(await client.acquire('new', 'a', 0)).toBe(epoch.generationBase + 1)
  const history = await client.replica.leases.history({ slot: 'held', encoded: 'held' })
  expect(history).toMatchObject({
    transitions: [
      { event: 'jumped', generation: before + epoch.generationBase, from: 'a', to: 'a' },
      { event: 'acquired' },
    ],
  })
})

test('a restart of the server starts no epoch', async () => {
  const { sql, client } = await setUp()
  const before = await client.acquire('held', 'a', 0)
  await sql`update lease_epochs set server_start = server_start - interval '1 second'`
  expect(await client.acquire('held', 'a', before)).toBe(before + 1)
  expect(await sql`select epoch, reason from lease_epochs`).toEqual([{ epoch: 1, reason: 'created' }])
  expect(client.replica.epochsStarted).toEqual([])
})

test('of several replicas that find another database at once, one starts an epoch', async () => {
  const { url, sql, client } = await setUp()
  const before = await client.acquire('held', 'a', 0)
  const clients = await Promise.all([startClient(url), startClient(url), startClient(url)])
  await sql`update lease_epochs set system_identifier = 'another', server_start = 'epoch'`
  const generations = await Promise.all(clients.map(each => each.read('held')))
  expect(new Set(generations).size).toBe(1)
  expect(generations[0]).toBeGreaterThan(before + JUMP)
  expect(clients.flatMap(({ replica }) => replica.epochsStarted)).toMatchObject([{ epoch: 2, reason: 'restored' }])
})

test('a statement of the earlier epoch that is still executing changes nothing of the new one', async () => {
  const { sql, client } = await setUp()
  const before = await client.acquire('held', 'a', 0)
  // The row as a statement of a later epoch has left it.
  const { generationBase } = await declareRestore(sql, TIMEOUT_MS)
  const after = await client.acquire('held', 'a', before + generationBase)
  await sql`update lease_epochs set epoch = -epoch where reason = 'declared'`
  const outcome = await client.write('held', 'renew', 'a', after)
  expect(outcome).toMatchObject({ kind: 'lease-unavailable' })
  expect(await sql`select generation from leases`).toEqual([{ generation: after }])
})

import { missingMachinePostgres, startMachinePostgres } from '@pool/test-kit/machine-postgres.ts'
import { type Replication, startReplicatedPostgres } from '@pool/test-kit/replicated-postgres.ts'
import { describe, expect, test } from 'vitest'
import { openLeases } from '../../src/node/leases.ts'
import { migrateDatabase, TIMEOUT_MS } from './support/database.ts'
import { untilServing, useClients } from './support/fencing.ts'

const JUMP = 2 ** 20

const { cleanups, startClient } = useClients()

describe('a standby is promoted', () => {
  const startPair = async (replication: Replication) => {
    const postgres = await startReplicatedPostgres(replication)
    cleanups.push(() => postgres.remove())
    await migrateDatabase(postgres.primaryUrl())
    return postgres
  }

  test('a synchronous one: nothing is lost, no generation repeats, and no second holder exists', async () => {
    const postgres = await startPair('synchronous')
    const client = await startClient(postgres.url, 2_000)
    const held = await client.acquire('held', 'a', 0)
    const renewing = { generation: await client.acquire('renewed', 'a', 0), isOver: false }
    const renewals = (async () => {
      while (!renewing.isOver) {
        const outcome = await client.write('renewed', 'renew', 'a', renewing.generation)
        if ('lease' in outcome) renewing.generation = outcome.lease.generation
      }
    })()
    await postgres.failOver()
    await untilServing(client)
    renewing.isOver = true
    await renewals

    const generation = await client.read('held')
    expect(generation).toBeGreaterThan(held + JUMP)
    expect(await client.write('held', 'acquire', 'b', generation)).toMatchObject({
      kind: 'rejected',
      reason: 'held',
      lease: { holder: 'a' },
    })
    expect(await client.write('held', 'renew', 'a', held)).toMatchObject({ kind: 'rejected', reason: 'generation' })
    expect(await client.acquire('held', 'a', generation)).toBe(generation + 1)
    await client.acquire('new', 'b', 0)
    expect(client.findRepeats()).toEqual([])
    expect(client.replica.epochsStarted).toMatchObject([{ reason: 'promoted' }])
  })

  test('an asynchronous one can lack writes, so the witness starts only if its operator accepts that', async () => {
    const postgres = await startPair('asynchronous')
    const config = {
      database: { url: postgres.url, listenUrl: postgres.url, usesTls: false, poolSize: 1, timeoutMs: TIMEOUT_MS },
      settings: { LOG_LEVEL: 'error' },
    }
    await expect(openLeases({ ...config, allowsLostWrites: false })).rejects.toMatchObject({
      issues: [{ variable: 'WITNESS_ALLOW_LOST_WRITES', detail: expect.stringContaining('two holders') }],
    })
    const accepted = await openLeases({ ...config, allowsLostWrites: true })
    await accepted.stop()
    await accepted.close()
  })
})

test.skipIf(missingMachinePostgres)(
  'a backup is restored, into the same server or another: no generation repeats, although a replica keeps running',
  async () => {
    const server = await startMachinePostgres()
    cleanups.push(() => server[Symbol.asyncDispose]())
    const url = await server.createDatabase('witness')
    await migrateDatabase(url)
    const client = await startClient(url)
    const other = await startClient(url)
    await client.acquire('held', 'a', 0)
    const backup = await server.dump('witness')
    let older = await client.read('held')
    for (let count = 0; count < 50; count += 1) older = await client.acquire('held', 'a', older)
    const lostFirst = await client.acquire('new', 'a', 0)

    await server.restore('witness', backup)
    await untilServing(client)
    const restored = await client.read('held')
    expect(restored).toBeGreaterThan(older)
    expect(await other.write('held', 'renew', 'a', older)).toMatchObject({ kind: 'rejected', reason: 'generation' })
    expect(await client.acquire('new', 'b', 0)).toBeGreaterThan(lostFirst)
    await client.acquire('held', 'a', restored)
    const started = [client, other].flatMap(({ replica }) => replica.epochsStarted)
    expect(started).toMatchObject([{ epoch: 2, reason: 'restored' }])
    expect(client.findRepeats()).toEqual([])

    // Another server, with the same backup.
    const second = await startMachinePostgres()
    cleanups.push(() => second[Symbol.asyncDispose]())
    const movedUrl = await second.createDatabase('witness')
    await second.restore('witness', backup)
    const moved = await startClient(movedUrl)
    expect(await moved.read('held')).toBeGreaterThan(older)
    expect(moved.replica.epochsStarted).toMatchObject([{ reason: 'restored' }])
  },
)

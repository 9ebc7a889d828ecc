import { createDatabaseClient } from '@pool/runtime/database/client'
import { missingMachinePostgres, startMachinePostgres } from '@pool/test-kit/machine-postgres.ts'
import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startReplicatedPostgres } from '@pool/test-kit/replicated-postgres.ts'
import { expect, test } from 'vitest'
import { migrateDatabase } from './support/database.ts'
import { FencedResource, type RecordingClient, untilServing, useClients } from './support/fencing.ts'

/** Each slot is used twice: half of its leases survive with an older expiry, the others are lost altogether. */
const SLOTS = proofSize(200, 10)
/** Longer than a promotion or a restore, as otherwise there is no overlap. */
const TTL_MS = 10_000
const MAX_WAIT_MS = 6 * TTL_MS
const LATE_WRITES = 5
const TIMEOUT_MS = 2_000

const { cleanups, startClient } = useClients()

/** What the older holder knows of its lease. */
interface OlderLease {
  readonly slot: string
  readonly generation: number
  /** A holder counts from before its request, in milliseconds of `performance.now()`. */
  readonly expiresAt: number
}

const acquireOlder = async (client: RecordingClient, slot: string, generation: number): Promise<OlderLease> => {
  const expiresAt = performance.now() + TTL_MS
  return { slot, generation: await client.acquire(slot, 'older', generation, TTL_MS), expiresAt }
}

interface Overlap {
  /** Milliseconds in which the older and the newer holder could act. */
  readonly ms: number
  /** Writes of the older holder that a fenced resource accepted after one of the newer holder. */
  readonly lateWrites: number
}

/** Another client acquires the slot as soon as it can. */
const measureOverlap = async (client: RecordingClient, older: OlderLease): Promise<Overlap> => {
  const { slot, generation, expiresAt } = older
  const resource = new FencedResource()
  const newer = await until(
    `${slot} is granted to another client`,
    async () => {
      const current = await client.read(slot)
      const sentAt = performance.now()
      const outcome = await client.write(slot, 'acquire', 'newer', current, MAX_WAIT_MS)
      return outcome.kind === 'granted' && { sentAt, generation: outcome.lease.generation }
    },
    MAX_WAIT_MS,
  )
  expect(resource.accepts(generation), 'before the newer holder acts').toBe(true)
  expect(resource.accepts(newer.generation)).toBe(true)
  const late = Array.from({ length: LATE_WRITES }, () => resource.accepts(generation))
  expect(await client.write(slot, 'renew', 'older', generation)).toMatchObject({
    kind: 'rejected',
    reason: 'generation',
  })
  return { ms: Math.max(0, expiresAt - newer.sentAt), lateWrites: late.filter(Boolean).length }
}

interface Loss {
  /** What was written until now will survive. */
  readonly keep: () => Promise<unknown>
  /** Loses what was written since. */
  readonly lose: () => Promise<unknown>
}

const proveOverlap = async (name: string, client: RecordingClient, { keep, lose }: Loss): Promise<void> => {
  const slots = Array.from({ length: SLOTS }, (_, index) => index)
  const kept = await Promise.all(slots.map(index => acquireOlder(client, `kept/${index}`, 0)))
  await keep()
  const older = await Promise.all([
    ...kept.map(({ slot, generation }) => acquireOlder(client, slot, generation)),
    ...slots.map(index => acquireOlder(client, `lost/${index}`, 0)),
  ])
  await lose()
  await untilServing(client)
  const overlaps = await Promise.all(older.map(lease => measureOverlap(client, lease)))

  expect(Math.max(...overlaps.map(({ ms }) => ms))).toBeLessThanOrEqual(TTL_MS)
  expect(overlaps.filter(({ lateWrites }) => lateWrites > 0)).toEqual([])
  expect(client.findRepeats()).toEqual([])

  const toFigures = (part: readonly Overlap[]) => {
    const ascending = part.map(({ ms }) => Math.round(ms)).sort((a, b) => a - b)
    return `${ascending[ascending.length >> 1]} ms, at most ${ascending.at(-1)} ms`
  }
  reportProof(
    `${name}, TTL ${TTL_MS} ms, ${older.length} leases: two holders for ${toFigures(overlaps.slice(0, SLOTS))} (renewal ` +
      `lost) and ${toFigures(overlaps.slice(SLOTS))} (lease lost); ${overlaps.length * LATE_WRITES} late writes, none accepted`,
  )
}

test('after the promotion of an asynchronous standby, two holders exist for at most the TTL of the older lease', async () => {
  const postgres = await startReplicatedPostgres('asynchronous')
  cleanups.push(() => postgres.remove())
  await migrateDatabase(postgres.primaryUrl())
  const client = await startClient(postgres.url, TIMEOUT_MS)
  const standby = createDatabaseClient(postgres.standbyUrl(), { maxConnections: 1, applicationName: 'tests' })
  cleanups.push(() => standby.end({ timeout: 0 }))
  await proveOverlap('promotion', client, {
    keep: async () => {
      await until('the standby has the leases', async () => {
        const [row] = await standby<{ count: number }[]>`select count(*) from leases`
        return row?.count === SLOTS
      })
      await postgres.pauseReplication()
    },
    lose: () => postgres.failOver(),
  })
  expect(client.replica.epochsStarted).toMatchObject([{ reason: 'promoted' }])
}, 180_000)

test.skipIf(missingMachinePostgres)(
  'after the restore of an older backup, two holders exist for at most the TTL of the older lease',
  async () => {
    const server = await startMachinePostgres()
    cleanups.push(() => server[Symbol.asyncDispose]())
    const url = await server.createDatabase('witness')
    await migrateDatabase(url)
    const client = await startClient(url, TIMEOUT_MS)
    let backup = ''
    await proveOverlap('restore', client, {
      keep: async () => {
        backup = await server.dump('witness')
      },
      lose: () => server.restore('witness', backup),
    })
    expect(client.replica.epochsStarted).toMatchObject([{ reason: 'restored' }])
  },
  180_000,
)

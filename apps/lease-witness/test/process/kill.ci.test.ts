import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease, LeaseList } from '@pool/contract/lease'
import { until } from '@pool/test-kit/poll.ts'
import { findWorkerd, hasProc, WITHOUT_PROC, waitForExit } from '@pool/test-kit/processes.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, startLocalWitness } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import { type Client, createClient, parseLease, writeLease } from './support/client.ts'
import { killUnderLoad, Ledger, readLease, type WriteCounts } from './support/controllers.ts'
import { temporaryDirectory } from './support/witness.ts'

/** At least one kill during the load, and one more during a takeover. */
const WORKERD_KILLS = proofSize(45, 2)
const WITNESS_KILLS = proofSize(5, 1)
/** Far more than a busy machine needs. */
const TIMEOUT_MS = 60_000

const slots = Array.from({ length: 20 }, (_, index) => `busy/${index}`)
/** Slots whose last write is a renewal. */
const renewedSlots = ['renewed/0', 'renewed/1', 'renewed/2']

const readCopies = async (client: Client) => {
  const { text } = await client.send('GET', '/leases')
  const { leases }: LeaseList = JSON.parse(text)
  return new Map(leases.map(({ slot, ...lease }) => [slot, lease]))
}

/** The slots whose copy in Workers KV differs from the lease. */
const findOutdatedCopies = async (client: Client, of: readonly string[]): Promise<string[]> => {
  const copies = await readCopies(client)
  const differences: string[] = []
  for (const slot of of) {
    const lease = parseLease(await client.send('GET', `/lease/${encodeURIComponent(slot)}`))
    const copy = copies.get(slot)
    const isEqual =
      copy !== undefined && Object.entries(lease).every(([name, value]) => Reflect.get(copy, name) === value)
    if (!isEqual) differences.push(`${slot}: ${JSON.stringify(lease)}, in KV ${JSON.stringify(copy)}`)
  }
  return differences
}

/** Resolves when the copies equal the leases. */
const waitUntilCopied = (client: Client, of: readonly string[]): Promise<unknown> =>
  expect.poll(() => findOutdatedCopies(client, of), { timeout: TIMEOUT_MS }).toEqual([])

/** Acquires every slot for `holder`. Each slot gets a new holder, so its copy is due immediately. */
const acquireAll = async (client: Client, ledger: Ledger, holder: string): Promise<void> => {
  const acquire = async (slot: string) => {
    for (;;) {
      const lease = await readLease(client, ledger, slot)
      if (lease.holder === holder) break
      const response = await writeLease(client, holder, slot, lease.generation, { op: 'acquire', ttlSeconds: 1 })
      // The lease of a stopped controller is still valid.
      if (response.status === 412) await sleep(50)
    }
  }
  await Promise.all(slots.map(acquire))
}

const releaseHalf = async (client: Client, ledger: Ledger, holder: string): Promise<void> => {
  for (const slot of slots.filter((_, index) => index % 2 === 0)) {
    const { generation } = await readLease(client, ledger, slot)
    expect((await writeLease(client, holder, slot, generation, 'release')).status).toBe(204)
  }
}

/** Acquires all slots at the same time, and calls `kill` when half of them are acknowledged. Returns that half. */
const killDuringTakeover = async (client: Client, ledger: Ledger, holder: string, kill: () => Promise<void>) => {
  const leases = new Map<string, Lease>()
  for (const slot of slots) leases.set(slot, await readLease(client, ledger, slot))
  const ends = [...leases.values()].map(({ expiresAt }) => Date.parse(expiresAt) || 0)
  await sleep(Math.max(0, Math.max(...ends) - Date.now()) + 20)
  const half = Promise.withResolvers<void>()
  const acknowledged: string[] = []
  const writes = [...leases].map(async ([slot, { generation }]) => {
    const body = { op: 'acquire', ttlSeconds: 1 } as const
    const response = await writeLease(client, holder, slot, generation, body).catch(() => undefined)
    if (response?.status !== 200) return
    ledger.record(slot, parseLease(response), generation)
    acknowledged.push(slot)
    if (acknowledged.length >= slots.length / 2) half.resolve()
  })
  await Promise.race([half.promise, Promise.all(writes)])
  await kill()
  await Promise.all(writes)
  return acknowledged
}

const waitForWorkerd = (witness: Service): Promise<number> =>
  until('workerd runs', () => findWorkerd(witness.process.pid), TIMEOUT_MS)

const waitUntilResponding = async (port: number): Promise<void> => {
  using client = createClient(port)
  await readLease(client, new Ledger(), 'never-written')
}

test.runIf(hasProc)(
  'kills during writes lose nothing that was acknowledged',
  async () => {
    using directory = temporaryDirectory()
    const ledger = new Ledger()
    const counts: WriteCounts = { acknowledged: 0, rejected: 0, applied: 0, notApplied: 0 }
    let witness = await startLocalWitness(directory.path)
    const { port } = witness
    using client = createClient(port, slots.length)
    try {
      for (const [generation, op] of (['acquire', 'renew', 'renew'] as const).entries()) {
        for (const slot of renewedSlots) {
          const response = await writeLease(client, 'renewing', slot, generation, { op, ttlSeconds: 3_600 })
          ledger.record(slot, parseLease(response), generation)
        }
        // The first copies must be written before the renewals.
        if (op === 'acquire') await waitUntilCopied(client, renewedSlots)
      }

      const killWorkerd = async () => {
        const pid = await waitForWorkerd(witness)
        process.kill(pid, 'SIGKILL')
        await waitForExit(pid, TIMEOUT_MS)
        await waitUntilResponding(port)
      }
      const load = { ports: [port], slots, ledger, counts }
      await killUnderLoad({ ...load, kills: Array(WORKERD_KILLS - 1).fill(killWorkerd) })
      // The next workerd writes the copies that are due, even those that were being written.
      const acknowledged = await killDuringTakeover(client, ledger, 'after-workerd', killWorkerd)
      expect(acknowledged.length).toBeGreaterThanOrEqual(slots.length / 2)
      await waitUntilCopied(client, acknowledged)
      await acquireAll(client, ledger, 'after-workerd')
      await waitUntilCopied(client, slots)

      const killWitness = async () => {
        const pid = await waitForWorkerd(witness)
        await witness.process.kill()
        await waitForExit(pid, TIMEOUT_MS)
        witness = await startLocalWitness(directory.path, { PORT: String(port) })
        await waitUntilResponding(port)
      }
      await killUnderLoad({ ...load, kills: Array(WITNESS_KILLS).fill(killWitness) })
      await acquireAll(client, ledger, 'after-witness')
      await releaseHalf(client, ledger, 'after-witness')
      await waitUntilCopied(client, slots)

      for (const slot of [...slots, ...renewedSlots]) await readLease(client, ledger, slot)
      expect(ledger.violations).toEqual([])

      reportProof(
        `${WORKERD_KILLS} kills of workerd and ${WITNESS_KILLS} of the witness under ${counts.acknowledged} acknowledged lease ` +
          `writes, none lost; of the writes without a response ${counts.applied} were applied, ${counts.notApplied} not`,
      )
    } finally {
      await witness.process.stop()
    }
  },
  600_000,
)

if (!hasProc) test.skip(`kills: ${WITHOUT_PROC}`)

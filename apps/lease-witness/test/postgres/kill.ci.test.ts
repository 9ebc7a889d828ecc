import { setTimeout as sleep } from 'node:timers/promises'
import { startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, startWitness } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import { createClient } from '../process/support/client.ts'
import { Ledger, readLease, runController, type WriteCounts } from '../process/support/controllers.ts'

const REPLICA_KILLS = proofSize(20, 2)
const SERVER_KILLS = proofSize(20, 2)
/** Before each kill. */
const WRITES_PER_KILL = 50
const MAX_RANDOM_DELAY_MS = 150
const CONTROLLERS = 12

const slots = Array.from({ length: 20 }, (_, index) => `busy/${index}`)

test('kills of replicas and of the server during writes lose nothing that was acknowledged', async () => {
  const postgres = await startDedicatedPostgres()
  const ledger = new Ledger()
  const counts: WriteCounts = { acknowledged: 0, rejected: 0, applied: 0, notApplied: 0 }
  const replicas: Service[] = []
  try {
    const url = await postgres.createDatabase()
    replicas.push(await startWitness(url), await startWitness(url))
    const stop = new AbortController()
    const load = Promise.all(
      Array.from({ length: CONTROLLERS }, (_, index) => {
        const { port } = replicas[index % replicas.length] as Service
        return runController(port, `controller-${index}`, slots, ledger, counts, stop.signal)
      }),
    )
    // An error of a controller is reported when the load is awaited below.
    load.catch(() => {})

    /** Every replica responds again, and shows at least what was acknowledged before the kill. */
    const checkAfter = async (kill: () => Promise<void>) => {
      const enough = counts.acknowledged + WRITES_PER_KILL
      const written = until('writes are acknowledged', () => counts.acknowledged >= enough)
      await Promise.race([written, load])
      await sleep(Math.random() * MAX_RANDOM_DELAY_MS)
      const floors = slots.map(slot => ledger.highestGeneration(slot))
      await kill()
      for (const { port } of replicas) {
        using client = createClient(port)
        for (const [index, slot] of slots.entries()) {
          const { generation } = await readLease(client, ledger, slot)
          expect(generation, slot).toBeGreaterThanOrEqual(floors[index] ?? 0)
        }
      }
    }
    const killReplica = async (index: number) => {
      const { port, process } = replicas[index] as Service
      await process.kill()
      replicas[index] = await startWitness(url, { PORT: String(port) })
    }
    for (let n = 0; n < Math.max(REPLICA_KILLS, SERVER_KILLS); n += 1) {
      if (n < REPLICA_KILLS) await checkAfter(() => killReplica(n % replicas.length))
      if (n < SERVER_KILLS) {
        await checkAfter(async () => {
          await postgres.stop('immediate')
          await postgres.start()
        })
      }
    }
    stop.abort()
    await load
    expect(ledger.violations).toEqual([])
    reportProof(
      `${REPLICA_KILLS} kills of a replica and ${SERVER_KILLS} of the server under ${counts.acknowledged} acknowledged lease ` +
        `writes, none lost; of the writes without a response ${counts.applied} were applied, ${counts.notApplied} not`,
    )
  } finally {
    await Promise.all(replicas.map(({ process }) => process.kill()))
    await postgres.remove()
  }
}, 600_000)

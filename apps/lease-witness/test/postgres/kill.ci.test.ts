import { startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, startWitness } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import { killUnderLoad, Ledger, type WriteCounts } from '../process/support/controllers.ts'

/** Of a replica, and of the server. */
const KILLS = proofSize(20, 2)

const slots = Array.from({ length: 20 }, (_, index) => `busy/${index}`)

test('kills of replicas and of the server during writes lose nothing that was acknowledged', async () => {
  const postgres = await startDedicatedPostgres()
  const ledger = new Ledger()
  const counts: WriteCounts = { acknowledged: 0, rejected: 0, applied: 0, notApplied: 0 }
  const replicas: Service[] = []
  try {
    const url = await postgres.createDatabase()
    replicas.push(await startWitness(url), await startWitness(url))
    const killReplica = async (index: number) => {
      const { port, process } = replicas[index] as Service
      await process.kill()
      replicas[index] = await startWitness(url, { PORT: String(port) })
    }
    const restartServer = async () => {
      await postgres.stop('immediate')
      await postgres.start()
    }
    const kills = Array.from({ length: KILLS }, (_, n) => [
      () => killReplica(n % replicas.length),
      restartServer,
    ]).flat()
    await killUnderLoad({ ports: replicas.map(({ port }) => port), slots, ledger, counts, kills })
    expect(ledger.violations).toEqual([])
    reportProof(
      `${KILLS} kills of a replica and ${KILLS} of the server under ${counts.acknowledged} acknowledged lease ` +
        `writes, none lost; of the writes without a response ${counts.applied} were applied, ${counts.notApplied} not`,
    )
  } finally {
    await Promise.all(replicas.map(({ process }) => process.kill()))
    await postgres.remove()
  }
}, 600_000)

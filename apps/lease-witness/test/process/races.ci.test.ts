import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, MAX_WRITERS, prepareRaces, type Race, runRaces, SLOT_STATES, waitForExpiry } from './support/race.ts'
import { type RunningWorker, startReadThenWrite } from './support/read-then-write.ts'
import { temporaryDirectory } from './support/witness.ts'

/** A decision that awaits anything between its read and its write fails in more than a third of the rounds. */
const ROUNDS = proofSize(500, 50)
describe('concurrent writers', () => {
  const cases = SLOT_STATES.flatMap(state => [2, 8, MAX_WRITERS].map(writers => ({ state, writers })))
  const directory = temporaryDirectory()
  let witness: Service
  /** Prepared for all cases first, so that the short leases expire during the other cases. */
  const prepared = new Map<(typeof cases)[number], readonly Race[]>()

  beforeAll(async () => {
    witness = await startLocalWitness(directory.path)
    using client = await connect([witness.port])
    for (const row of cases) {
      prepared.set(row, await prepareRaces(client.connections, row.state, row.writers, ROUNDS))
    }
  }, 180_000)
  afterAll(async () => {
    await witness?.[Symbol.asyncDispose]()
    directory[Symbol.dispose]()
    reportProof(`${ROUNDS} races for each of ${cases.length} combinations of slot state and writers`)
  })

  test.each(cases)(
    `$writers writers on a slot that is $state: exactly one is granted the lease, the others see it, ${ROUNDS} times`,
    async row => {
      const races = prepared.get(row) ?? []
      await waitForExpiry(races)
      using client = await connect([witness.port])
      const results = await runRaces(client.connections, races, row.writers)
      expect(results.flatMap(({ violations }) => violations)).toEqual([])
      expect(results.map(({ grants }) => grants)).toEqual(Array(ROUNDS).fill(1))
    },
  )
})

describe('a worker that reads and then writes', () => {
  /** On a held slot only every other round can have a double grant. */
  const UNSAFE_ROUNDS = proofSize(60, 6)

  let worker: RunningWorker

  beforeAll(async () => {
    worker = await startReadThenWrite()
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  test.each(SLOT_STATES)('fails on a slot that is %s', async state => {
    using client = await connect([worker.port])
    const races = await prepareRaces(client.connections, state, MAX_WRITERS, UNSAFE_ROUNDS)
    await waitForExpiry(races)
    const results = await runRaces(client.connections, races, MAX_WRITERS)
    const failed = results.filter(({ grants, violations }) => grants > 1 && violations.length > 0)
    process.stdout.write(
      `read-then-write, ${state}: ${failed.length} double grants in ${UNSAFE_ROUNDS} rounds of ${MAX_WRITERS} writers\n`,
    )
    expect(failed).not.toEqual([])
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { type Operation, summarizeHistory } from '@pool/test-kit/linearizability/history.ts'
import { chooseClockStep, SteppedClock } from '@pool/test-kit/linearizability/witness-clock.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startReplicas, startWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectLinearizable, recordHistory } from '../process/support/record-history.ts'
import { createTestDatabase } from './support/database.ts'
import { replaceLeaseClock } from './support/test-clock.ts'

const OPERATIONS = proofSize(100_000, 2_000)
const MAX_STEP_INTERVAL_MS = 500
const HOUR = 3_600_000
/** The first steps, so that leases start again in every history. */
const FIRST_STEPS = [HOUR, -HOUR]
/** Far more than a busy machine needs. */
const LOAD_TIMEOUT_MS = 120_000 + 10 * OPERATIONS

/** Different in every run, and printed with every failure. */
const seed = Date.now() % 2 ** 31

describe('a history of two replicas whose clock is set forward and back', () => {
  const clock = new SteppedClock()
  let history: Operation[] = []
  let restarts = 0

  beforeAll(async () => {
    await using database = await createTestDatabase({ connections: 2 })
    const { setAhead } = await replaceLeaseClock(database.sql)
    await using replicas = await startReplicas(2, () => startWitness(database.url))
    const prng = createPrng(seed)
    const stop = new AbortController()
    const firstSteps = [...FIRST_STEPS]
    const setClock = async () => {
      while (!stop.signal.aborted) {
        await sleep(prng.below(MAX_STEP_INTERVAL_MS))
        await clock.step(firstSteps.shift() ?? chooseClockStep(prng), setAhead)
        restarts = (await database.sql`select 1 from lease_history where event = 'clock-set-back'`).length
      }
    }
    const steps = setClock()
    const options = {
      ports: replicas.replicas.map(({ port }) => port),
      operations: OPERATIONS,
      isComplete: () => restarts > 0,
      seed,
      timeoutMs: LOAD_TIMEOUT_MS,
      clock,
    }
    history = await recordHistory(options).finally(() => stop.abort())
    await steps
    reportProof(`linearizability on Postgres, seed ${seed}, ${clock.steps} steps: ${summarizeHistory(history)}`)
  }, LOAD_TIMEOUT_MS + 30_000)

  afterAll(() => {
    history = []
  })

  test('is complete, and has leases that started again', () => {
    expect(history.length).toBeGreaterThanOrEqual(OPERATIONS)
    expect(clock.steps).toBeGreaterThan(0)
    expect(restarts).toBeGreaterThan(0)
  })

  test('is linearizable', () => expectLinearizable(history, seed, clock))
})

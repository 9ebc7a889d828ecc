import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CANDIDATES, DURATION_MS, faultSchedule, naming } from './support/fault-schedules.ts'
import { DURATIONS, type Fault, type Naming, Simulation } from './support/simulation.ts'

const SCHEDULES = proofSize(3_000, 300)
const RACES = 100

/** A leader without a connection is suspended, and its wall clock is set back by as much later. */
const SUSPENDED_THEN_SET_BACK: readonly Fault[] = [
  { candidate: 1, at: 5_776, kind: 'drop', ms: 5_891, lost: 'requests' },
  { candidate: 1, at: 5_776, kind: 'suspend', ms: 172 },
  { candidate: 1, at: 7_338, kind: 'step-clock', byMs: -172 },
]

describe('random schedules against a model of the witness', () => {
  test('no two running leaders, and no report of leadership after the deadline', { timeout: 600_000 }, async () => {
    let tenures = 0
    let positives = 0
    await fc.assert(
      fc.asyncProperty(faultSchedule, fc.nat(), naming, async (faults, seed, names) => {
        const result = await new Simulation(CANDIDATES, createPrng(seed), names).run(faults, DURATION_MS)
        expect(result.violations).toEqual([])
        tenures += result.tenures
        positives += result.positives
      }),
      { numRuns: SCHEDULES, examples: [[SUSPENDED_THEN_SET_BACK, 2, 'chosen']] },
    )
    reportProof(`election model: ${SCHEDULES} schedules, ${tenures} tenures, ${positives} reports of leadership`)
  })

  test.each<Naming>(['one chosen', 'one created'])(
    'of two candidates with %s identity that race for a vacant lease, one leads',
    async names => {
      for (let seed = 0; seed < RACES; seed += 1) {
        const { violations } = await new Simulation(2, createPrng(seed), names).run([], DURATIONS.leaseDuration)
        expect(violations).toEqual([])
      }
    },
  )
})

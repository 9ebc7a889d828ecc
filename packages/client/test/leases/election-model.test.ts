import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CANDIDATES, DURATION_MS, faultSchedule } from './support/fault-schedules.ts'
import { type Fault, Simulation } from './support/simulation.ts'

const SCHEDULES = proofSize(3_000, 300)

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
      fc.asyncProperty(faultSchedule, fc.nat(), async (faults, seed) => {
        const result = await new Simulation(CANDIDATES, createPrng(seed)).run(faults, DURATION_MS)
        expect(result.violations).toEqual([])
        tenures += result.tenures
        positives += result.positives
      }),
      { numRuns: SCHEDULES, examples: [[SUSPENDED_THEN_SET_BACK, 2]] },
    )
    reportProof(`election model: ${SCHEDULES} schedules, ${tenures} tenures, ${positives} reports of leadership`)
  })
})

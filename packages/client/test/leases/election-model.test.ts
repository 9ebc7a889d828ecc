import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DURATIONS, type Fault, MAX_FREEZE_MS, Simulation } from './support/simulation.ts'

const SCHEDULES = proofSize(3_000)
const CANDIDATES = 3
const DURATION_MS = 90_000

const base = { candidate: fc.nat(CANDIDATES - 1), at: fc.nat(DURATION_MS) }
/** Nine in ten are shorter than three leases. */
const pauseMs = fc.oneof(
  { weight: 9, arbitrary: fc.nat(3 * DURATIONS.leaseDuration) },
  { weight: 1, arbitrary: fc.nat(MAX_FREEZE_MS) },
)
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ ...base, kind: fc.constantFrom('freeze' as const, 'suspend' as const), ms: pauseMs }),
  fc.record({
    ...base,
    kind: fc.constant('step-clock' as const),
    byMs: fc.integer({ min: -3_600_000, max: 3_600_000 }),
  }),
  fc.record({
    ...base,
    kind: fc.constant('drop' as const),
    ms: fc.nat(2 * DURATIONS.leaseDuration),
    lost: fc.constantFrom('requests' as const, 'responses' as const, 'both' as const),
  }),
  fc.record({
    ...base,
    kind: fc.constant('slow' as const),
    ms: fc.nat(2 * DURATIONS.leaseDuration),
    byMs: fc.nat(2 * DURATIONS.leaseDuration),
  }),
  fc.record({ ...base, kind: fc.constant('hand-over' as const) }),
)

describe('random schedules against a model of the witness', () => {
  test('no two running leaders, and no report of leadership after the deadline', { timeout: 600_000 }, async () => {
    let tenures = 0
    let positives = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fault, { maxLength: 12 }), fc.nat(), async (faults, seed) => {
        const result = await new Simulation(CANDIDATES, createPrng(seed)).run(faults, DURATION_MS)
        expect(result.violations).toEqual([])
        tenures += result.tenures
        positives += result.positives
      }),
      { numRuns: SCHEDULES },
    )
    reportProof(`election model: ${SCHEDULES} schedules, ${tenures} tenures, ${positives} reports of leadership`)
  })
})

import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CANDIDATES, DURATION_MS, faultSchedule } from './support/fault-schedules.ts'
import { Simulation } from './support/simulation.ts'

const SCHEDULES = proofSize(3_000)

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
      { numRuns: SCHEDULES },
    )
    reportProof(`election model: ${SCHEDULES} schedules, ${tenures} tenures, ${positives} reports of leadership`)
  })
})

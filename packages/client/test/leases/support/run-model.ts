import { createPrng } from '@pool/test-kit/prng.ts'
import fc from 'fast-check'
import { CANDIDATES, DURATION_MS, faultSchedule, naming } from './fault-schedules.ts'
import { Simulation } from './simulation.ts'

/**
 * Runs up to `argv[2]` random schedules against the elector next to this file, until one of them shows a violation. Prints
 * `{ schedules, violation }`; the violation is null if there was none.
 */
const SEED = 27
const limit = Number(process.argv[2])
let schedules = 0
let violation: string | null = null
await fc.check(
  fc.asyncProperty(faultSchedule, fc.nat(), naming, async (faults, seed, names) => {
    schedules += 1
    const { violations } = await new Simulation(CANDIDATES, createPrng(seed), names)
      .run(faults, DURATION_MS)
      .catch((error: unknown) => ({ violations: [String(error)] }))
    violation ??= violations[0] ?? null
    return violation === null
  }),
  { numRuns: limit, endOnFailure: true, seed: SEED },
)
process.stdout.write(`${JSON.stringify({ schedules, violation })}\n`)

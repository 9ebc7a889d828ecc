import fc from 'fast-check'
import { DURATIONS, type Fault, MAX_FREEZE_MS, type Naming } from './simulation.ts'

export const CANDIDATES = 3
export const DURATION_MS = 90_000

/** The wall clock has whole milliseconds: shorter steps look like its rounding. */
const MIN_STEP_MS = 2

const base = { candidate: fc.nat(CANDIDATES - 1), at: fc.nat(DURATION_MS) }
/** Nine in ten are shorter than three leases. */
const pauseMs = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: MIN_STEP_MS, max: 3 * DURATIONS.leaseDuration }) },
  { weight: 1, arbitrary: fc.integer({ min: MIN_STEP_MS, max: MAX_FREEZE_MS }) },
)
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({ ...base, kind: fc.constantFrom('freeze' as const, 'suspend' as const), ms: pauseMs }),
  fc.record({
    ...base,
    kind: fc.constant('step-clock' as const),
    byMs: fc.integer({ min: -3_600_000, max: 3_600_000 }).filter(byMs => Math.abs(byMs) >= MIN_STEP_MS),
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

export const naming = fc.constantFrom<Naming[]>('created', 'chosen', 'one created', 'one chosen')

export const faultSchedule: fc.Arbitrary<readonly Fault[]> = fc.array(fault, { maxLength: 12 })

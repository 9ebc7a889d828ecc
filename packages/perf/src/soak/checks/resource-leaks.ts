import { toSpread } from '../../shared/stats.ts'

export interface Sample {
  readonly at: number
  readonly value: number
}

export interface Bound {
  /** Never above. */
  readonly most: number
  /** What the last quarter's median may be above the second's: a share of it, and so much besides. */
  readonly growth: { readonly share: number; readonly extra: number }
}

export interface Bounded {
  readonly start: number
  readonly median: number
  readonly end: number
  readonly max: number
  readonly faults: readonly string[]
}

/**
 * A series that is shorter says nothing of growth: V8 lets its heap grow to a plateau for some minutes before it collects
 * all of it. What lives longer is the replica that is not killed, the witness and what all have together.
 */
export const GROWTH_FROM_MS = 600_000

const medianOf = (samples: readonly Sample[]): number => toSpread(samples.map(({ value }) => value)).median

/** Whether a series stays below its bound, and does not go on growing once it is warm. */
export const boundedOf = (name: string, samples: readonly Sample[], { most, growth }: Bound): Bounded => {
  const first = samples[0]?.at ?? 0
  const length = (samples.at(-1)?.at ?? 0) - first
  const quarter = (n: number) =>
    samples.filter(({ at }) => at >= first + (n * length) / 4 && at <= first + ((n + 1) * length) / 4)
  const { max } = toSpread(samples.map(({ value }) => value))
  const faults: string[] = []
  if (max > most) faults.push(`${name} reached ${Math.round(max)}, above ${most}`)
  const [early, late] = [medianOf(quarter(1)), medianOf(quarter(3))]
  if (length >= GROWTH_FROM_MS && late > early * (1 + growth.share) + growth.extra)
    faults.push(`${name} grows: median ${Math.round(early)} in the second quarter, ${Math.round(late)} in the last`)
  return {
    start: samples[0]?.value ?? Number.NaN,
    median: medianOf(samples),
    end: samples.at(-1)?.value ?? Number.NaN,
    max,
    faults,
  }
}

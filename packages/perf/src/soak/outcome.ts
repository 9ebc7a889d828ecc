import { type Bounded, boundedOf } from './checks/resource-leaks.ts'
import type { FaultName } from './faults/kinds.ts'
import type { Verdict } from './invariants.ts'
import type { Series } from './observe/samples.ts'
import type { Options } from './options.ts'
import type { Count } from './traffic/recorder.ts'

export interface FaultCount {
  readonly name: FaultName
  /** Milliseconds from the end of each to the first good answer. */
  readonly recoveriesMs: readonly number[]
}

export interface Measured extends Bounded {
  readonly title: string
  readonly unit: string
  readonly most: number
}

/** What a run came to. */
export interface SoakOutcome {
  readonly options: Options
  readonly seconds: number
  readonly notes: readonly string[]
  readonly faults: readonly FaultCount[]
  readonly traffic: readonly (Count & { readonly operation: string })[]
  readonly measured: readonly Measured[]
  readonly verdicts: readonly Verdict[]
}

export const isClean = ({ verdicts }: SoakOutcome): boolean => verdicts.every(({ broken }) => broken.length === 0)

/** Each life is held to the bound and to not growing; the figures are of all lives together. */
export const toMeasured = ({ title, unit, bound, lives }: Series): Measured => {
  const all = [...lives.values()].flat().sort((a, b) => a.at - b.at)
  const { start, median, end, max } = boundedOf(title, all, bound)
  const faults = [...lives].flatMap(([life, samples]) => boundedOf(`${title} (${life})`, samples, bound).faults)
  return { title, unit, most: bound.most, start, median, end, max, faults }
}

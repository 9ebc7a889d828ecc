/** What several rounds gave for one figure. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The value below or at which `percent` of the values lie: nearest rank, so always one that was measured. */
export const percentile = (ascending: ArrayLike<number>, percent: number): number => {
  const rank = Math.max(1, Math.ceil((percent / 100) * ascending.length))
  return ascending[rank - 1] ?? Number.NaN
}

export const spreadOf = (values: readonly number[]): Spread => {
  const ascending = values.toSorted((a, b) => a - b)
  const upper = ascending[Math.floor(ascending.length / 2)] ?? Number.NaN
  const lower = ascending[Math.ceil(ascending.length / 2) - 1] ?? Number.NaN
  return { median: (lower + upper) / 2, min: ascending[0] ?? Number.NaN, max: ascending.at(-1) ?? Number.NaN }
}

/**
 * Ratios round by round: the two values of a round were measured next to each other, so what slowed the machine down
 * for a while slowed both, and is not in their ratio.
 */
export const ratiosOf = (values: readonly number[], baseline: readonly number[]): Spread =>
  spreadOf(values.map((value, round) => value / (baseline[round] ?? Number.NaN)))

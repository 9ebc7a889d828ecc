export interface Random {
  /** In [0, 1). */
  readonly next: () => number
  /** Whole, from 0 to below `n`. */
  readonly below: (n: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <Value>(values: readonly Value[]) => Value | undefined
}

/** Mulberry32: what a client does can be done again from the seed, though not when it is answered. */
export const randomFrom = (seed: number): Random => {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n: number) => Math.floor(next() * n)
  return { next, below, chance: probability => next() < probability, pick: values => values[below(values.length)] }
}

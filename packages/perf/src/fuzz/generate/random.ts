/** Chance that can be repeated: the same seed gives the same sequence. */
export interface Random {
  /** A whole number from 0 to `below` - 1. */
  readonly below: (below: number) => number
  readonly chance: (share: number) => boolean
  readonly pick: <Item>(items: readonly Item[]) => Item
  /** So many, each by itself. */
  readonly many: <Item>(count: number, make: () => Item) => Item[]
}

/** FNV-1a, 32 bits: spreads seeds that are alike. */
const hash = (text: string): number => {
  let state = 0x811c_9dc5
  for (let at = 0; at < text.length; at += 1) state = Math.imul(state ^ text.charCodeAt(at), 0x0100_0193)
  return state >>> 0
}

/** mulberry32: small, fast, and good enough to choose requests; nothing secret is made with it. */
export const randomOf = (seed: string): Random => {
  let state = hash(seed)
  const next = (): number => {
    state = (state + 0x6d2b_79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    below,
    chance: share => next() < share,
    pick(items) {
      if (items.length === 0) throw new RangeError('nothing to pick from')
      return items[below(items.length)] as (typeof items)[number]
    },
    many: (count, make) => Array.from({ length: count }, make),
  }
}

/** A pseudo-random number generator: the same seed gives the same sequence. */
export interface Prng {
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly next: () => number
  /** A whole number from 0 to `limit` - 1. */
  readonly below: (limit: number) => number
  readonly chance: (probability: number) => boolean
  /** Throws RangeError if there are no items. */
  readonly pick: <Item>(items: readonly Item[]) => Item
  /** Picks each item with a probability in proportion to its weight. */
  readonly pickWeighted: <Item>(items: readonly (readonly [weight: number, item: Item])[]) => Item
  /** An independent generator that depends on the seed and `salt` only, not on the numbers drawn so far. */
  readonly fork: (salt: number) => Prng
}

/** FNV-1a, 32 bits: gives similar texts different seeds. */
const hash = (text: string): number => {
  let state = 0x811c_9dc5
  for (let at = 0; at < text.length; at += 1) state = Math.imul(state ^ text.charCodeAt(at), 0x0100_0193)
  return state >>> 0
}

/** mulberry32 (Tommy Ettinger, public domain). Small, fast, and good enough to choose requests; never for secrets. */
export const createPrng = (seed: number | string): Prng => {
  const start = typeof seed === 'number' ? seed : hash(seed)
  let state = Math.imul(start, 0x9e37_79b1) >>> 0
  const next = () => {
    state = (state + 0x6d2b_79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <Item>(items: readonly Item[]): Item => {
    if (items.length === 0) throw new RangeError('no items to pick from')
    return items[below(items.length)] as Item
  }
  return {
    next,
    below,
    chance: probability => next() < probability,
    pick,
    pickWeighted(items) {
      let left = next() * items.reduce((sum, [weight]) => sum + weight, 0)
      const found = items.find(([weight]) => {
        left -= weight
        return left < 0
      })
      return found ? found[1] : pick(items)[1]
    },
    fork: salt => createPrng(Math.imul(start + 1, 0x85eb_ca6b) ^ Math.imul(salt + 1, 0xc2b2_ae35)),
  }
}

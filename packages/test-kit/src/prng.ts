/** Everything that is left to chance, and the same again for the same seed. */
export interface Random {
  /** From 0 to 1. */
  readonly random: () => number
  /** From 0 to `below` - 1. */
  readonly whole: (below: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <Item>(items: readonly Item[]) => Item
  /** As often as its weight says. */
  readonly pickWeighted: <Item>(items: readonly (readonly [weight: number, item: Item])[]) => Item
  /** Others, that are the same for the same `salt`, however often these here are thrown. */
  readonly others: (salt: number) => Random
}

/** mulberry32 (Tommy Ettinger, public domain): 32 bits of state are plenty for a few hundred throws. */
export const createDice = (seed: number): Random => {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const whole = (below: number) => Math.floor(random() * below)
  const pick = <Item>(items: readonly Item[]): Item => {
    const [item] = items.slice(whole(items.length))
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
  return {
    random,
    whole,
    chance: probability => random() < probability,
    pick,
    pickWeighted(items) {
      let left = random() * items.reduce((sum, [weight]) => sum + weight, 0)
      const found = items.find(([weight]) => {
        left -= weight
        return left < 0
      })
      return found ? found[1] : pick(items)[1]
    },
    others: salt => createDice(Math.imul(seed + 1, 0x85ebca6b) ^ Math.imul(salt + 1, 0xc2b2ae35)),
  }
}

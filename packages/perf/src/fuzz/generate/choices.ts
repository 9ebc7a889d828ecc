import fc from 'fast-check'

/**
 * Draws values while a request is generated. Each value comes from an arbitrary of fast-check, which shrinks it: an index
 * to 0, a chance to false, an item to the first one.
 */
export interface Choices {
  readonly draw: <Value>(arbitrary: fc.Arbitrary<Value>) => Value
  /** A whole number from 0 to `limit` - 1. */
  readonly below: (limit: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <Item>(items: readonly Item[]) => Item
  readonly times: <Item>(count: number, make: () => Item) => Item[]
}

/** fast-check matches a value that it has shrunk to a draw by the builder of the arbitrary: each has one. */
const builders = new WeakMap<fc.Arbitrary<unknown>, () => fc.Arbitrary<unknown>>()
const toBuilder = <Value>(arbitrary: fc.Arbitrary<Value>): (() => fc.Arbitrary<Value>) => {
  const builder = builders.get(arbitrary) ?? (() => arbitrary)
  builders.set(arbitrary, builder)
  return builder as () => fc.Arbitrary<Value>
}

/** Without a bias towards small values, which would prefer the first items of every list. */
const indexes = new Map<number, fc.Arbitrary<number>>()
const toIndex = (limit: number): fc.Arbitrary<number> => {
  const index = indexes.get(limit) ?? fc.noBias(fc.nat(limit - 1))
  indexes.set(limit, index)
  return index
}

/** More random numbers than a request draws. */
const MAX_DRAWS = 1_000

/**
 * `fc.gen()` leaves the random generator where it was, so all elements of an array would draw the same values. This one
 * moves it on.
 */
class RequestChoices extends fc.Arbitrary<fc.GeneratorValue> {
  readonly #inner = fc.gen()

  override generate(random: fc.Random, biasFactor: number | undefined): fc.Value<fc.GeneratorValue> {
    // A copy of the value is drawn again from this generator, so it must not move.
    const value = this.#inner.generate(random.clone(), biasFactor)
    for (let draws = 0; draws < MAX_DRAWS; draws += 1) random.nextInt()
    return value
  }

  override canShrinkWithoutContext(value: unknown): value is fc.GeneratorValue {
    return this.#inner.canShrinkWithoutContext(value)
  }

  override shrink(value: fc.GeneratorValue, context: unknown): fc.Stream<fc.Value<fc.GeneratorValue>> {
    return this.#inner.shrink(value, context)
  }
}

const requestChoices = new RequestChoices()

/** Sequences of requests. fast-check shrinks one by leaving requests out and by shrinking the choices of the others. */
export const createSequence = (maxLength: number): fc.Arbitrary<fc.GeneratorValue[]> =>
  fc.array(requestChoices, { minLength: 1, maxLength, size: 'max' })

const CHANCES = 10_000

export const createChoices = (generate: fc.GeneratorValue): Choices => {
  const draw: Choices['draw'] = arbitrary => generate(toBuilder(arbitrary))
  const below = (limit: number) => draw(toIndex(limit))
  return {
    draw,
    below,
    chance: probability => below(CHANCES) >= CHANCES * (1 - probability),
    pick(items) {
      if (items.length === 0) throw new RangeError('no items to pick from')
      return items[below(items.length)] as (typeof items)[number]
    },
    times: (count, make) => Array.from({ length: count }, make),
  }
}

/** A map that drops the upper half of its keys, in their order, as long as its values are too heavy. */
export class BoundedMap<Value> {
  readonly #maxWeight: number
  readonly #weigh: (value: Value) => number
  readonly #values = new Map<string, Value>()
  #weight = 0
  #end: string | null = null

  constructor(maxWeight: number, weigh: (value: Value) => number) {
    this.#maxWeight = maxWeight
    this.#weigh = weigh
  }

  /** The last key that the map accepts; null: it accepts all. */
  get end(): string | null {
    return this.#end
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  entries(): MapIterator<[string, Value]> {
    return this.#values.entries()
  }

  set(key: string, value: Value): void {
    if (this.#end !== null && key > this.#end) return
    const before = this.#values.get(key)
    this.#weight += this.#weigh(value) - (before === undefined ? 0 : this.#weigh(before))
    this.#values.set(key, value)
    // A single key stays, however heavy it is.
    while (this.#weight > this.#maxWeight && this.#values.size > 1) this.#dropUpperHalf()
  }

  clear(): void {
    this.#values.clear()
    this.#weight = 0
    this.#end = null
  }

  #dropUpperHalf(): void {
    const keys = [...this.#values.keys()].sort()
    const half = Math.ceil(keys.length / 2)
    this.#end = keys[half - 1] ?? null
    for (const key of keys.slice(half)) {
      const value = this.#values.get(key)
      if (value !== undefined) this.#weight -= this.#weigh(value)
      this.#values.delete(key)
    }
  }
}

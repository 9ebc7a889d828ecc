/** How many items a result lists. */
export const MAX_LISTED = 1_000

/**
 * Collects the first `MAX_LISTED` items, and counts all. What takes something away is listed in place of what does not, so that
 * nobody agrees to it unseen.
 */
export class Listing<Item> {
  readonly items: Item[] = []
  count = 0
  readonly #takesAway: (item: Item) => boolean
  /** Items of the list that can be left out. */
  #harmlessCount = 0

  constructor(takesAway: (item: Item) => boolean = () => false) {
    this.#takesAway = takesAway
  }

  add(items: readonly Item[]): void {
    this.count += items.length
    for (const item of items) {
      const isHarmless = !this.#takesAway(item)
      if (this.items.length === MAX_LISTED && !this.#makeRoom(isHarmless)) continue
      this.items.push(item)
      if (isHarmless) this.#harmlessCount += 1
    }
  }

  #makeRoom(isHarmless: boolean): boolean {
    if (isHarmless || this.#harmlessCount === 0) return false
    const last = this.items.findLastIndex(item => !this.#takesAway(item))
    this.items.splice(last, 1)
    this.#harmlessCount -= 1
    return true
  }
}

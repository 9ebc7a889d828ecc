/** How many items a result lists. */
export const MAX_LISTED = 1_000

/** Collects the first `MAX_LISTED` items, and counts all. */
export class Listing<Item> {
  readonly items: Item[] = []
  count = 0

  add(items: readonly Item[]): void {
    this.count += items.length
    this.items.push(...items.slice(0, MAX_LISTED - this.items.length))
  }
}

/** Pages of items. The return value is the cursor of the next page, or undefined if there are no more items. */
export type Pages<Item> = AsyncGenerator<readonly Item[], string | undefined, void>

export interface Pagination<Item> {
  /** Up to `size` items after `cursor`, or from the start if it is undefined. */
  readonly fetch: (cursor: string | undefined, size: number) => Promise<readonly Item[]>
  readonly toCursor: (item: Item) => string
  readonly cursor?: string | undefined
  /** Maximum number of items; undefined: all. */
  readonly limit?: number | undefined
}

/** Items per statement: enough to amortize the round trip, yet only about 50 KB of text for a slow client. */
const PAGE_SIZE = 250

/**
 * Keyset pagination without a database cursor, so a slow or lost client holds no connection and no snapshot. Each page
 * reads the current state; an item that exists throughout is listed exactly once.
 */
export async function* paginate<Item>({ fetch, toCursor, cursor: start, limit }: Pagination<Item>): Pages<Item> {
  let cursor = start
  let left = limit ?? Number.POSITIVE_INFINITY
  while (left > 0) {
    const size = Math.min(PAGE_SIZE, left)
    const page = await fetch(cursor, size)
    const last = page.at(-1)
    if (last !== undefined) {
      cursor = toCursor(last)
      left -= page.length
      yield page
    }
    if (page.length < size) return undefined
  }
  return (await fetch(cursor, 1)).length > 0 ? cursor : undefined
}

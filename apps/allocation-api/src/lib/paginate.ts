/** Pages of items; what it returns at the end is the position to go on from, undefined when there is nothing more. */
export type Pages<Item> = AsyncGenerator<readonly Item[], string | undefined, void>

export interface Pagination<Item> {
  /** Up to `size` items that follow `position`; undefined: from the beginning. */
  readonly fetch: (position: string | undefined, size: number) => Promise<readonly Item[]>
  readonly positionOf: (item: Item) => string
  readonly start?: string | undefined
  /** Items at the most; undefined: all of them. */
  readonly limit?: number | undefined
}

/**
 * Items a statement: enough to make the round trip cheap, few enough to be nothing in memory. A slow reader has one page
 * of text waiting for it, some 50 KB.
 */
const PAGE = 250

/**
 * Reads by position and not through a cursor of the database: a reader that is slow, or gone, then holds no connection
 * and no snapshot. Each page is as of its own moment; an item that is there all the time is listed exactly once.
 */
export async function* paginate<Item>({ fetch, positionOf, start, limit }: Pagination<Item>): Pages<Item> {
  let position = start
  let left = limit ?? Number.POSITIVE_INFINITY
  while (left > 0) {
    const size = Math.min(PAGE, left)
    const page = await fetch(position, size)
    const last = page.at(-1)
    if (last !== undefined) {
      position = positionOf(last)
      left -= page.length
      yield page
    }
    if (page.length < size) return undefined
  }
  return (await fetch(position, 1)).length > 0 ? position : undefined
}

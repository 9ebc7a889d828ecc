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

/** Items per statement: enough to amortize the round trip, yet less than a millisecond of this process's time. */
const PAGE_SIZE = 100

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

/** Reads a page when it is its turn. */
export type PageQueue = <Page>(fetch: () => Promise<Page>) => Promise<Page>

export interface PageQueueOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Resolves after `ms`. */
  readonly sleep: (ms: number) => Promise<unknown>
}

/** The longest pause after a page, as a multiple of its duration: the pages of many readers take a tenth of the time. */
const MAX_PAUSE_FACTOR = 9
/** Milliseconds. On a host that is overloaded, where each page takes long, the lists still make progress. */
const MAX_PAUSE_MS = 25
/** The next page is read even if the current one takes longer. Milliseconds. */
const MAX_TURN_MS = 100

/**
 * Reads the pages of all lists one at a time, in the order of the requests, and pauses between them, the longer the more
 * readers wait. So any number of readers delays other requests little, and a single one never waits.
 */
export const createPageQueue = ({ now, sleep }: PageQueueOptions): PageQueue => {
  let previous: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return async <Page>(fetch: () => Promise<Page>): Promise<Page> => {
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const isFree = previous
    previous = ended
    waiting += 1
    await isFree
    waiting -= 1
    const startedAt = now()
    const page = fetch()
    let isHandedOver = false
    const handOver = () => {
      if (isHandedOver) return
      isHandedOver = true
      // Before the reader of this page can request its next one, so those who wait are others.
      const pauseMs = Math.min((now() - startedAt) * Math.min(waiting, MAX_PAUSE_FACTOR), MAX_PAUSE_MS)
      if (pauseMs > 0) void sleep(pauseMs).then(() => end())
      else end()
    }
    page.then(handOver, handOver)
    void sleep(MAX_TURN_MS).then(handOver)
    return page
  }
}

/** What a client asks of a list. */
export interface PageQuery {
  readonly limit?: number | undefined
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined
}

/** A page that one statement reads, in the order of the list. */
export interface Page<Item> {
  readonly items: readonly Item[]
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined
}

const DEFAULT_PAGE_SIZE = 100
const MAX_PAGE_SIZE = 1_000

/** Reads one item more than the page has, to know whether another page follows. The limit is 100 by default and at most 1,000. */
export const readPage = async <Item>(
  { limit = DEFAULT_PAGE_SIZE }: PageQuery,
  read: (size: number) => Promise<readonly Item[]>,
  toCursor: (last: Item) => string,
): Promise<Page<Item>> => {
  const size = Math.min(limit, MAX_PAGE_SIZE)
  const rows = await read(size + 1)
  const items = rows.slice(0, size)
  const last = items.at(-1)
  return { items, nextCursor: rows.length > size && last ? toCursor(last) : undefined }
}

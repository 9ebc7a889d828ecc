import { describe, expect, test } from 'vitest'
import { createPageQueue, paginate } from './paginate.ts'

const names = (count: number) => Array.from({ length: count }, (_, i) => `n${String(i).padStart(5, '0')}`)

/** Reads all pages. `fetches` lists the calls of `fetch`. */
const read = async (items: readonly string[], options: { cursor?: string; limit?: number } = {}) => {
  const fetches: [cursor: string | undefined, size: number][] = []
  const pages = paginate<string>({
    fetch: async (cursor, size) => {
      fetches.push([cursor, size])
      return items.filter(item => cursor === undefined || item > cursor).slice(0, size)
    },
    toCursor: item => item,
    ...options,
  })
  const listed: (readonly string[])[] = []
  let step = await pages.next()
  while (!step.done) {
    listed.push(step.value)
    step = await pages.next()
  }
  return { fetches, listed, all: listed.flat(), next: step.value }
}

describe('without limit', () => {
  test.each([0, 1, 99, 100, 101, 200, 250])('lists each of %i items once', async count => {
    const { all, next } = await read(names(count))
    expect(all).toEqual(names(count))
    expect(next).toBeUndefined()
  })

  test('each statement reads at most a page', async () => {
    const { fetches, listed } = await read(names(250))
    expect(fetches.map(([, size]) => size)).toEqual([100, 100, 100])
    expect(listed.map(page => page.length)).toEqual([100, 100, 50])
  })

  test('yields no empty page', async () => {
    expect((await read([])).listed).toEqual([])
    expect((await read(names(100))).listed).toHaveLength(1)
  })

  test('starts after the cursor', async () => {
    expect((await read(names(5), { cursor: 'n00002' })).all).toEqual(['n00003', 'n00004'])
  })
})

describe('with a limit', () => {
  test.each([
    ['fewer than exist', 5, 3, 3, 'n00002'],
    ['one fewer than exist', 5, 4, 4, 'n00003'],
    ['exactly as many as exist', 5, 5, 5, undefined],
    ['more than exist', 5, 6, 5, undefined],
    ['one', 5, 1, 1, 'n00000'],
    ['no items', 0, 1, 0, undefined],
    ['a whole page', 100, 100, 100, undefined],
    ['a whole page, and more items', 101, 100, 100, 'n00099'],
    ['more than a page', 250, 150, 150, 'n00149'],
    ['more than a page, exactly as many as exist', 150, 150, 150, undefined],
  ])('%s: the next cursor is that of the last item if there are more items', async (_, count, limit, listed, next) => {
    const result = await read(names(count), { limit })
    expect([result.all.length, result.next]).toEqual([listed, next])
  })

  test('continuing from each cursor lists every item once', async () => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page: { all: string[]; next: string | undefined } = await read(names(10), {
        limit: 3,
        ...(cursor && { cursor }),
      })
      seen.push(...page.all)
      cursor = page.next
    } while (cursor)
    expect(seen).toEqual(names(10))
  })

  test('reads one item more than it lists, to find out whether there are more', async () => {
    expect((await read(names(50), { limit: 3 })).fetches).toEqual([
      [undefined, 3],
      ['n00002', 1],
    ])
  })
})

test('does not fetch a page ahead of its reader', async () => {
  let fetched = 0
  const pages = paginate<string>({
    fetch: async (_, size) => {
      fetched += 1
      return names(size)
    },
    toCursor: item => item,
  })
  await pages.next()
  expect(fetched).toBe(1)
  await pages.return(undefined)
  expect(fetched).toBe(1)
})

describe('the pages of several lists', () => {
  /** A queue over a fake clock, on which a page takes as long as the test says. */
  const setUp = () => {
    let clock = 0
    const sleeps: { readonly until: number; readonly resolve: () => void }[] = []
    const started: string[] = []
    const sleep = (ms: number) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      sleeps.push({ until: clock + ms, resolve })
      return promise
    }
    const queue = createPageQueue({ now: () => clock, sleep })
    const read = (name: string, ms: number) =>
      queue(async () => {
        started.push(`${name} at ${clock}`)
        await sleep(ms)
        return name
      })
    const advanceTo = async (end: number) => {
      for (; clock < end; clock += 1) {
        for (const { until, resolve } of sleeps) if (until <= clock) resolve()
        await new Promise(resolve => setImmediate(resolve))
      }
    }
    return { queue, read, advanceTo, started }
  }

  test('a single reader never waits', async () => {
    const { read, advanceTo, started } = setUp()
    void read('a', 10).then(() => read('b', 10).then(() => read('c', 10)))
    await advanceTo(100)
    expect(started).toEqual(['a at 0', 'b at 10', 'c at 20'])
  })

  test('are read one at a time, in order, with a pause that grows with the number of readers', async () => {
    const { read, advanceTo, started } = setUp()
    const pages = Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map(name => read(name, 5)))
    await advanceTo(200)
    expect(started).toEqual(['a at 0', 'b at 30', 'c at 55', 'd at 75', 'e at 90', 'f at 100'])
    expect(await pages).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
  })

  test('a page that takes long or fails does not keep the others waiting', async () => {
    const { queue, read, advanceTo, started } = setUp()
    void read('a', 100_000)
    void read('b', 80)
    const failed = queue(() => Promise.reject(new Error('no page'))).catch(error => error.message)
    void read('d', 1)
    await advanceTo(500)
    // The page that failed at once needs no pause.
    expect(started).toEqual(['a at 0', 'b at 125', 'd at 230'])
    expect(await failed).toBe('no page')
  })
})

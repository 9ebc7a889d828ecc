import { describe, expect, test } from 'vitest'
import { paginate } from './paginate.ts'

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
  test.each([0, 1, 249, 250, 251, 500, 625])('lists each of %i items once', async count => {
    const { all, next } = await read(names(count))
    expect(all).toEqual(names(count))
    expect(next).toBeUndefined()
  })

  test('each statement reads at most a page', async () => {
    const { fetches, listed } = await read(names(625))
    expect(fetches.map(([, size]) => size)).toEqual([250, 250, 250])
    expect(listed.map(page => page.length)).toEqual([250, 250, 125])
  })

  test('yields no empty page', async () => {
    expect((await read([])).listed).toEqual([])
    expect((await read(names(250))).listed).toHaveLength(1)
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
    ['a whole page', 250, 250, 250, undefined],
    ['a whole page, and more items', 251, 250, 250, 'n00249'],
    ['more than a page', 625, 375, 375, 'n00374'],
    ['more than a page, exactly as many as exist', 375, 375, 375, undefined],
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

import { describe, expect, test } from 'vitest'
import { paginate } from './paginate.ts'

const names = (count: number) => Array.from({ length: count }, (_, i) => `n${String(i).padStart(5, '0')}`)

/** Reads everything; tells which statements were made and what the reader was given. */
const read = async (items: readonly string[], options: { start?: string; limit?: number } = {}) => {
  const asked: [position: string | undefined, size: number][] = []
  const pages = paginate<string>({
    fetch: async (position, size) => {
      asked.push([position, size])
      return items.filter(item => position === undefined || item > position).slice(0, size)
    },
    positionOf: item => item,
    ...options,
  })
  const listed: (readonly string[])[] = []
  let step = await pages.next()
  while (!step.done) {
    listed.push(step.value)
    step = await pages.next()
  }
  return { asked, listed, all: listed.flat(), next: step.value }
}

describe('without limit', () => {
  test.each([0, 1, 249, 250, 251, 500, 625])('%i items are all listed, each once', async count => {
    const { all, next } = await read(names(count))
    expect(all).toEqual(names(count))
    expect(next).toBeUndefined()
  })

  test('no statement asks for more than a page', async () => {
    const { asked, listed } = await read(names(625))
    expect(asked.map(([, size]) => size)).toEqual([250, 250, 250])
    expect(listed.map(page => page.length)).toEqual([250, 250, 125])
  })

  test('there is no empty page', async () => {
    expect((await read([])).listed).toEqual([])
    expect((await read(names(250))).listed).toHaveLength(1)
  })

  test('it begins after the start', async () => {
    expect((await read(names(5), { start: 'n00002' })).all).toEqual(['n00003', 'n00004'])
  })
})

describe('with a limit', () => {
  test.each([
    ['fewer than there are', 5, 3, 3, 'n00002'],
    ['one fewer than there are', 5, 4, 4, 'n00003'],
    ['exactly what is there', 5, 5, 5, undefined],
    ['more than there are', 5, 6, 5, undefined],
    ['one', 5, 1, 1, 'n00000'],
    ['of nothing', 0, 1, 0, undefined],
    ['a whole page', 250, 250, 250, undefined],
    ['a whole page of more', 251, 250, 250, 'n00249'],
    ['more than a page', 625, 375, 375, 'n00374'],
    ['more than a page and all that is there', 375, 375, 375, undefined],
  ])(
    '%s: the position to go on from is that of the last item, when there is more',
    async (_, count, limit, listed, next) => {
      const result = await read(names(count), { limit })
      expect([result.all.length, result.next]).toEqual([listed, next])
    },
  )

  test('going on from each position lists everything once', async () => {
    const seen: string[] = []
    let start: string | undefined
    do {
      const page: { all: string[]; next: string | undefined } = await read(names(10), {
        limit: 3,
        ...(start && { start }),
      })
      seen.push(...page.all)
      start = page.next
    } while (start)
    expect(seen).toEqual(names(10))
  })

  test('no more is read than is listed, but for the one item that tells whether there is more', async () => {
    expect((await read(names(50), { limit: 3 })).asked).toEqual([
      [undefined, 3],
      ['n00002', 1],
    ])
  })
})

test('the next page is not read before it is asked for', async () => {
  let fetched = 0
  const pages = paginate<string>({
    fetch: async (_, size) => {
      fetched += 1
      return names(size)
    },
    positionOf: item => item,
  })
  await pages.next()
  expect(fetched).toBe(1)
  await pages.return(undefined)
  expect(fetched).toBe(1)
})

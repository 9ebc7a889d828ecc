import { expect, test } from 'vitest'
import { type BatchResult, bisect } from './bisect.ts'

type Suspects = 'none' | 'the culprit' | 'an innocent item' | 'every item'

/** Accepts a batch without faulty items; a rejection names `suspects`. */
const provider = (
  faulty: readonly number[],
  { suspects = 'none' as Suspects, isCertain = false, failsAt = 0 } = {},
) => {
  const accepted: number[] = []
  const batches: number[][] = []
  const attempt = async (items: readonly number[]): Promise<BatchResult<number, string>> => {
    batches.push([...items])
    if (batches.length === failsAt) return { kind: 'failed', failure: 'down' }
    const culprits = items.filter(item => faulty.includes(item))
    if (culprits.length === 0) {
      accepted.push(...items)
      return { kind: 'accepted' }
    }
    const others = items.filter(item => !faulty.includes(item))
    const named = {
      none: [],
      'the culprit': culprits.slice(0, 1),
      'an innocent item': others.slice(0, 1),
      'every item': items,
    }
    return { kind: 'rejected', reason: `no ${culprits[0]}`, suspects: named[suspects], isCertain }
  }
  return { accepted, batches, attempt }
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)
const sorted = (items: Iterable<number>) => [...items].sort((a, b) => a - b)

test.each<{ faulty: number[]; suspects: Suspects; isCertain: boolean; attempts: number }>([
  { faulty: [], suspects: 'none', isCertain: false, attempts: 1 },
  { faulty: [7], suspects: 'none', isCertain: false, attempts: 15 },
  { faulty: [7], suspects: 'the culprit', isCertain: true, attempts: 2 },
  { faulty: [7], suspects: 'the culprit', isCertain: false, attempts: 4 },
  { faulty: [7], suspects: 'an innocent item', isCertain: false, attempts: 27 },
  { faulty: [7], suspects: 'every item', isCertain: false, attempts: 15 },
  { faulty: [0, 63, 64, 99], suspects: 'none', isCertain: false, attempts: 45 },
  { faulty: [0, 63, 64, 99], suspects: 'the culprit', isCertain: true, attempts: 5 },
  { faulty: upTo(100), suspects: 'none', isCertain: false, attempts: 199 },
])(
  'of 100 items, $faulty are faulty, the response names $suspects (certain: $isCertain): all others are accepted',
  async ({ faulty, suspects, isCertain, attempts }) => {
    const { accepted, batches, attempt } = provider(faulty, { suspects, isCertain })
    const result = await bisect([upTo(100)], attempt, { maxRejections: 1_000 })
    expect(result).toEqual({
      kind: 'bisected',
      rejected: new Map(faulty.map(item => [item, `no ${item}`])),
      skipped: [],
    })
    expect(sorted(accepted)).toEqual(upTo(100).filter(item => !faulty.includes(item)))
    expect(batches.length).toBeLessThanOrEqual(attempts)
  },
)

test('a faulty item in one batch does not delay the next batches', async () => {
  const { accepted, attempt } = provider([2])
  await bisect([[1, 2], [], [3, 4], [5]], attempt, { maxRejections: 10 })
  expect(accepted).toEqual([1, 3, 4, 5])
})

test('the search stops after maxRejections: it has found some faulty items and reports the rest as skipped', async () => {
  const { accepted, attempt } = provider(upTo(100))
  const result = await bisect([upTo(100), [200]], attempt, { maxRejections: 20 })
  if (result.kind !== 'bisected') throw new Error(result.kind)
  expect(result.rejected.size).toBeGreaterThan(0)
  expect(sorted([...result.rejected.keys(), ...result.skipped])).toEqual([...upTo(100), 200])
  expect(accepted).toEqual([])
})

test('the search stops at its timeout, but only after progress: each call gets further', async () => {
  let clock = 0
  const { attempt, accepted } = provider([0])
  const slow = (items: readonly number[]) => {
    clock += 1_000
    return attempt(items)
  }
  const result = await bisect([upTo(16)], slow, { maxRejections: 50, timeoutMs: 3_000, now: () => clock })
  expect(result).toEqual({ kind: 'bisected', rejected: new Map([[0, 'no 0']]), skipped: upTo(16).slice(1) })
  expect([clock, accepted]).toEqual([5_000, []])
})

test.each([
  ['every item', upTo(100), 100, 3],
  ['every item of two', upTo(2), 2, 3],
  ['the last half', upTo(100).slice(50), 100, 110],
  ['the first', [0], 100, 4],
  ['the last', [99], 100, 4],
])('a rejection that may not be about an item, of %s', async (_, faulty, count, attempts) => {
  const { batches, attempt } = provider(faulty)
  const doubtful = async (items: readonly number[]) => ({ ...(await attempt(items)), isDoubtful: true })
  const result = await bisect([upTo(count)], doubtful, { maxRejections: 1_000 })
  if (faulty.length === count)
    expect(result).toEqual({ kind: 'refused', reason: 'no 0'.replace('0', String(count - 1)) })
  else expect(result).toMatchObject({ rejected: new Map(faulty.map(item => [item, `no ${item}`])) })
  expect(batches.length).toBeLessThanOrEqual(attempts)
})

test('a failure ends the search and blames no item; accepted batches stay', async () => {
  const { accepted, attempt } = provider([], { failsAt: 2 })
  expect(await bisect([[1], [2], [3]], attempt, { maxRejections: 10 })).toEqual({ kind: 'failed', failure: 'down' })
  expect(accepted).toEqual([1])
})

test('no items: no attempt', async () => {
  const { batches, attempt } = provider([])
  expect(await bisect([], attempt, { maxRejections: 10 })).toEqual({
    kind: 'bisected',
    rejected: new Map(),
    skipped: [],
  })
  expect(batches).toEqual([])
})

import { expect, test } from 'vitest'
import { type BatchResult, bisect } from './bisect.ts'

type Said = 'nothing' | 'the culprit' | 'somebody else' | 'all of them'

/** Takes a batch when nothing faulty is in it, and answers a rejection with `said` about who is to blame. */
const provider = (faulty: readonly number[], { said = 'nothing' as Said, isCertain = false, failsAt = 0 } = {}) => {
  const taken: number[] = []
  const batches: number[][] = []
  const attempt = async (items: readonly number[]): Promise<BatchResult<number, string>> => {
    batches.push([...items])
    if (batches.length === failsAt) return { kind: 'failed', failure: 'down' }
    const culprits = items.filter(item => faulty.includes(item))
    if (culprits.length === 0) {
      taken.push(...items)
      return { kind: 'accepted' }
    }
    const others = items.filter(item => !faulty.includes(item))
    const named = {
      nothing: [],
      'the culprit': culprits.slice(0, 1),
      'somebody else': others.slice(0, 1),
      'all of them': items,
    }
    return { kind: 'rejected', reason: `no ${culprits[0]}`, suspects: named[said], isCertain }
  }
  return { taken, batches, attempt }
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)
const sorted = (items: Iterable<number>) => [...items].sort((a, b) => a - b)

test.each<{ faulty: number[]; said: Said; isCertain: boolean; attempts: number }>([
  { faulty: [], said: 'nothing', isCertain: false, attempts: 1 },
  { faulty: [7], said: 'nothing', isCertain: false, attempts: 15 },
  { faulty: [7], said: 'the culprit', isCertain: true, attempts: 2 },
  { faulty: [7], said: 'the culprit', isCertain: false, attempts: 4 },
  { faulty: [7], said: 'somebody else', isCertain: false, attempts: 27 },
  { faulty: [7], said: 'all of them', isCertain: false, attempts: 15 },
  { faulty: [0, 63, 64, 99], said: 'nothing', isCertain: false, attempts: 45 },
  { faulty: [0, 63, 64, 99], said: 'the culprit', isCertain: true, attempts: 5 },
  { faulty: upTo(100), said: 'nothing', isCertain: false, attempts: 199 },
])(
  'of 100 items, $faulty faulty, told of $said (certain: $isCertain): the others are taken',
  async ({ faulty, said, isCertain, attempts }) => {
    const { taken, batches, attempt } = provider(faulty, { said, isCertain })
    const result = await bisect([upTo(100)], attempt, { maxRejections: 1_000 })
    expect(result).toEqual({
      kind: 'bisected',
      rejected: new Map(faulty.map(item => [item, `no ${item}`])),
      skipped: [],
    })
    expect(sorted(taken)).toEqual(upTo(100).filter(item => !faulty.includes(item)))
    expect(batches.length).toBeLessThanOrEqual(attempts)
  },
)

test('a faulty item of one batch does not keep the next batches back', async () => {
  const { taken, attempt } = provider([2])
  await bisect([[1, 2], [], [3, 4], [5]], attempt, { maxRejections: 10 })
  expect(taken).toEqual([1, 3, 4, 5])
})

test('the search ends after so many rejections: what is left over is neither rejected nor taken, and some was found', async () => {
  const { taken, attempt } = provider(upTo(100))
  const result = await bisect([upTo(100), [200]], attempt, { maxRejections: 20 })
  if (result.kind !== 'bisected') throw new Error(result.kind)
  expect(result.rejected.size).toBeGreaterThan(0)
  expect(sorted([...result.rejected.keys(), ...result.skipped])).toEqual([...upTo(100), 200])
  expect(taken).toEqual([])
})

test('the search ends when its time is up, but not before one was taken or found: each call gets further', async () => {
  let clock = 0
  const { attempt, taken } = provider([0])
  const slow = (items: readonly number[]) => {
    clock += 1_000
    return attempt(items)
  }
  const result = await bisect([upTo(16)], slow, { maxRejections: 50, timeoutMs: 3_000, now: () => clock })
  expect(result).toEqual({ kind: 'bisected', rejected: new Map([[0, 'no 0']]), skipped: upTo(16).slice(1) })
  expect([clock, taken]).toEqual([5_000, []])
})

test('a failure is about none of them and ends it; what was taken by then stays', async () => {
  const { taken, attempt } = provider([], { failsAt: 2 })
  expect(await bisect([[1], [2], [3]], attempt, { maxRejections: 10 })).toEqual({ kind: 'failed', failure: 'down' })
  expect(taken).toEqual([1])
})

test('nothing to send is nothing to ask', async () => {
  const { batches, attempt } = provider([])
  expect(await bisect([], attempt, { maxRejections: 10 })).toEqual({
    kind: 'bisected',
    rejected: new Map(),
    skipped: [],
  })
  expect(batches).toEqual([])
})

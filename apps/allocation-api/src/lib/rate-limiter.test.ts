import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createAttempts } from './rate-limiter.ts'

const allowed = { kind: 'allowed' }
const tooMany = (retryAfterSeconds: number) => ({ kind: 'too-many-attempts', retryAfterSeconds })
const times = <Result>(count: number, work: () => Result) => Array.from({ length: count }, work)

describe('a caller', () => {
  test.each([
    [1, 0.7],
    [2, 1_000],
    // In these, sums of floating point would make the last of the burst early.
    [7, 516.5728029751697],
    [22, 9.768488009940295],
    [57, 20_302.642547464122],
    [10_000, 0.7],
  ])('may make %i at once, and not one more', (perMinute, now) => {
    const attempt = createAttempts({ perMinute, callers: 10 })
    expect(times(perMinute, () => attempt('a', now)).every(({ kind }) => kind === 'allowed')).toBe(true)
    expect(attempt('a', now)).toEqual(tooMany(Math.ceil(60 / perMinute)))
  })

  test('gets one back at a time, and all of them after a minute', () => {
    const attempt = createAttempts({ perMinute: 20, callers: 10 })
    times(20, () => attempt('a', 1_000))
    expect(attempt('a', 3_999)).toEqual(tooMany(1))
    expect(attempt('a', 4_000)).toEqual(allowed)
    expect(attempt('a', 4_000)).toEqual(tooMany(3))
    expect(attempt('a', 4_500)).toEqual(tooMany(3))
    expect(times(21, () => attempt('a', 64_000)).map(({ kind }) => kind)).toEqual([
      ...times(20, () => 'allowed'),
      'too-many-attempts',
    ])
  })

  test('who is refused is not kept out longer for having asked', () => {
    const attempt = createAttempts({ perMinute: 1, callers: 10 })
    attempt('a', 0)
    times(100, () => attempt('a', 30_000))
    expect(attempt('a', 30_000)).toEqual(tooMany(30))
    expect(attempt('a', 60_000)).toEqual(allowed)
  })

  test('takes nothing from another', () => {
    const attempt = createAttempts({ perMinute: 2, callers: 10 })
    times(5, () => attempt('a', 0))
    expect(times(3, () => attempt('b', 0))).toEqual([allowed, allowed, tooMany(30)])
  })
})

test('of too many callers the one not seen for the longest time is forgotten, and no other', () => {
  const attempt = createAttempts({ perMinute: 1, callers: 3 })
  for (const caller of ['a', 'b', 'c']) attempt(caller, 0)
  // Seen again, though refused.
  expect(attempt('a', 1)).toEqual(tooMany(60))
  attempt('d', 1)
  expect(attempt('a', 2).kind).toBe('too-many-attempts')
  expect(attempt('c', 2).kind).toBe('too-many-attempts')
  expect(attempt('d', 2).kind).toBe('too-many-attempts')
  expect(attempt('b', 2)).toEqual(allowed)
})

test('in no minute more than twice the rate, and who waits as told is allowed', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 30 }),
      fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 200 }),
      (perMinute, pauses) => {
        const attempt = createAttempts({ perMinute, callers: 1 })
        const at: number[] = []
        let now = 0
        for (const pause of pauses) {
          now += pause
          const outcome = attempt('a', now)
          if (outcome.kind === 'allowed') at.push(now)
          else if (createdAgain(perMinute, at, now, outcome.retryAfterSeconds) !== 'allowed') return false
        }
        return at.every((start, index) => at.slice(index).filter(time => time < start + 60_000).length < 2 * perMinute)
      },
    ),
    { numRuns: 200 },
  )
})

/** What becomes of the same history with one more attempt, made when the answer at `now` had said. */
const createdAgain = (perMinute: number, at: readonly number[], now: number, retryAfterSeconds: number) => {
  const attempt = createAttempts({ perMinute, callers: 1 })
  for (const time of at) attempt('a', time)
  return attempt('a', now + retryAfterSeconds * 1_000).kind
}

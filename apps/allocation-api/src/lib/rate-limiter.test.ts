import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createRateLimiter, toRateLimitKey } from './rate-limiter.ts'

const allowed = { kind: 'allowed' }
const tooMany = (retryAfterSeconds: number) => ({ kind: 'too-many-attempts', retryAfterSeconds })
const times = <Result>(count: number, work: () => Result) => Array.from({ length: count }, work)

describe('a caller', () => {
  test.each([
    [1, 0.7],
    [2, 1_000],
    // Floating-point sums would reject the last attempt of these bursts.
    [7, 516.5728029751697],
    [22, 9.768488009940295],
    [57, 20_302.642547464122],
    [10_000, 0.7],
  ])('may make a burst of %i, and not one more', (perMinute, now) => {
    const limit = createRateLimiter({ perMinute, maxCallers: 10 })
    expect(times(perMinute, () => limit('a', now)).every(({ kind }) => kind === 'allowed')).toBe(true)
    expect(limit('a', now)).toEqual(tooMany(Math.ceil(60 / perMinute)))
  })

  test('regains one attempt at a time, and all of them after a minute', () => {
    const limit = createRateLimiter({ perMinute: 20, maxCallers: 10 })
    times(20, () => limit('a', 1_000))
    expect(limit('a', 3_999)).toEqual(tooMany(1))
    expect(limit('a', 4_000)).toEqual(allowed)
    expect(limit('a', 4_000)).toEqual(tooMany(3))
    expect(limit('a', 4_500)).toEqual(tooMany(3))
    expect(times(21, () => limit('a', 64_000)).map(({ kind }) => kind)).toEqual([
      ...times(20, () => 'allowed'),
      'too-many-attempts',
    ])
  })

  test('is not blocked longer because of rejected attempts', () => {
    const limit = createRateLimiter({ perMinute: 1, maxCallers: 10 })
    limit('a', 0)
    times(100, () => limit('a', 30_000))
    expect(limit('a', 30_000)).toEqual(tooMany(30))
    expect(limit('a', 60_000)).toEqual(allowed)
  })

  test('does not use the attempts of another caller', () => {
    const limit = createRateLimiter({ perMinute: 2, maxCallers: 10 })
    times(5, () => limit('a', 0))
    expect(times(3, () => limit('b', 0))).toEqual([allowed, allowed, tooMany(30)])
  })
})

test('removes only the least recently seen caller', () => {
  const limit = createRateLimiter({ perMinute: 1, maxCallers: 3 })
  for (const caller of ['a', 'b', 'c']) limit(caller, 0)
  // Seen again, although rejected.
  expect(limit('a', 1)).toEqual(tooMany(60))
  limit('d', 1)
  expect(limit('a', 2).kind).toBe('too-many-attempts')
  expect(limit('c', 2).kind).toBe('too-many-attempts')
  expect(limit('d', 2).kind).toBe('too-many-attempts')
  expect(limit('b', 2)).toEqual(allowed)
})

test('allows less than twice the rate in any minute, and allows an attempt after retryAfterSeconds', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 30 }),
      fc.array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 200 }),
      (perMinute, pauses) => {
        const limit = createRateLimiter({ perMinute, maxCallers: 1 })
        const at: number[] = []
        let now = 0
        for (const pause of pauses) {
          now += pause
          const outcome = limit('a', now)
          if (outcome.kind === 'allowed') at.push(now)
          else if (retryLater(perMinute, at, now, outcome.retryAfterSeconds) !== 'allowed') return false
        }
        return at.every((start, index) => at.slice(index).filter(time => time < start + 60_000).length < 2 * perMinute)
      },
    ),
    { numRuns: 200 },
  )
})

/** The outcome of an attempt after the same history, `retryAfterSeconds` later. */
const retryLater = (perMinute: number, at: readonly number[], now: number, retryAfterSeconds: number) => {
  const limit = createRateLimiter({ perMinute, maxCallers: 1 })
  for (const time of at) limit('a', time)
  return limit('a', now + retryAfterSeconds * 1_000).kind
}

test.each([
  ['203.0.113.10', '203.0.113.10'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
  ['2001:db8:1::6', '2001:db8:1:0::/64'],
  ['2001:db8::3:4:5:6', '2001:db8:0:0::/64'],
  ['2001:db8::2:3:4:5:6', '2001:db8:0:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::203.0.113.10', '64:ff9b:0:0::/64'],
  [null, 'unknown'],
])('%s shares the limit of %s', (address, key) => expect(toRateLimitKey(address)).toBe(key))

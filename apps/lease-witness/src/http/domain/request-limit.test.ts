import { describe, expect, test } from 'vitest'
import { RequestLimit } from './request-limit.ts'

const START = 1_800_000_000_000

/** Sends `count` requests at one time. Returns how many are within the limit. */
const takeMany = (limit: RequestLimit, key: string, maxPerMinute: number, now: number, count: number): number =>
  Array.from({ length: count }, () => limit.take(key, maxPerMinute, now)).filter(waitMs => waitMs === 0).length

describe('a request limit', () => {
  test.each([1, 7, 60, 120_000])('of %i allows as many at once', maxPerMinute => {
    expect(takeMany(new RequestLimit(), 'a', maxPerMinute, START, maxPerMinute + 3)).toBe(maxPerMinute)
  })

  test('then allows one per interval, and says when', () => {
    const limit = new RequestLimit()
    takeMany(limit, 'a', 60, START, 60)
    expect(limit.take('a', 60, START)).toBeCloseTo(1_000)
    expect(limit.take('a', 60, START + 400)).toBeCloseTo(600)
    expect(limit.take('a', 60, START + 1_000)).toBe(0)
    expect(limit.take('a', 60, START + 1_000)).toBeCloseTo(1_000)
  })

  test('is full again after a minute without requests', () => {
    const limit = new RequestLimit()
    takeMany(limit, 'a', 60, START, 60)
    expect(takeMany(limit, 'a', 60, START + 60_000, 100)).toBe(60)
    expect(takeMany(limit, 'a', 60, START + 90_000, 100)).toBe(30)
  })

  test('counts each key alone', () => {
    const limit = new RequestLimit()
    takeMany(limit, 'a', 1, START, 10)
    expect(limit.take('b', 1, START)).toBe(0)
  })

  test('starts again after the clock was set back', () => {
    const limit = new RequestLimit()
    takeMany(limit, 'a', 60, START, 60)
    expect(takeMany(limit, 'a', 60, START - 86_400_000, 100)).toBe(60)
    expect(takeMany(limit, 'a', 60, START - 86_400_000 + 30_000, 100)).toBe(30)
  })
})

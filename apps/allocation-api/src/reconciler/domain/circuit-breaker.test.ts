import { expect, test } from 'vitest'
import { afterFailure, type Breaker, closed, heldBackMs, pauseOf } from './circuit-breaker.ts'

const fail = (breaker: Breaker, now: number, retryAfterMs?: number) =>
  afterFailure(breaker, { now, retryAfterMs, random: 0.5 })

/** A failure as soon as each pause is over. */
const failuresInARow = (count: number): Breaker => {
  let breaker = closed
  for (let i = 0; i < count; i += 1) breaker = fail(breaker, breaker.retryAt)
  return breaker
}

test.each([
  { failures: 1, pause: 500, isOpen: false },
  { failures: 2, pause: 1_000, isOpen: false },
  { failures: 3, pause: 2_000, isOpen: true },
  { failures: 4, pause: 4_000, isOpen: true },
  { failures: 5, pause: 8_000, isOpen: true },
  { failures: 6, pause: 10_000, isOpen: true },
  { failures: 60, pause: 10_000, isOpen: true },
])('after $failures failures in a row: $pause ms until the next, open: $isOpen', ({ failures, pause, isOpen }) => {
  const before = failuresInARow(failures - 1).retryAt
  const breaker = failuresInARow(failures)
  expect(pauseOf(breaker, before)).toBe(pause)
  expect(heldBackMs(breaker, before)).toBe(isOpen ? pause : 0)
  expect(heldBackMs(breaker, breaker.retryAt)).toBe(0)
})

test('calls that fail together count once', () => {
  let breaker = closed
  for (let i = 0; i < 16; i += 1) breaker = fail(breaker, 1_000 + i)
  expect(breaker).toEqual(fail(closed, 1_000))
})

test.each([
  { what: 'longer than our own pause', retryAfterMs: 90_000, held: 90_000 },
  { what: 'shorter', retryAfterMs: 100, held: 500 },
  { what: 'a mistake', retryAfterMs: 10 ** 9, held: 3_600_000 },
])('Retry-After opens it at once: $what', ({ retryAfterMs, held }) => {
  expect(heldBackMs(fail(closed, 0, retryAfterMs), 0)).toBe(held)
})

test('Retry-After of a call that fails while others have failed already is heeded', () => {
  const breaker = fail(fail(closed, 0), 100, 90_000)
  expect(heldBackMs(breaker, 100)).toBe(90_000)
  expect(breaker.failures).toBe(1)
})

test('a pause is spread by a fifth either way', () => {
  expect(afterFailure(closed, { now: 0, random: 0 }).retryAt).toBeCloseTo(400)
  expect(afterFailure(closed, { now: 0, random: 1 }).retryAt).toBeCloseTo(600)
})

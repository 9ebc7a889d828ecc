import { expect, test } from 'vitest'
import { afterFailure, type CircuitBreaker, CLOSED, msUntilRetry, openMs } from './circuit-breaker.ts'

const fail = (breaker: CircuitBreaker, now: number, retryAfterMs?: number) =>
  afterFailure(breaker, { now, retryAfterMs, random: 0.5 })

/** Each failure happens when the pause of the previous one ends. */
const failuresInARow = (count: number): CircuitBreaker => {
  let breaker = CLOSED
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
])('$failures consecutive failures: $pause ms until the next call, open: $isOpen', ({ failures, pause, isOpen }) => {
  const before = failuresInARow(failures - 1).retryAt
  const breaker = failuresInARow(failures)
  expect(msUntilRetry(breaker, before)).toBe(pause)
  expect(openMs(breaker, before)).toBe(isOpen ? pause : 0)
  expect(openMs(breaker, breaker.retryAt)).toBe(0)
})

test('calls that fail at the same time count once', () => {
  let breaker = CLOSED
  for (let i = 0; i < 16; i += 1) breaker = fail(breaker, 1_000 + i)
  expect(breaker).toEqual(fail(CLOSED, 1_000))
})

test.each([
  { what: 'longer than the backoff', retryAfterMs: 90_000, openForMs: 90_000 },
  { what: 'shorter than the backoff', retryAfterMs: 100, openForMs: 500 },
  { what: 'limited to one hour', retryAfterMs: 10 ** 9, openForMs: 3_600_000 },
])('Retry-After opens the circuit: $what', ({ retryAfterMs, openForMs }) => {
  expect(openMs(fail(CLOSED, 0, retryAfterMs), 0)).toBe(openForMs)
})

test('Retry-After of a later failure of the same outage extends the pause', () => {
  const breaker = fail(fail(CLOSED, 0), 100, 90_000)
  expect(openMs(breaker, 100)).toBe(90_000)
  expect(breaker.failures).toBe(1)
})

test('the backoff has a jitter of a fifth either way', () => {
  expect(afterFailure(CLOSED, { now: 0, random: 0 }).retryAt).toBeCloseTo(400)
  expect(afterFailure(CLOSED, { now: 0, random: 1 }).retryAt).toBeCloseTo(600)
})

import { expect, test } from 'vitest'
import { createOutage } from './observer.ts'

const createFixture = () => {
  const clock = { now: 1_000 }
  const outage = createOutage(() => clock.now)
  /** Whether a failure at this time starts an outage. */
  const failAt = (ms: number) => {
    clock.now = ms
    return outage.onFailure()
  }
  const succeedAt = (ms: number) => {
    clock.now = ms
    return outage.onSuccess()
  }
  return { failAt, succeedAt }
}

test('the first failure starts an outage, and the others only count', () => {
  const { failAt } = createFixture()
  expect([1_000, 1_100, 9_000].map(failAt)).toEqual([true, false, false])
})

test('a success ends it when the failures have stopped for 5 s', () => {
  const { failAt, succeedAt } = createFixture()
  for (const ms of [1_000, 2_000, 4_500]) failAt(ms)
  expect(succeedAt(9_499)).toBeNull()
  expect(succeedAt(9_500)).toEqual({ seconds: 3.5, failures: 3 })
  expect(succeedAt(9_501)).toBeNull()
})

test('a failure after a success continues the outage', () => {
  const { failAt, succeedAt } = createFixture()
  failAt(1_000)
  expect(succeedAt(3_000)).toBeNull()
  expect(failAt(5_000)).toBe(false)
  expect(succeedAt(9_000)).toBeNull()
  expect(succeedAt(10_000)).toEqual({ seconds: 4, failures: 2 })
})

test('a failure after the end starts the next outage', () => {
  const { failAt, succeedAt } = createFixture()
  failAt(1_000)
  succeedAt(6_000)
  expect(failAt(6_001)).toBe(true)
})

test('a success without an outage is none', () => {
  expect(createFixture().succeedAt(60_000)).toBeNull()
})

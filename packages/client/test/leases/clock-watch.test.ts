import { expect, test } from 'vitest'
import { ClockWatch, largestStepMs } from './support/clock-watch.ts'

/** Readings of a wall clock: when each began and ended, and by how much the clock was ahead of its end. */
const watch = (readings: readonly (readonly [after: number, at: number, offset: number])[]): ClockWatch => {
  const clock = new ClockWatch()
  for (const [after, at, offset] of readings) clock.observe(at + offset, { after, at })
  return clock
}

test.each([
  ['a clock that is read at once', [[0, 0, 1000] as const, [500, 500, 1000] as const]],
  ['readings within wide bounds', [[0, 900, -450] as const, [950, 1000, -30] as const, [1000, 1500, -400] as const]],
  ['the slewing of NTP', Array.from({ length: 100 }, (_, index) => [index * 1000, index * 1000, index * 0.5] as const)],
])('finds no step in %s', (_, readings) => {
  expect(watch(readings).steps).toEqual([])
})

test.each([
  ['forward', 700, 696],
  ['back', -700, -696],
])('finds a step %s, and its size but for the rounding', (_, offset, byMs) => {
  const clock = watch([
    [0, 0, 0],
    [10, 10, offset],
    [20, 20, offset],
  ])
  expect(clock.steps).toEqual([{ byMs: expect.closeTo(byMs, 0), at: 10 }])
  expect(largestStepMs(clock.steps)).toBeCloseTo(696, 0)
})

test('finds each of two steps that cancel each other out', () => {
  const clock = watch([
    [0, 0, 0],
    [10, 10, 700],
    [20, 20, 0],
  ])
  expect(clock.steps.map(({ byMs }) => Math.sign(byMs))).toEqual([1, -1])
})

test('a step is as large as the bounds of its readings prove', () => {
  const clock = watch([
    [0, 0, 0],
    [0, 500, 700],
  ])
  expect(largestStepMs(clock.steps)).toBeCloseTo(695.5, 0)
  const lessCertain = watch([
    [0, 300, 0],
    [310, 310, 700],
  ])
  expect(largestStepMs(lessCertain.steps)).toBeCloseTo(396, 0)
})

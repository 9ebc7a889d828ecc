import { describe, expect, test } from 'vitest'
import { type CounterSample, createGrid, sumSeries, toRateSeries, toRates } from './series.ts'

const sample = (at: number, requests = 0, errors = 0, requestMs = 0, eventLoopMs = 0): CounterSample => ({
  at,
  requests,
  errors,
  requestMs,
  eventLoopMs,
})

test.each([
  ['a busy interval', sample(100, 10, 1, 50), sample(110, 110, 6, 1_050, 5_000), [10, 0.5, 10, 0.5]],
  ['no request', sample(100, 10), sample(110, 10), [0, 0, null, 0]],
  ['a busy event loop that was measured late', sample(0), sample(10, 0, 0, 0, 11_000), [0, 0, null, 1]],
])('%s', (_, before, after, [requests, errors, mean, loop]) => {
  expect(toRates(before, after)).toEqual({
    requestsPerSecond: requests,
    errorsPerSecond: errors,
    meanMilliseconds: mean,
    eventLoopUtilization: loop,
  })
})

test.each([
  ['the same moment', sample(100, 1), sample(100, 2)],
  ['an earlier moment', sample(100, 1), sample(99, 2)],
])('there is no rate for %s', (_, before, after) => expect(toRates(before, after)).toBeNull())

describe('the rates of a process', () => {
  const perSecond = (startedAt: number, samples: readonly (CounterSample | null)[]) =>
    toRateSeries(startedAt, samples).map(rates => rates?.requestsPerSecond ?? null)

  test('use the sample before the first point', () => {
    expect(perSecond(0, [sample(100, 50), sample(110, 150), sample(120, 160)])).toEqual([10, 1])
  })
  test('count from the start of the process', () => {
    expect(perSecond(105, [null, sample(110, 50), sample(120, 60)])).toEqual([10, 1])
  })
  test('bridge a gap', () => {
    expect(perSecond(0, [sample(100, 0), null, sample(120, 100), null])).toEqual([null, 5, null])
  })
})

test('a sum has the values that are known', () => {
  expect(
    sumSeries(3, [
      [1, null, null],
      [2, 3, null],
    ]),
  ).toEqual([3, 3, null])
  expect(sumSeries(2, [])).toEqual([null, null])
})

test.each([
  [60, 120, 30, 120],
  [60, 500, 10, 360],
  [1, 500, 10, 6],
  [10_080, 100, 6_048, 100],
])('%d minutes in %d points: intervals of %d s, %d of them', (minutes, points, stepSeconds, count) => {
  const { times, ...grid } = createGrid(999_999.7, minutes, points)
  expect([grid.stepSeconds, times.length, times.at(-1)]).toEqual([stepSeconds, count, 1_000_000])
  expect(times.every((time, i) => i === 0 || time > (times[i - 1] ?? 0))).toBe(true)
})

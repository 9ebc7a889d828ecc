/** The counters of one process at one moment. They count from its start. Times are Unix times in seconds. */
export interface CounterSample {
  readonly at: number
  readonly requests: number
  readonly errors: number
  /** Milliseconds until the response headers were ready, of all requests. */
  readonly requestMs: number
  /** Milliseconds that the event loop was busy. */
  readonly eventLoopMs: number
}

/** What happened between two samples of one process. */
export interface IntervalRates {
  readonly requestsPerSecond: number
  readonly errorsPerSecond: number
  /** Null: there were no requests. */
  readonly meanMilliseconds: number | null
  readonly eventLoopUtilization: number
}

/** Between two samples, of which the earlier one can be the start of the process, where every counter is 0. */
export const toRates = (before: CounterSample, after: CounterSample): IntervalRates | null => {
  const seconds = after.at - before.at
  if (seconds <= 0) return null
  const requests = Math.max(0, after.requests - before.requests)
  return {
    requestsPerSecond: requests / seconds,
    errorsPerSecond: Math.max(0, after.errors - before.errors) / seconds,
    meanMilliseconds: requests === 0 ? null : Math.max(0, after.requestMs - before.requestMs) / requests,
    eventLoopUtilization: Math.min(1, Math.max(0, after.eventLoopMs - before.eventLoopMs) / seconds / 1_000),
  }
}

/**
 * The rates at each point, from the last sample of each interval. The first of `samples` is that before the first point;
 * null: the process stored none. `startedAt`: the start of the process, whose counters were 0.
 */
export const toRateSeries = (
  startedAt: number,
  [baseline = null, ...samples]: readonly (CounterSample | null)[],
): readonly (IntervalRates | null)[] => {
  let before: CounterSample = baseline ?? { at: startedAt, requests: 0, errors: 0, requestMs: 0, eventLoopMs: 0 }
  return samples.map(sample => {
    if (sample === null) return null
    const rates = toRates(before, sample)
    before = sample
    return rates
  })
}

/** The sum of the values that are known at each point; null if none is. */
export const sumSeries = (
  length: number,
  series: readonly (readonly (number | null)[])[],
): readonly (number | null)[] =>
  Array.from({ length }, (_, i) => {
    const values = series.flatMap(values => values[i] ?? [])
    return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0)
  })

export interface Grid {
  /** Unix times in seconds: the ends of the intervals. */
  readonly times: readonly number[]
  readonly stepSeconds: number
}

/** Seconds between two samples. */
export const SAMPLE_INTERVAL_S = 10

/** Up to `points` intervals, none of them shorter than that of the samples. `now`: Unix time in seconds. */
export const createGrid = (now: number, minutes: number, points: number): Grid => {
  const seconds = minutes * 60
  const count = Math.max(1, Math.min(points, Math.floor(seconds / SAMPLE_INTERVAL_S)))
  const stepSeconds = seconds / count
  const end = Math.ceil(now)
  return {
    times: Array.from({ length: count }, (_, i) => Math.round(end - (count - 1 - i) * stepSeconds)),
    stepSeconds,
  }
}

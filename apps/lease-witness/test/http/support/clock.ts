import { vi } from 'vitest'

/** In the future, so that an alarm of this clock runs only when the test runs it. */
const START_TIME = Date.parse('2040-01-01T00:00:00.000Z')

export interface FakeClock extends Disposable {
  readonly now: () => number
  readonly advance: (ms: number) => void
}

/** Replaces the clock of the worker and its objects. Timers still use real time. */
export const fakeClock = (): FakeClock => {
  vi.useFakeTimers({ toFake: ['Date'], now: START_TIME })
  return {
    now: () => Date.now(),
    advance: ms => void vi.setSystemTime(Date.now() + ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  }
}

export const iso = (ms: number): string => new Date(ms).toISOString()

import { vi } from 'vitest'

/** Far off, so that an alarm due by this clock is run by the test and by nobody else. */
const START = Date.parse('2040-01-01T00:00:00.000Z')

export interface Clock extends Disposable {
  readonly now: () => number
  readonly pass: (ms: number) => void
}

/** Takes the clock of the worker and of its objects in hand; timers go on as they are. */
export const handClock = (): Clock => {
  vi.useFakeTimers({ toFake: ['Date'], now: START })
  return {
    now: () => Date.now(),
    pass: ms => void vi.setSystemTime(Date.now() + ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  }
}

export const iso = (ms: number): string => new Date(ms).toISOString()

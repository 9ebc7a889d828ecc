import { vi } from 'vitest'

/** Far off, so that an alarm due by this clock is run by the test and by nobody else. */
const START_TIME = Date.parse('2040-01-01T00:00:00.000Z')

export interface FakeClock extends Disposable {
  readonly now: () => number
  readonly advance: (ms: number) => void
}

/** Takes the clock of the worker and of its objects in hand; timers go on as they are. */
export const fakeClock = (): FakeClock => {
  vi.useFakeTimers({ toFake: ['Date'], now: START_TIME })
  return {
    now: () => Date.now(),
    advance: ms => void vi.setSystemTime(Date.now() + ms),
    [Symbol.dispose]: () => void vi.useRealTimers(),
  }
}

export const iso = (ms: number): string => new Date(ms).toISOString()

import { expect, test } from 'vitest'
import { type ClockReading, createInstantReader, elapsedMs, msUntil } from './elapsed-time.ts'

/** The elapsed time after each of some readings, from the first one. */
const measure = (...readings: ClockReading[]): number[] => {
  let index = 0
  const now = createInstantReader(() => readings[index++] ?? { monotonicMs: 0, wallMs: 0 })
  const first = now()
  return readings.map(() => elapsedMs(first, now())).slice(0, -1)
}
const reading = (monotonicMs: number, wallMs: number): ClockReading => ({ monotonicMs, wallMs })

test.each<[string, ClockReading[], number[]]>([
  ['both clocks advance', [reading(5, 100), reading(15, 110), reading(25, 120)], [10, 20]],
  ['the machine is suspended for 50', [reading(5, 100), reading(6, 151), reading(7, 152)], [51, 52]],
  ['the wall clock is set back', [reading(5, 100), reading(15, 40), reading(25, 50)], [10, 20]],
  ['suspended, and then set back', [reading(5, 100), reading(6, 151), reading(7, 102), reading(8, 103)], [51, 52, 53]],
  ['suspended, and set back by as much long after', [reading(0, 0), reading(10, 182), reading(510, 510)], [182, 682]],
  ['a wall clock that is rounded', [reading(0.5, 0), reading(0.9, 1), reading(1.4, 1), reading(2.1, 2)], [1, 1, 2]],
  ['the wall clock is set forward', [reading(5, 100), reading(6, 9_100)], [9_000]],
  ['clocks that do not move', [reading(5, 100), reading(5, 100)], [0]],
])('the elapsed time is never too short: %s', (_, readings, expected) => {
  // The reader takes its first reading when it is created.
  const [first = reading(0, 0)] = readings
  expect(measure(first, ...readings).slice(0, expected.length)).toEqual(expected)
})

test('a timeout is over when either clock says so', () => {
  const timeout = { since: reading(0, 0), ms: 10 }
  expect([reading(9, 9), reading(10, 0), reading(0, 10), reading(99, 0)].map(now => msUntil(timeout, now))).toEqual([
    1, 0, 0, 0,
  ])
})

import { expect, test } from 'vitest'
import { findStandstill } from './clock.ts'

const NOW = Date.parse('2026-11-28T12:00:00.000Z')
const HOUR = 3_600_000

test.each<readonly [rule: string, workerMs: number, machineMs: number, standstill: number | undefined]>([
  ['all clocks agree', 0, 0, undefined],
  ['the call took long', -2_000, 0, undefined],
  ['the worker is behind by an hour', -HOUR, 0, undefined],
  ['the worker is ahead', HOUR, 0, undefined],
  ['the machine is behind by as much as is not noticed', -50, -50, undefined],
  ['a glitch of 51 ms', -51, -51, 51],
  ['the machine was set back by an hour', -HOUR, -HOUR, HOUR],
  ['the same, and the worker is behind by less', -100, -HOUR, HOUR],
  ['a worker that sends no time', Number.NaN, -HOUR, undefined],
])(
  'an object whose clock stands still is found by the clock of its machine: %s',
  (_, workerMs, machineMs, standstill) => {
    expect(findStandstill(NOW, NOW + workerMs, () => NOW + machineMs)).toBe(standstill)
  },
)

test('the clock of the machine is read only if the clock of the worker suggests it', () => {
  const fail = () => {
    throw new Error('it was read')
  }
  expect(findStandstill(NOW, NOW - 50, fail)).toBeUndefined()
  expect(() => findStandstill(NOW, NOW - 51, fail)).toThrow('it was read')
})

import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

/**
 * A preload for a child process in which performance.now and the timers of node:timers/promises run `CLOCK_SPEED` times as
 * fast, so that a test of a long timeout takes less time. Other timers keep their speed.
 */
export const CLOCK_SPEED = 10

const { now } = performance
const { setTimeout } = timers
performance.now = () => now.call(performance) * CLOCK_SPEED
timers.setTimeout = (ms = 0, value, options) => setTimeout(ms / CLOCK_SPEED, value as never, options)
syncBuiltinESMExports()

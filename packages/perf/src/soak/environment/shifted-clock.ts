import { readFileSync } from 'node:fs'

/**
 * Loaded before a process's own code (`--import`): its wall clock is ahead of the machine's by as many milliseconds as the file
 * says that SOAK_CLOCK_FILE names. Covers `Date`, and whatever asks it. Not timers and `performance.now()`, which are monotonic
 * on a machine whose clock is set, either; and not what native code asks the kernel.
 */
const LOOK_EVERY_MS = 100

const file = process.env.SOAK_CLOCK_FILE ?? ''
let aheadMs = 0
const look = () => {
  try {
    aheadMs = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    aheadMs = 0
  }
}
look()
setInterval(look, LOOK_EVERY_MS).unref()

const RealDate = Date
const now = () => RealDate.now() + aheadMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  apply: () => new RealDate(now()).toString(),
  get: (target, property) => (property === 'now' ? now : Reflect.get(target, property)),
})

import { readFileSync } from 'node:fs'

/**
 * Shifts the wall clock of a process. Load it before the process's own code (`--import`). The file in SOAK_CLOCK_FILE has the
 * offset in milliseconds. Only `Date` changes: timers and `performance.now()` are monotonic and do not follow the wall clock,
 * and native code asks the kernel.
 */
const POLL_MS = 100

const file = process.env.SOAK_CLOCK_FILE ?? ''
let aheadMs = 0
const readOffset = () => {
  try {
    aheadMs = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    aheadMs = 0
  }
}
readOffset()
setInterval(readOffset, POLL_MS).unref()

const RealDate = Date
const now = () => RealDate.now() + aheadMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) => Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  apply: () => new RealDate(now()).toString(),
  get: (target, property) => (property === 'now' ? now : Reflect.get(target, property)),
})

/** Time and randomness of a client. Tests pass their own. */
export interface Timing {
  /** Milliseconds on a clock that is never set. */
  now(): number
  /** Milliseconds since 1970, for dates that a service sends. */
  wallNow(): number
  /** From 0 to 1. */
  random(): number
  /** Calls `callback` after `ms` milliseconds, unless the returned function is called before. */
  schedule(ms: number, callback: () => void): () => void
}

/** Longer delays overflow the timers of every platform, which then fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

export const systemTiming: Timing = {
  now: () => performance.now(),
  wallNow: () => Date.now(),
  random: () => Math.random(),
  schedule: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, MAX_TIMER_MS))
    return () => clearTimeout(timer)
  },
}

/** Resolves after `ms` milliseconds. Rejects with the reason of `signal` as soon as it is aborted. */
export const pause = (timing: Timing, ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const abort = (): void => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = timing.schedule(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })

const ID_BYTES = 16
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
/** Many ids from one call of the generator, which costs more than the ids. */
const randomBytes = new Uint8Array(64 * ID_BYTES)
let usedBytes = randomBytes.length

/** 128 random bits in hexadecimal digits. `randomUUID` does not exist on web pages that were loaded over plain HTTP. */
export const createRandomId = (): string => {
  if (usedBytes === randomBytes.length) {
    crypto.getRandomValues(randomBytes)
    usedBytes = 0
  }
  let id = ''
  for (const end = usedBytes + ID_BYTES; usedBytes < end; usedBytes += 1) id += HEX[randomBytes[usedBytes] ?? 0]
  return id
}

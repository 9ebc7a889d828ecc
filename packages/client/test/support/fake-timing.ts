import type { Timing } from '../../src/timing.ts'

/**
 * A clock that stands still until nothing else can run, and then jumps to the next timer. `random` is constant.
 */
export class FakeTiming implements Timing {
  readonly #timers = new Map<object, { at: number; callback: () => void }>()
  #now = 0
  readonly #random: number

  constructor(random = 0.5) {
    this.#random = random
  }

  now(): number {
    return this.#now
  }

  wallNow(): number {
    return this.#now
  }

  random(): number {
    return this.#random
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer = {}
    this.#timers.set(timer, { at: this.#now + ms, callback })
    return () => {
      this.#timers.delete(timer)
    }
  }

  /** The milliseconds until each timer that is set. */
  get pending(): readonly number[] {
    return Array.from(this.#timers.values(), ({ at }) => at - this.#now)
  }

  /** Settles `promise`, and moves the clock to the next timer whenever nothing else happens. */
  async settle<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false
    const settled = promise.finally(() => {
      isSettled = true
    })
    settled.catch(() => undefined)
    for (;;) {
      // Everything that waits for promises only is done after a few turns of the event loop: the body of a response, too.
      for (let turn = 0; turn < 5; turn += 1) await new Promise(resolve => setImmediate(resolve))
      if (isSettled) return await settled
      this.advance()
    }
  }

  /** Moves the clock to the next timer and calls it. */
  advance(): void {
    const next = [...this.#timers].sort(([, a], [, b]) => a.at - b.at)[0]
    if (next === undefined) throw new Error('the promise waits for something other than a timer')
    const [timer, { at, callback }] = next
    this.#timers.delete(timer)
    this.#now = at
    callback()
  }
}

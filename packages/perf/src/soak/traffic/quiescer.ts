import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** Pauses all clients between two of their steps, so that no request is in flight during a check. */
export class Quiescer {
  #isEnded = false
  #inFlight = 0
  #resumed = Promise.resolve()
  #resume = () => {}

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Runs one step of a client after a possible pause. False: the run has ended. */
  async run(step: () => Promise<void>): Promise<boolean> {
    await this.#resumed
    if (this.#isEnded) return false
    this.#inFlight += 1
    await step().finally(() => {
      this.#inFlight -= 1
    })
    return !this.#isEnded
  }

  /** Resolves when no step is in flight. False: one still was after `withinMs`. */
  async pause(withinMs: number): Promise<boolean> {
    this.#resumed = new Promise(resolve => {
      this.#resume = resolve
    })
    for (const end = performance.now() + withinMs; this.#inFlight > 0; await sleep(POLL_MS))
      if (performance.now() > end) return false
    return true
  }

  resume(): void {
    this.#resume()
  }

  end(): void {
    this.#isEnded = true
    this.#resume()
  }
}

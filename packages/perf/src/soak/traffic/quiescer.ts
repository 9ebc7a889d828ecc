import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** Pauses all clients between two of their steps, so that no request is in flight during a check. */
export class Quiescer {
  readonly #end = new AbortController()
  #inFlight = 0
  #resumed = Promise.resolve()
  #resume = () => {}

  get isEnded(): boolean {
    return this.#end.signal.aborted
  }

  /** Aborted at the end of the run. */
  get signal(): AbortSignal {
    return this.#end.signal
  }

  /** Runs one step of a client after a possible pause. False: the run has ended. */
  async run(step: () => Promise<void>): Promise<boolean> {
    await this.#whenResumed()
    if (this.isEnded) return false
    await this.#count(step)
    return !this.isEnded
  }

  /** Sends one request of a client that does not end with the run, after a possible pause. */
  async request<Result>(send: () => Promise<Result>): Promise<Result> {
    await this.#whenResumed()
    return this.#count(send)
  }

  /** Resolves when no step is in flight. False: one still was after `withinMs`. */
  async pause(withinMs: number): Promise<boolean> {
    this.#resumed = new Promise(resolve => {
      this.#resume = resolve
    })
    return this.drain(withinMs)
  }

  /** Resolves when no step and no request is in flight. False: one still was after `withinMs`. */
  async drain(withinMs: number): Promise<boolean> {
    for (const end = performance.now() + withinMs; this.#inFlight > 0; await sleep(POLL_MS))
      if (performance.now() > end) return false
    return true
  }

  resume(): void {
    this.#resume()
  }

  end(): void {
    this.#end.abort()
    this.#resume()
  }

  /** The caller continues in the same microtask, so no pause begins in between. */
  async #whenResumed(): Promise<void> {
    for (let resumed: Promise<void> | undefined; resumed !== this.#resumed; await resumed) resumed = this.#resumed
  }

  #count<Result>(send: () => Promise<Result>): Promise<Result> {
    this.#inFlight += 1
    return send().finally(() => {
      this.#inFlight -= 1
    })
  }
}

type Waiter = (isNotified: boolean) => void

/** Wakes the readers of this process that wait for a change of a deployment. Other processes are not notified. */
export class Notifier {
  readonly #waiters = new Map<string, Set<Waiter>>()

  notify(id: string): void {
    for (const waiter of this.#waiters.get(id) ?? []) waiter(true)
  }

  /**
   * True when notified, false after `ms` or when the signal aborts. To miss no change, call it before reading the
   * deployment and await it afterwards.
   */
  wait(id: string, ms: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiters = this.#waiters.get(id) ?? new Set()
    const end: Waiter = isNotified => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      waiters.delete(end)
      if (waiters.size === 0 && this.#waiters.get(id) === waiters) this.#waiters.delete(id)
      resolve(isNotified)
    }
    const abort = () => end(false)
    const timer = setTimeout(abort, ms)
    signal.addEventListener('abort', abort, { once: true })
    this.#waiters.set(id, waiters.add(end))
    return promise
  }
}

interface Waiter {
  readonly dueAt: number
  readonly end: (reason: WaitEnd) => void
}

/** `notified`: the slot changed or the time is up. */
export type WaitEnd = 'notified' | 'cancelled'

/** The long polls of one slot, in the memory of its object: one closure and one timer each. */
export class LongPolls {
  readonly #waiters = new Map<string, Waiter>()

  get size(): number {
    return this.#waiters.size
  }

  /** Resolves after `ms`, at the next notifyAll(), or when `id` is cancelled. */
  wait(id: string, ms: number): Promise<WaitEnd> {
    const dueAt = Date.now() + ms
    return new Promise(resolve => {
      const end = (reason: WaitEnd) => {
        clearTimeout(timer)
        this.#waiters.delete(id)
        resolve(reason)
      }
      // Many wait for the same expiry. The first timer ends all waits that are due, because the platform bills each timer event.
      const timer = setTimeout(() => this.#notifyDue(dueAt), ms)
      this.#waiters.set(id, { dueAt, end })
    })
  }

  notifyAll(): void {
    this.#notifyDue(Number.POSITIVE_INFINITY)
  }

  cancel(id: string): void {
    this.#waiters.get(id)?.end('cancelled')
  }

  #notifyDue(now: number): void {
    for (const { dueAt, end } of [...this.#waiters.values()]) if (dueAt <= now) end('notified')
  }
}

interface Waiter {
  readonly dueAt: number
  readonly end: (how: 'woken' | 'forgotten') => void
}

/** Those who wait for a slot, in the memory of its object: a closure and a timer each. */
export class Waiters {
  readonly #waiting = new Map<string, Waiter>()

  get size(): number {
    return this.#waiting.size
  }

  /** Until `ms` have passed or wakeAll() is called: woken; or until `id` is forgotten. */
  sleep(id: string, ms: number): Promise<'woken' | 'forgotten'> {
    const dueAt = Date.now() + ms
    return new Promise(resolve => {
      const end: Waiter['end'] = how => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(how)
      }
      // All wait for one expiry: the first timer speaks for them, for each timer is an event of its own, with its price.
      const timer = setTimeout(() => this.#wake(dueAt), ms)
      this.#waiting.set(id, { dueAt, end })
    })
  }

  wakeAll(): void {
    this.#wake(Number.POSITIVE_INFINITY)
  }

  forget(id: string): void {
    this.#waiting.get(id)?.end('forgotten')
  }

  #wake(dueUntil: number): void {
    for (const { dueAt, end } of [...this.#waiting.values()]) if (dueAt <= dueUntil) end('woken')
  }
}

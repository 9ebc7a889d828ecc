interface Waiter {
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
    return new Promise(resolve => {
      const end: Waiter['end'] = how => {
        clearTimeout(timer)
        this.#waiting.delete(id)
        resolve(how)
      }
      const timer = setTimeout(end, ms, 'woken')
      this.#waiting.set(id, { end })
    })
  }

  wakeAll(): void {
    for (const { end } of [...this.#waiting.values()]) end('woken')
  }

  forget(id: string): void {
    this.#waiting.get(id)?.end('forgotten')
  }
}

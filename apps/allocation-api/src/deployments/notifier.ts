/** Tells those who wait in this process that something of a deployment has changed. Other processes hear nothing. */
export interface News {
  wake(id: string): void
  /**
   * True when it is woken, false after `ms` or when the signal aborts. Whoever is to miss nothing calls it before they
   * look, and waits for it after.
   */
  changed(id: string, ms: number, signal: AbortSignal): Promise<boolean>
}

type Waiter = (isNews: boolean) => void

export const createNews = (): News => {
  const waiters = new Map<string, Set<Waiter>>()
  return {
    wake(id) {
      for (const waiter of waiters.get(id) ?? []) waiter(true)
    },
    changed(id, ms, signal) {
      const { promise, resolve } = Promise.withResolvers<boolean>()
      if (signal.aborted) return Promise.resolve(false)
      const others = waiters.get(id) ?? new Set()
      const end: Waiter = isNews => {
        clearTimeout(timer)
        signal.removeEventListener('abort', abort)
        others.delete(end)
        if (others.size === 0 && waiters.get(id) === others) waiters.delete(id)
        resolve(isNews)
      }
      const abort = () => end(false)
      const timer = setTimeout(abort, ms)
      signal.addEventListener('abort', abort, { once: true })
      waiters.set(id, others.add(end))
      return promise
    },
  }
}

/** One lock per key, granted in the order of the requests. */
export interface KeyedMutex {
  /** Waits for the lock and returns the function that releases it; null if the signal aborts first. */
  acquire(key: string, signal: AbortSignal): Promise<(() => void) | null>
}

export const createKeyedMutex = (): KeyedMutex => {
  /** Per key, the promise that resolves when the last request in the queue has released the lock. */
  const tails = new Map<string, Promise<void>>()
  return {
    acquire: async (key, signal) => {
      const previous = tails.get(key) ?? Promise.resolve()
      const released = Promise.withResolvers<void>()
      // Includes `previous`, so a request that aborts does not let the next one overtake the current holder.
      const tail = previous.then(() => released.promise)
      tails.set(key, tail)
      void tail.then(() => {
        if (tails.get(key) === tail) tails.delete(key)
      })
      const aborted = Promise.withResolvers<true>()
      const onAbort = () => aborted.resolve(true)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      const isAborted = await Promise.race([previous.then(() => false), aborted.promise])
      signal.removeEventListener('abort', onAbort)
      if (!isAborted) return released.resolve
      released.resolve()
      return null
    },
  }
}

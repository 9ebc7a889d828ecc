import type { StoredSecret } from './env.ts'

/** How long a rotated token may still be accepted by an isolate, beside the delay of the store itself. */
export const REFRESH_MS = 30_000

/**
 * TOKEN_POLICIES in a store, so that a token is rotated without a deployment. Per isolate. Each request awaits only its own
 * read of the store, because the platform ties I/O to the request that started it.
 */
export class StoredPolicies {
  #text: string | undefined
  #readAt: number | undefined

  /** The last text that was read; undefined: the store has not responded yet. */
  async read(secret: StoredSecret, now: number, onError: (error: unknown) => void): Promise<string | undefined> {
    const age = now - (this.#readAt ?? now)
    const isFresh = this.#text !== undefined && age >= 0 && age < REFRESH_MS
    if (isFresh) return this.#text
    // Before the read, so that the other requests do not read too.
    this.#readAt = now
    try {
      this.#text = await secret.get()
    } catch (error) {
      onError(error)
    }
    return this.#text
  }
}

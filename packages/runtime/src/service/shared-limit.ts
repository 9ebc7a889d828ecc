export interface SharedLimitOptions {
  readonly total: number
  /** What one client can have of it. */
  readonly perClient: number
}

/** An amount that all clients share, and of which each one has at most a part. */
export class SharedLimit {
  readonly #max: SharedLimitOptions
  readonly #byClient = new Map<string, number>()
  #taken = 0

  constructor(max: SharedLimitOptions) {
    this.#max = max
  }

  /** Whether the amount was left. Null: a client without a limit of its own. */
  take(client: string | null, amount = 1): boolean {
    const own = (client === null ? 0 : (this.#byClient.get(client) ?? 0)) + amount
    if (this.#taken + amount > this.#max.total || (client !== null && own > this.#max.perClient)) return false
    this.#taken += amount
    if (client !== null) this.#byClient.set(client, own)
    return true
  }

  release(client: string | null, amount = 1): void {
    this.#taken -= amount
    if (client === null) return
    const own = (this.#byClient.get(client) ?? 0) - amount
    if (own > 0) this.#byClient.set(client, own)
    else this.#byClient.delete(client)
  }
}

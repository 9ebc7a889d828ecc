/** One request that has been answered. `route` is the pattern and not the path: bounded, and free of what was sent. */
export interface Answered {
  readonly requestId: string
  readonly door: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly outcome: string
  /** Seconds until the answer's headers were ready. */
  readonly seconds: number
}

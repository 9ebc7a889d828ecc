export interface AttemptLimit {
  /** Attempts a minute that a caller may make for ever; as many may come at once. */
  readonly perMinute: number
  /** Callers that are remembered at the most. */
  readonly callers: number
}

export type Attempt =
  | { readonly kind: 'allowed' }
  /** Whole seconds, from 1, after which an attempt would be allowed. */
  | { readonly kind: 'too-many-attempts'; readonly retryAfterSeconds: number }

const MINUTE_MS = 60_000

/**
 * One step of the generic cell rate algorithm (ITU-T I.371, virtual scheduling): `due` is the theoretical arrival time,
 * when a caller who kept to the rate would have been due next. In units of a minute over `perMinute` and milliseconds,
 * so that all is whole and exact.
 */
export const step = (due: number | undefined, now: number, perMinute: number): Attempt & { readonly due: number } => {
  const at = Math.floor(now) * perMinute
  const from = Math.max(due ?? at, at)
  const early = from - at - MINUTE_MS * (perMinute - 1)
  return early > 0
    ? { kind: 'too-many-attempts', retryAfterSeconds: Math.ceil(early / perMinute / 1_000), due: from }
    : { kind: 'allowed', due: from + MINUTE_MS }
}

export type Attempts = (caller: string, now: number) => Attempt

/**
 * How often each caller has attempted. In the memory of this process on purpose: a check must not need the database, so
 * that keys can be checked while it is away. So a restart forgets, and of n replicas each allows the rate. When more
 * callers come than are remembered, the one who was not seen for the longest time is forgotten.
 *
 * `now` is in milliseconds, of a clock that never goes back.
 */
export const createAttempts = ({ perMinute, callers }: AttemptLimit): Attempts => {
  const dues = new Map<string, number>()
  return (caller, now) => {
    const { due, ...attempt } = step(dues.get(caller), now, perMinute)
    // To the end of the map, which is in the order of insertion: its first is the oldest.
    dues.delete(caller)
    dues.set(caller, due)
    const [oldest] = dues.keys()
    if (dues.size > callers && oldest !== undefined) dues.delete(oldest)
    return attempt
  }
}

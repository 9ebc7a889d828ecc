export interface RateLimit {
  /** The sustained rate of a caller, and the size of a burst. */
  readonly perMinute: number
  /** Callers that are remembered. */
  readonly maxCallers: number
}

export type RateLimitDecision =
  | { readonly kind: 'allowed' }
  /** Whole seconds, at least 1, until an attempt is allowed. */
  | { readonly kind: 'too-many-attempts'; readonly retryAfterSeconds: number }

/** `now`: milliseconds of a monotonic clock. */
export type RateLimiter = (caller: string, now: number) => RateLimitDecision

const MINUTE_MS = 60_000

/**
 * One step of the generic cell rate algorithm (ITU-T I.371, virtual scheduling). `tat` is the theoretical arrival time: when
 * the next attempt of a caller at exactly the sustained rate is due. Its unit is a millisecond divided by `perMinute`, so
 * the arithmetic is exact.
 */
const gcra = (
  tat: number | undefined,
  now: number,
  perMinute: number,
): RateLimitDecision & { readonly tat: number } => {
  const arrival = Math.floor(now) * perMinute
  const earliest = Math.max(tat ?? arrival, arrival)
  const excess = earliest - arrival - MINUTE_MS * (perMinute - 1)
  return excess > 0
    ? { kind: 'too-many-attempts', retryAfterSeconds: Math.ceil(excess / perMinute / 1_000), tat: earliest }
    : { kind: 'allowed', tat: earliest + MINUTE_MS }
}

/**
 * Limits the attempts of each caller. The state is in the memory of this process, so that credentials can be checked while
 * the database is unavailable. Consequences: a restart resets it, and n replicas allow n times the rate. Beyond
 * `maxCallers`, the least recently seen caller is removed.
 */
export const createRateLimiter = ({ perMinute, maxCallers }: RateLimit): RateLimiter => {
  /** Ordered by the last attempt: a Map iterates in insertion order. */
  const tats = new Map<string, number>()
  return (caller, now) => {
    const { tat, ...decision } = gcra(tats.get(caller), now, perMinute)
    tats.delete(caller)
    tats.set(caller, tat)
    const [leastRecent] = tats.keys()
    if (tats.size > maxCallers && leastRecent !== undefined) tats.delete(leastRecent)
    return decision
  }
}

/** The first four groups of an IPv6 address as `node:net` writes it (RFC 5952), without leading zeros. */
const toIpv6Prefix = (address: string): string => {
  const [plain = ''] = address.split('%')
  // A dotted quad at the end stands for two groups (RFC 4291 section 2.2).
  const [head = '', tail] = plain.replace(/\d+(?:\.\d+){3}$/, '0:0').split('::')
  const groups = (part: string): string[] => part.split(':').filter(group => group !== '')
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros: string[] = Array(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}

/**
 * The client that a rate limit applies to: an IPv4 address, or an IPv6 /64 network, as a single host commonly has all
 * its addresses (RFC 6177). All clients without an address share one limit.
 */
export const toRateLimitKey = (address: string | null): string => {
  if (address === null) return 'unknown'
  return address.includes(':') ? `${toIpv6Prefix(address)}::/64` : address
}

const FIRST_BACKOFF_MS = 500
const MAX_BACKOFF_MS = 30_000

/**
 * A failed name is tried this much earlier if another name of its zone is due: however many names fail, the syncs of a zone
 * are then as far apart.
 */
export const JOIN_MS = MAX_BACKOFF_MS / 2

/**
 * The pause after the `attempts`-th consecutive failure: it doubles, up to `maxMs`. `random` (0 to 1) adds a jitter of a
 * fifth either way, so that replicas and names do not all retry at the same moment.
 */
export const backoffMs = (attempts: number, random: number, maxMs = MAX_BACKOFF_MS): number =>
  Math.min(maxMs, FIRST_BACKOFF_MS * 2 ** Math.min(attempts - 1, 16)) * (0.8 + 0.4 * random)

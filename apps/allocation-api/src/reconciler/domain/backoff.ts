const FIRST_MS = 500
const LONGEST_MS = 30_000

/**
 * How long to leave something alone after its `attempts`-th failure in a row: doubling, up to `longestMs`. `random`
 * (0 to 1) spreads it by a fifth either way, so that replicas and names do not come back all at once.
 */
export const pauseMs = (attempts: number, random: number, longestMs = LONGEST_MS): number =>
  Math.min(longestMs, FIRST_MS * 2 ** Math.min(attempts - 1, 16)) * (0.8 + 0.4 * random)

/** A record set of a tenant. `values` are in presentation format, sorted; names are absolute, without the final dot. */
export interface StoredSet {
  readonly name: string
  readonly type: string
  /** Seconds. */
  readonly ttl: number
  readonly values: readonly string[]
  readonly owner: string
  readonly isPublished: boolean
}

/** One value of a challenge. `name` is that of the TXT record. */
export interface StoredChallenge {
  readonly name: string
  readonly value: string
  readonly owner: string
  /** Unix time in milliseconds, by the clock of the database. */
  readonly setAt: number
}

/** What tenants have set at and below a name: the column `records` of tenant_records. */
export interface StoredRecords {
  readonly sets: readonly StoredSet[]
  /** The oldest first. */
  readonly challenges: readonly StoredChallenge[]
}

export const NO_RECORDS: StoredRecords = { sets: [], challenges: [] }

/** An order of Let's Encrypt lives as long. A value that vanishes earlier would block a client that sets it once only. */
const CHALLENGE_LIFETIME_MS = 7 * 24 * 3_600_000

/** Of all owners. More clients than two can have an order for one name. */
const MAX_CHALLENGES = 10

/** Without the values that are too old at `now`, and with the newest ones of each name only. */
export const dropOldChallenges = (records: StoredRecords, now: number): StoredRecords => {
  const current = records.challenges.filter(({ setAt }) => setAt + CHALLENGE_LIFETIME_MS > now)
  const byName = Map.groupBy(current, ({ name }) => name)
  const newest = new Set(Array.from(byName.values()).flatMap(values => values.slice(-MAX_CHALLENGES)))
  return newest.size === records.challenges.length
    ? records
    : { ...records, challenges: current.filter(challenge => newest.has(challenge)) }
}

/** When the next value becomes too old, in Unix milliseconds; null: there is none. */
export const findNextExpiry = ({ challenges }: StoredRecords): number | null =>
  challenges.length === 0 ? null : Math.min(...challenges.map(({ setAt }) => setAt)) + CHALLENGE_LIFETIME_MS

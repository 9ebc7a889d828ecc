import { NOW, toInterval } from '@pool/runtime/database/time'
import {
  assertInTime,
  countRows,
  executeShared,
  LIMIT_LOCK_WAIT,
  type SharedWrite,
} from '@pool/runtime/database/writer'
import {
  type DuplicateRequest,
  duplicateRequest,
  type IdempotencyClaim,
  IS_NEW_KEY,
  isDuplicateKey,
  KEY_COLUMNS,
  KEYS,
  toHex,
  toKeyColumns,
} from '../idempotency/idempotency.ts'
import { type Caller, type PoolName, toFqdn } from '../naming/naming.ts'
import { newVersionColumns } from '../reconciler/repository.ts'

// The parts that the statements over pool_allocations (alias `a`) share, as text.

/** What every allocation has, and the expiry. */
export const RESERVATION_COLUMNS = `
  a.pool_domain as "poolDomain", a.subdomain, a.reserved_at as "reservedAt", a.expires_at as "expiresAt",
  a.created_by as "createdBy"`

export const COLUMNS = `
  ${RESERVATION_COLUMNS}, a.state, a.sovereign_fqdn as "sovereignFQDN", host(a.load_balancer_ip) as "loadBalancerIP", a.target,
  a.committed_at as "committedAt"`

/** The columns of `a` left joined with dns_names as `d`. */
export const COLUMNS_WITH_DNS = `${COLUMNS}, d.version, d.applied_version as "appliedVersion", coalesce(d.last_error, d.leftover) as "lastError"`

/** Whether a client has the name. An expired reservation counts as free, even before the sweeper deletes its row. */
export const IS_LIVE = `(a.state = 'active' or a.expires_at > ${NOW})`

/** Released, or an expired reservation. */
export const IS_LAPSED = `(a.state = 'released' or a.expires_at <= ${NOW})`

/** When a name that lapsed becomes free, unless a lineage holds it. */
export const FREE_AT = `greatest(a.expires_at, a.cool_off_until)`

export const IS_FREE = `(a.state <> 'active' and a.lineage_id is null and ${FREE_AT} <= ${NOW})`

export const IS_COOLING_OFF = `(${IS_LAPSED} and a.lineage_id is null and ${FREE_AT} > ${NOW})`

/** What `check` reports; null if the name is free. */
export const NAME_STATE = `
  case
    when ${IS_LIVE} then a.state
    when a.lineage_id is not null then case when a.committed_at is null then 'reserved' else 'active' end
    when ${FREE_AT} > ${NOW} then 'cooling-off'
    when a.state = 'pool' then a.state
  end`

/** Null unless the name can be in its cool-off. */
export const AVAILABLE_AT = `case when a.cool_off_until > ${NOW} then ${FREE_AT} end`

/** Whether `a` is the row of the name of the row `other`. */
export const isRowOf = (other: string): string =>
  `a.pool_domain = ${other}.pool_domain and a.subdomain = ${other}.subdomain`

/** Whether the row of dns_names, or the version that was set in it, belongs to `a`. */
export const hasRecordsIn = (records: string): string =>
  `${records}.zone = a.pool_domain and ${records}.subdomain = a.subdomain`

/** Whether `a` is a reservation, live or not, or an active name. */
export const IS_RESERVATION = `a.state not in ('released', 'pool')`

/** What decides about the token in the row `input` for a reservation `a`: `success`, or the reason for a rejection. */
export const tokenOutcome = (success: 'committed' | 'renewed'): string => `
  case
    when a.state = 'active' then 'already-active'
    when a.expires_at <= ${NOW} then 'reservation-expired'
    when a.token_hash <> input.token_hash then 'token-mismatch'
    else '${success}'
  end`

/** A request to change a name. */
export interface NameRequest extends PoolName {
  readonly tokenHash?: Buffer | undefined
  readonly caller?: Caller
  readonly claim?: IdempotencyClaim | null
}

const toRequestRow = ({ poolDomain, subdomain, tokenHash, caller, claim }: NameRequest, position: number) => ({
  position,
  pool_domain: poolDomain,
  subdomain,
  token_hash: toHex(tokenHash),
  actor: caller?.actor,
  address: caller?.address,
  request_id: caller?.requestId,
  ...toKeyColumns(claim ?? null),
})

type RequestRow = ReturnType<typeof toRequestRow>

/** Names are ASCII, so this is the order of their bytes, as in the indexes. */
const byName = (a: RequestRow, b: RequestRow): number => {
  if (a.pool_domain !== b.pool_domain) return a.pool_domain < b.pool_domain ? -1 : 1
  return a.subdomain < b.subdomain ? -1 : Number(a.subdomain > b.subdomain)
}

/** One kind of write to names. */
export interface NameStatement<Request extends NameRequest, Row, Decision> {
  /** Starts with `requests`, and returns a row per request with its `position` and `is_new` as "isNew". */
  readonly text: string
  /** What the operation has in more columns than `requests`. */
  readonly toColumns: (request: Request) => object
  readonly toDecision: (row: Row, request: Request) => Decision
}

/**
 * Requests with the name or the key of an earlier one are executed after it. A request is `duplicate-request`, and has no
 * effect, if an outcome is stored under its key. The statement gets the requests in name order, and locks their rows in it, so
 * concurrent statements cannot deadlock.
 */
export const toSharedWrite = <Request extends NameRequest, Row extends object, Decision>({
  text,
  toColumns,
  toDecision,
}: NameStatement<Request, Row, Decision>): SharedWrite<Request, Decision | DuplicateRequest> => ({
  rowsOf: ({ poolDomain, subdomain, claim }) => {
    const fqdn = toFqdn(poolDomain, subdomain)
    return claim ? [fqdn, claim.keyHash] : [fqdn]
  },
  async execute(list, sql, limits) {
    const input = list
      .map((request, position) => ({ ...toRequestRow(request, position), ...toColumns(request) }))
      .sort(byName)
    try {
      const rows = await executeShared<Row & { position: number; isNew: boolean }>(sql, text, input, limits)
      const decisions: (Decision | DuplicateRequest)[] = []
      for (const row of rows) {
        const request = list[row.position]
        if (request) decisions[row.position] = row.isNew ? toDecision(row, request) : duplicateRequest
      }
      return decisions
    } catch (error) {
      // Of several requests, each is executed again, alone.
      if (list.length === 1 && isDuplicateKey(error)) return [duplicateRequest]
      throw error
    }
  },
})

/**
 * The first part of each statement: the requests, with what their operation needs in more columns. `is_new` is false if an
 * outcome is stored under the key of the request; then the statement leaves it alone.
 */
export const requests = (columns?: string): string => `
  select input.*, ${IS_NEW_KEY} as is_new from json_to_recordset($1) as input (
    position integer, pool_domain text, subdomain text, token_hash bytea, actor text, address text, request_id text,
    ${KEY_COLUMNS}${columns ? `, ${columns}` : ''})
  where ${LIMIT_LOCK_WAIT}`

/** What a statement needs of the row `input` beside its name and its token. */
export const REQUEST = `position, is_new, actor, address, request_id, ${KEYS}`

/** True, or an error that undoes the statement. `parts` are all of its parts that write. */
export const isInTime = (...parts: readonly string[]): string => assertInTime(countRows(parts))

/**
 * Whether the name of the row `held` was active before. Its row in dns_names may have been deleted since, and the entry of
 * its release too.
 */
const WAS_HELD_BEFORE = `(
  exists (
    select from allocation_history h
    where h.pool_domain = held.pool_domain and h.subdomain = held.subdomain
      and h.event = 'released' and h.from_state = 'active')
  or exists (
    select from former_names f where f.pool_domain = held.pool_domain and f.subdomain = held.subdomain))`

/**
 * Sets the desired records of the names in `rows` to their column `desired`, JSON. It is an upsert because the row in
 * dns_names can be newer than the statement's snapshot: a release that waited for the row lock of a commit sees its
 * allocation, but not its records. For the same reason it draws the version of an existing row after it has locked the row.
 *
 * `holder`: `new` for a commit. If the name had an earlier holder, every record set at or below it that is not in
 * `desired` is deleted, whichever writer created it. `same` for a change of an active name and for a release; a release
 * has no desired records, and deletes all of them in any case.
 *
 * It locks rows in name order, so concurrent batches cannot deadlock.
 */
export const setDesiredRecords = (rows: string, holder: 'new' | 'same'): string => `
  insert into dns_names as d (zone, subdomain, version, desired, changed_at, next_attempt_at, purge_version)
  select pool_domain, subdomain, nextval('dns_version'), desired, now(), now(),
    ${holder === 'new' ? `case when ${WAS_HELD_BEFORE} then 1 else 0 end` : '0'}
  from ${rows} held order by pool_domain collate "C", subdomain collate "C"
  on conflict (zone, subdomain) do update set
    purge_version = ${holder === 'new' ? 'd.version + 1' : 'd.purge_version'},
    ${newVersionColumns('excluded.desired', 'excluded.changed_at')}
  returning zone, subdomain, version`

/** What the entry that ends a reservation has of its renewals, if there were any: their number, and the last expiry. */
export const renewalColumns = (count: string, lastExpiry: string): string =>
  `nullif(${count}, 0) as renewal_count, case when ${count} > 0 then ${lastExpiry} end as renewed_until`

const NO_RENEWALS = 'null, null'

/**
 * Inserts one history entry per row of `rows`, in their order. They have the columns of a caller. `transition` is three values: event,
 * from_state, to_state; `renewals` are `renewalColumns`.
 */
export const insertHistory = (
  rows: string,
  transition: string,
  { detail = 'null', renewals = NO_RENEWALS, origin = 'actor, address, request_id', createdBy = 'created_by' } = {},
): string => `
  insert into allocation_history
    (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id, detail, renewal_count,
      renewed_until)
  select pool_domain, subdomain, ${transition}, ${createdBy}, ${origin}, ${detail}, ${renewals}
  from ${rows}
  returning 1`

/** The `origin` of what the service does by itself. */
export const SWEEPER = `'sweeper', null, null`

/**
 * Gives the names in `rows` (pool_domain, subdomain, token_hash, lineage_id) to their lineage: they are not free until
 * `letGo`. It changes only a name that is live or already held by the lineage, and whose token matches. Returns the
 * names that the lineage holds, so that the same statement can record that the lineage has infrastructure.
 */
export const hold = (rows: string): string => `
  update pool_allocations a set lineage_id = holder.lineage_id
  from ${rows} holder
  where ${isRowOf('holder')} and a.token_hash = holder.token_hash
    and a.state <> 'released' and case when a.lineage_id is null then ${IS_LIVE} else a.lineage_id = holder.lineage_id end
  returning a.pool_domain, a.subdomain`

/**
 * Ends the hold of the lineages in `rows` (pool_domain, subdomain, lineage_id). A released name becomes free, after
 * another cool-off if it was ever active. A live one stays with its client.
 */
export const letGo = (rows: string, coolOffMs: number): string => `
  update pool_allocations a set lineage_id = null,
    cool_off_until = case when a.state = 'released' then greatest(a.cool_off_until, ${NOW}
        + case when a.committed_at is null then interval '0' else ${toInterval(coolOffMs)} end)
      else a.cool_off_until end
  from ${rows} holder
  where ${isRowOf('holder')} and a.lineage_id = holder.lineage_id
  returning a.pool_domain, a.subdomain`

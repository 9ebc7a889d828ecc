import type { Allocation, DnsState, ReservedAllocation } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { timeSql } from '@pool/database/time-sql'
import { withTimeout } from '@pool/database/with-timeout'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { type DuplicateRequest, duplicateRequest, type IdempotencyClaim } from '../idempotency/idempotency.ts'
import type { SealedToken } from '../idempotency/sealed-token.ts'
import { idempotencySql } from '../idempotency/sql.ts'
import { type SyncStatus, toDnsState } from '../reconciler/domain/status.ts'
import type {
  ActiveWithoutDns,
  Caller,
  CommitCommand,
  CommitDecision,
  Granted,
  PoolName,
  ReleaseCommand,
  ReleaseDecision,
  RenewCommand,
  RenewDecision,
  ReservationLimits,
  ReserveDecision,
  ReserveRequest,
  TokenRejection,
} from './domain/types.ts'
import { allocationSql } from './sql.ts'

/** A `Date` in a row of the driver, a string in a result that was stored as JSON. */
type Timestamp = Date | string

/** A row of pool_allocations. */
export interface AllocationRow {
  readonly poolDomain: string
  readonly subdomain: string
  readonly state: 'reserved' | 'active'
  readonly reservedAt: Timestamp
  readonly createdBy: string
  readonly expiresAt: Timestamp | null
  readonly sovereignFQDN: string | null
  readonly loadBalancerIP: string | null
  readonly committedAt: Timestamp | null
}

/** A row joined with dns_names; the three columns are null if the name has no desired records. */
export interface AllocationRowWithDns extends AllocationRow {
  readonly version: number | null
  readonly appliedVersion: number | null
  readonly lastError: string | null
}

/**
 * The row that a deciding statement returns, which is also the JSON stored under its Idempotency-Key. The columns of the
 * row are null unless the operation succeeded.
 */
type StatementResult<Success extends string, Columns, Rejected extends string> =
  | (Columns & { readonly outcome: Success })
  | { readonly outcome: Rejected }

export type ReserveResult = StatementResult<'granted', AllocationRow, 'conflict'>
export type CommitResult = StatementResult<
  'committed',
  AllocationRow & { readonly version: number },
  TokenRejection['kind']
>
export type RenewResult = StatementResult<'renewed', AllocationRow, TokenRejection['kind']>
export type ReleaseResult = StatementResult<
  'released',
  AllocationRowWithDns & { readonly withdrawalVersion: number | null },
  'not-found' | 'token-mismatch'
>

/** The check constraints of the table guarantee the timestamps that each state requires. */
const toIsoString = (at: Timestamp | null): string => {
  if (at === null) throw new Error('pool_allocations: a timestamp that the state of the row requires is null')
  return (typeof at === 'string' ? new Date(at) : at).toISOString()
}

const commonFields = (row: AllocationRow) => ({
  poolDomain: row.poolDomain,
  subdomain: row.subdomain,
  reservedAt: toIsoString(row.reservedAt),
  createdBy: row.createdBy,
})

const toReservedAllocation = (row: AllocationRow): ReservedAllocation => ({
  ...commonFields(row),
  state: 'reserved',
  expiresAt: toIsoString(row.expiresAt),
})

const toActiveAllocation = (row: AllocationRow): ActiveWithoutDns => ({
  ...commonFields(row),
  state: 'active',
  sovereignFQDN: row.sovereignFQDN ?? '',
  loadBalancerIP: row.loadBalancerIP ?? '',
  committedAt: toIsoString(row.committedAt),
})

const toSyncStatus = (row: AllocationRowWithDns): SyncStatus | null =>
  row.version === null || row.appliedVersion === null
    ? null
    : { version: row.version, appliedVersion: row.appliedVersion, lastError: row.lastError }

/** An active name always has desired records. A statement that started before they were committed does not see them. */
const currentDns = (row: AllocationRowWithDns): DnsState => {
  const status = toSyncStatus(row)
  return status ? toDnsState(status) : { status: 'pending' }
}

export const toAllocation = (row: AllocationRowWithDns): Allocation =>
  row.state === 'reserved' ? toReservedAllocation(row) : { ...toActiveAllocation(row), dns: currentDns(row) }

export const toGranted = (row: AllocationRow): Granted => ({ kind: 'granted', allocation: toReservedAllocation(row) })

export const toReserveDecision = (result: ReserveResult): ReserveDecision =>
  result.outcome === 'granted' ? toGranted(result) : { kind: result.outcome }

export const toCommitDecision = (result: CommitResult): CommitDecision =>
  result.outcome === 'committed'
    ? { kind: result.outcome, allocation: toActiveAllocation(result), version: result.version }
    : { kind: result.outcome }

export const toRenewDecision = (result: RenewResult): RenewDecision =>
  result.outcome === 'renewed'
    ? { kind: result.outcome, allocation: toReservedAllocation(result) }
    : { kind: result.outcome }

export const toReleaseDecision = (result: ReleaseResult): ReleaseDecision =>
  result.outcome === 'released'
    ? { kind: result.outcome, allocation: toAllocation(result), version: result.withdrawalVersion }
    : { kind: result.outcome }

export interface AllocationRepositoryOptions {
  readonly reservation: ReservationLimits
  readonly timeoutMs: number
}

export type AllocationRepository = ReturnType<typeof createAllocationRepository>

/**
 * The statements that change pool_allocations.
 *
 * One statement decides each write, with the condition inside it: `for update` waits for a concurrent writer of the row and
 * then sees that writer's result, so no decision uses an older state. The same statement inserts the history, sets the
 * desired records in dns_names, and stores the result under the Idempotency-Key. No transaction can be left
 * half done. A write with a claim returns `duplicate-request`, or no rows, if the key is not free.
 *
 * After `timeoutMs`, a statement rejects with a `TimeoutError`; its effect is then unknown.
 */
export const createAllocationRepository = (sql: Sql, { reservation, timeoutMs }: AllocationRepositoryOptions) => {
  const { now, milliseconds } = timeSql(sql)
  const ttl = milliseconds(reservation.ttlMs)
  const maxAge = milliseconds(reservation.maxAgeMs)
  const { columns, columnsWithDns, notExpired, whereName, setDesiredRecords, insertHistory } = allocationSql(sql)
  const { claimKey, noClaim, storeAndReturn } = idempotencySql(sql)

  // The parts of reserveMany, in the order of its statement.

  const inputRows = (requests: readonly ReserveRequest[]) => {
    const rows = requests.map(({ command, tokenHash, caller }, position) => ({
      position,
      pool_domain: command.poolDomain,
      subdomain: command.subdomain,
      created_by: command.createdBy,
      token_hash: `\\x${tokenHash.toString('hex')}`,
      actor: caller.actor,
      address: caller.address,
      request_id: caller.requestId,
    }))
    return sql`
      select request.*, row_number() over (partition by pool_domain, subdomain order by position) = 1 as is_first
      from claim, jsonb_to_recordset(${sql.json(rows)}) as request (
        position int, pool_domain text, subdomain text, created_by text, token_hash bytea, actor text, address text, request_id text)`
  }

  const upsertReservations = sql`
    insert into pool_allocations as a
      (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    select pool_domain, subdomain, 'reserved', ${now}, ${now} + ${ttl}, token_hash, created_by
    from input where is_first order by pool_domain collate "C", subdomain collate "C"
    on conflict (pool_domain, subdomain) do update set
      reserved_at = excluded.reserved_at, expires_at = excluded.expires_at,
      token_hash = excluded.token_hash, created_by = excluded.created_by
    where a.state = 'reserved' and a.expires_at <= ${now}
    returning a.*, a.xmax <> 0 as replaced_expired`

  // A reservation that was inserted and expired while this statement waited for its row is not in the snapshot. Its
  // created_by stays unknown.
  const reservedRows = sql`
    select upserted.*, position, actor, address, request_id, coalesce(previous.created_by, '') as previous_created_by
    from upserted
      join input on is_first
        and input.pool_domain = upserted.pool_domain and input.subdomain = upserted.subdomain
      left join lateral (
        select created_by from pool_allocations a
        where replaced_expired and a.pool_domain = upserted.pool_domain and a.subdomain = upserted.subdomain limit 1
      ) previous on true`

  const transitionRows = sql`
    select position, 1 as step, pool_domain, subdomain, 'expired' as event, 'reserved' as from_state,
      'none' as to_state, previous_created_by as created_by, actor, address, request_id
    from reserved where replaced_expired
    union all
    select position, 2, pool_domain, subdomain, 'reserved', 'none', 'reserved', created_by, actor, address, request_id
    from reserved`

  const insertTransitions = sql`
    insert into allocation_history
      (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id)
    select pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id
    from transitions order by position, step`

  const reserveResults = sql`
    select input.position, case when a.state is null then 'conflict' else 'granted' end as outcome, ${columns}
    from input left join reserved a using (position)`

  /**
   * Reserves the requested names in one statement. If several requests want the same name, the first one gets it. Returns
   * the decisions in the order of the requests, or none if the key of the claim is not free.
   *
   *   claim        claims the Idempotency-Key, if any
   *   input        the requests, numbered; `is_first` marks the one request per name that competes for it
   *   upserted     inserts the reservations and replaces expired ones
   *   reserved     `upserted` joined with its requests
   *   transitions  'expired' for a replaced reservation, then 'reserved'
   *   history      inserts the transitions
   *   result       'granted' or 'conflict' for each request
   *
   * The upsert locks rows in name order, so concurrent batches cannot deadlock.
   */
  const reserveMany = async (
    requests: readonly ReserveRequest[],
    claim: IdempotencyClaim | null = null,
    token: SealedToken | null = null,
  ): Promise<ReserveDecision[]> => {
    const rows = await withTimeout(
      sql<{ result: ReserveResult & { readonly position: number } }[]>`
        with claim as (${claim ? claimKey(claim) : noClaim}),
          input as (${inputRows(requests)}),
          upserted as (${upsertReservations}),
          reserved as (${reservedRows}),
          transitions as (${transitionRows}),
          history as (${insertTransitions}),
          result as (${reserveResults}),
          ${storeAndReturn(token && { success: 'granted', token })}`,
      timeoutMs,
    )
    const results = rows.map(({ result }) => result)
    return results.toSorted((a, b) => a.position - b.position).map(toReserveDecision)
  }

  /** The row of a reservation, locked, with `success` or the reason for a rejection as its `outcome`. */
  const lockByToken = (command: RenewCommand, success: 'committed' | 'renewed') => sql`
    select case
      when state = 'active' then 'already-active'
      when expires_at <= ${now} then 'reservation-expired'
      when token_hash <> ${command.tokenHash} then 'token-mismatch'
      else ${success}
    end as outcome
    from claim, pool_allocations a where ${whereName(command)} for update of a`

  return {
    reserveMany,

    async reserve(
      request: ReserveRequest,
      claim: IdempotencyClaim | null = null,
      /** The reservation token for a replay under the key of the claim. */
      token: SealedToken | null = null,
    ): Promise<ReserveDecision | DuplicateRequest> {
      const [decision] = await reserveMany([request], claim, token)
      return decision ?? duplicateRequest
    },

    /** Makes the reservation of this token active and sets its desired records. */
    async commit(
      command: CommitCommand,
      records: readonly RecordSet[],
      caller: Caller,
      claim: IdempotencyClaim | null = null,
    ): Promise<CommitDecision | DuplicateRequest> {
      const [row] = await withTimeout(
        sql<{ result: CommitResult }[]>`
          with claim as (${claim ? claimKey(claim) : noClaim}),
            locked as (${lockByToken(command, 'committed')}),
            updated as (
              update pool_allocations a set
                state = 'active', expires_at = null, committed_at = greatest(${now}, reserved_at),
                sovereign_fqdn = ${command.sovereignFQDN}, load_balancer_ip = ${command.loadBalancerIP}::inet
              from locked where locked.outcome = 'committed' and ${whereName(command)}
              returning a.*
            ),
            desired as (${setDesiredRecords(sql`updated`, records, 'new')}),
            history as (${insertHistory(sql`updated`, sql`'committed', 'reserved', 'active'`, caller)}),
            result as (
              select coalesce(locked.outcome, 'not-found') as outcome, ${columns}, desired.version
              from claim left join locked on true left join updated a on true left join desired on true
            ),
            ${storeAndReturn()}`,
        timeoutMs,
      )
      return row ? toCommitDecision(row.result) : duplicateRequest
    },

    /** Extends the reservation of this token to `reservation.ttlMs` from now, but not beyond its `maxAgeMs`. */
    async renew(command: RenewCommand, caller: Caller): Promise<RenewDecision> {
      const [row] = await withTimeout(
        sql<RenewResult[]>`
          with claim as (${noClaim}),
            locked as (${lockByToken(command, 'renewed')}),
            updated as (
              update pool_allocations a set
                expires_at = greatest(a.expires_at, least(${now} + ${ttl}, a.reserved_at + ${maxAge}))
              from locked where locked.outcome = 'renewed' and ${whereName(command)}
              returning a.*
            ),
            history as (${insertHistory(sql`updated`, sql`'renewed', 'reserved', 'reserved'`, caller)})
          select locked.outcome, ${columns} from locked left join updated a on true`,
        timeoutMs,
      )
      return toRenewDecision(row ?? { outcome: 'not-found' })
    },

    /** Deletes the allocation. If it was active, its desired records become none. */
    async release(
      command: ReleaseCommand,
      caller: Caller,
      claim: IdempotencyClaim | null = null,
    ): Promise<ReleaseDecision | DuplicateRequest> {
      const { tokenHash } = command
      const [row] = await withTimeout(
        sql<{ result: ReleaseResult }[]>`
          with claim as (${claim ? claimKey(claim) : noClaim}),
            locked as (
              select case
                when coalesce(token_hash = ${tokenHash ?? null}::bytea, true) then 'released'
                else 'token-mismatch'
              end as outcome
              from claim, pool_allocations a where ${whereName(command)} and ${notExpired} for update of a
            ),
            deleted as (
              delete from pool_allocations a using locked
              where locked.outcome = 'released' and ${whereName(command)}
              returning a.*
            ),
            desired as (${setDesiredRecords(sql`deleted where state = 'active'`, [], 'same')}),
            history as (${insertHistory(sql`deleted`, sql`'released', state, 'none'`, caller)}),
            result as (
              select coalesce(locked.outcome, 'not-found') as outcome, ${columnsWithDns},
                desired.version as "withdrawalVersion"
              from claim left join locked on true left join deleted a on true left join desired on true
                left join dns_names d on a.state = 'active' and d.zone = a.pool_domain and d.subdomain = a.subdomain
            ),
            ${storeAndReturn()}`,
        timeoutMs,
      )
      return row ? toReleaseDecision(row.result) : duplicateRequest
    },

    /** Deletes up to `limit` expired reservations, except those that are locked. Returns how many. */
    async deleteExpired(limit: number): Promise<number> {
      const [row] = await withTimeout(
        sql<{ count: number }[]>`
          with expired as (
              select pool_domain, subdomain from pool_allocations
              where state = 'reserved' and expires_at <= ${now}
              order by expires_at limit ${limit} for update skip locked
            ),
            deleted as (
              delete from pool_allocations a using expired
              where a.pool_domain = expired.pool_domain and a.subdomain = expired.subdomain
              returning a.*
            ),
            history as (${insertHistory(sql`deleted`, sql`'expired', 'reserved', 'none'`, 'sweeper')})
          select count(*) from deleted`,
        timeoutMs,
      )
      return row?.count ?? 0
    },

    /** The reservation of this token as it is now; null if it was committed or released, or has expired. */
    async findReservation(name: PoolName, tokenHash: Buffer): Promise<Granted | null> {
      const [row] = await withTimeout(
        sql<AllocationRow[]>`
          select ${columns} from pool_allocations a
          where ${whereName(name)} and token_hash = ${tokenHash} and state = 'reserved' and ${notExpired}`,
        timeoutMs,
      )
      return row ? toGranted(row) : null
    },
  }
}

import type { Allocation } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { drainRows } from '@pool/database/drain-rows'
import { timeSql } from '@pool/database/time-sql'
import { withTimeout } from '@pool/database/with-timeout'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { type DuplicateRequest, duplicateRequest, type IdempotencyClaim } from '../idempotency/idempotency.ts'
import { idempotencySql } from '../idempotency/sql.ts'
import {
  type AllocationRow,
  type AllocationRowWithDns,
  type CommitResult,
  type HistoryRow,
  type ReleaseResult,
  type RenewResult,
  type ReserveResult,
  toAllocation,
  toCommitDecision,
  toGranted,
  toHistoryEntry,
  toReleaseDecision,
  toRenewDecision,
  toReserveDecision,
} from './domain/mapping.ts'
import type {
  AllocationCount,
  Caller,
  CommitCommand,
  CommitDecision,
  EntryWithId,
  Granted,
  HistoryPage,
  ListPage,
  PoolName,
  ReleaseCommand,
  ReleaseDecision,
  RenewCommand,
  RenewDecision,
  ReservationLimits,
  ReserveDecision,
  ReserveRequest,
} from './domain/types.ts'
import { allocationSql } from './sql.ts'

export type AllocationRepository = ReturnType<typeof createAllocationRepository>

/**
 * Every statement over pool_allocations and allocation_history.
 *
 * One statement decides each write, with the condition inside it: `for update` waits for a concurrent writer of the row and
 * then sees that writer's result, so no decision uses an older state. The same statement inserts the history, sets the
 * desired records in dns_names, and stores the result under the Idempotency-Key. No transaction can be left
 * half done. A write with a claim returns `duplicate-request`, or no rows, if the key is not free.
 *
 * After `timeoutMs`, a statement rejects with a `TimeoutError`; its effect is then unknown.
 */
export const createAllocationRepository = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => {
  const { now, milliseconds } = timeSql(sql)
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

  const upsertReservations = (ttlMs: number) => sql`
    insert into pool_allocations as a
      (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    select pool_domain, subdomain, 'reserved', ${now}, ${now} + ${milliseconds(ttlMs)}, token_hash, created_by
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

  const reserveResults = (storedToken: string | null) => sql`
    select input.position, case when a.state is null then 'conflict' else 'granted' end as outcome, ${columns},
      ${storedToken}::text as "reservationToken"
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
    ttlMs: number,
    claim: IdempotencyClaim | null = null,
    storedToken: string | null = null,
  ): Promise<ReserveDecision[]> => {
    const rows = await withTimeout(
      sql<{ result: ReserveResult & { readonly position: number } }[]>`
        with claim as (${claim ? claimKey(claim) : noClaim}),
          input as (${inputRows(requests)}),
          upserted as (${upsertReservations(ttlMs)}),
          reserved as (${reservedRows}),
          transitions as (${transitionRows}),
          history as (${insertTransitions}),
          result as (${reserveResults(storedToken)}),
          ${storeAndReturn}`,
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

  /**
   * One lookup per row, whatever the planner estimates. With a plain join, each page of a list could read the zone from its
   * start, and the list would take quadratic time. A reservation has no records, so its lookup returns nothing.
   */
  const leftJoinDns = sql`
    left join lateral (
      select version, applied_version, last_error from dns_names
      where a.state = 'active' and zone = a.pool_domain and subdomain = a.subdomain limit 1
    ) d on true`

  return {
    reserveMany,

    async reserve(
      request: ReserveRequest,
      ttlMs: number,
      claim: IdempotencyClaim | null = null,
      /** The token, for a replay. */
      storedToken: string | null = null,
    ): Promise<ReserveDecision | DuplicateRequest> {
      const [decision] = await reserveMany([request], ttlMs, claim, storedToken)
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
            ${storeAndReturn}`,
        timeoutMs,
      )
      return row ? toCommitDecision(row.result) : duplicateRequest
    },

    /** Extends the reservation of this token to `ttlMs` from now, but not beyond `maxAgeMs` after it was made. */
    async renew(command: RenewCommand, limits: ReservationLimits, caller: Caller): Promise<RenewDecision> {
      const [row] = await withTimeout(
        sql<RenewResult[]>`
          with claim as (${noClaim}),
            locked as (${lockByToken(command, 'renewed')}),
            updated as (
              update pool_allocations a set
                expires_at = greatest(a.expires_at, least(
                  ${now} + ${milliseconds(limits.ttlMs)}, a.reserved_at + ${milliseconds(limits.maxAgeMs)}))
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
            ${storeAndReturn}`,
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

    /** The state of each name, in the order of the names; null if it is free. */
    async findStates(names: readonly PoolName[]): Promise<(Allocation['state'] | null)[]> {
      const pairs = names.map(({ poolDomain, subdomain }) => [poolDomain, subdomain])
      const rows = await withTimeout(
        sql<{ state: Allocation['state'] | null }[]>`
          select allocation.state from jsonb_array_elements(${sql.json(pairs)}) with ordinality as input (name, position)
          left join lateral (
            select state from pool_allocations a
            where a.pool_domain = name ->> 0 and a.subdomain = name ->> 1 and ${notExpired} limit 1
          ) allocation on true
          order by position`,
        timeoutMs,
      )
      return rows.map(({ state }) => state)
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

    /** Whether the name is active and was committed with this token. */
    async isActiveWithToken(name: PoolName, tokenHash: Buffer): Promise<boolean> {
      const rows = await withTimeout(
        sql`
          select from pool_allocations a
          where ${whereName(name)} and token_hash = ${tokenHash} and state = 'active'`,
        timeoutMs,
      )
      return rows.length > 0
    },

    async find(name: PoolName): Promise<Allocation | null> {
      const [row] = await withTimeout(
        sql<AllocationRowWithDns[]>`
          select ${columnsWithDns} from pool_allocations a ${leftJoinDns} where ${whereName(name)} and ${notExpired}`,
        timeoutMs,
      )
      return row ? toAllocation(row) : null
    },

    /** Sorted by the bytes of the subdomain. */
    async list(poolDomain: string, { after, limit, state }: ListPage): Promise<Allocation[]> {
      const rows = await withTimeout(
        sql<AllocationRowWithDns[]>`
          select ${columnsWithDns} from (
            select * from pool_allocations a
            where a.pool_domain = ${poolDomain} and a.subdomain > ${after} and ${notExpired}
              ${state ? sql`and a.state = ${state}` : sql``}
            order by a.subdomain limit ${limit}
          ) a ${leftJoinDns} order by a.subdomain`,
        timeoutMs,
      )
      return drainRows(rows).map(toAllocation)
    },

    /** Newest first. */
    async listHistory(poolDomain: string, { subdomain, before, limit }: HistoryPage): Promise<EntryWithId[]> {
      const rows = await withTimeout(
        sql<HistoryRow[]>`
          select id, pool_domain as "poolDomain", subdomain, at, event, from_state as "from", to_state as "to",
            actor, address, created_by as "createdBy", request_id as "requestId", detail
          from allocation_history
          where pool_domain = ${poolDomain}
            ${subdomain === undefined ? sql`` : sql`and subdomain = ${subdomain}`}
            ${before === undefined ? sql`` : sql`and id < ${before}`}
          order by id desc limit ${limit}`,
        timeoutMs,
      )
      return drainRows(rows).map(toHistoryEntry)
    },

    /** Counts the allocations that are not expired. It reads every row: 3 s for ten million rows in memory, longer from disk. */
    async countByState(): Promise<readonly AllocationCount[]> {
      return withTimeout(
        sql<AllocationCount[]>`
          select pool_domain as "poolDomain", state, count(*) from pool_allocations a where ${notExpired} group by 1, 2`,
        timeoutMs,
      )
    },
  }
}

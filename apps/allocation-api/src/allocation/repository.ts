import type { Allocation, DnsState, ReservedAllocation } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { timeSql } from '@pool/runtime/database/time'
import type { Execute, Guard, Writer } from '@pool/runtime/database/writer'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { type DuplicateRequest, duplicateRequest, type IdempotencyClaim } from '../idempotency/idempotency.ts'
import type { SealedToken } from '../idempotency/sealed-token.ts'
import { idempotencySql } from '../idempotency/sql.ts'
import { type Caller, type PoolName, toFqdn } from '../naming/naming.ts'
import { type SyncStatus, toDnsState } from '../reconciler/domain/status.ts'
import type {
  ActiveWithoutDns,
  CommitCommand,
  CommitDecision,
  CoolingOff,
  FormerHolder,
  Granted,
  NameState,
  ReleaseCommand,
  ReleaseDecision,
  RenewCommand,
  RenewDecision,
  ReservationLimits,
  ReserveDecision,
  ReserveRequest,
  TokenRejection,
  UpdateCommand,
  UpdateDecision,
} from './domain/types.ts'
import { allocationSql } from './sql.ts'

/** A `Date` in a row of the driver, a string in a result that was stored as JSON. */
type Timestamp = Date | string

/** What a reservation has of a row of pool_allocations. */
export interface ReservationRow {
  readonly poolDomain: string
  readonly subdomain: string
  readonly reservedAt: Timestamp
  readonly createdBy: string
  readonly expiresAt: Timestamp | null
}

/** A row of pool_allocations. */
export interface AllocationRow extends ReservationRow {
  readonly state: 'reserved' | 'active'
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

interface ReserveConflict {
  readonly outcome: 'conflict'
  /** Not null if the name is in its cool-off. */
  readonly availableAt: Timestamp | null
}

export type ReserveResult =
  /** The request has the other columns of the reservation. */
  (Pick<ReservationRow, 'reservedAt' | 'expiresAt'> & { readonly outcome: 'granted' }) | ReserveConflict
export type CommitResult = StatementResult<
  'committed',
  AllocationRow & { readonly version: number },
  TokenRejection['kind']
>
export type UpdateResult = StatementResult<
  'updated',
  AllocationRow & { readonly version: number | null },
  'not-found' | 'not-active' | 'token-mismatch'
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

const commonFields = (row: ReservationRow) => ({
  poolDomain: row.poolDomain,
  subdomain: row.subdomain,
  reservedAt: toIsoString(row.reservedAt),
  createdBy: row.createdBy,
})

const toReservedAllocation = (row: ReservationRow): ReservedAllocation => ({
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

export const toGranted = (row: ReservationRow): Granted => ({ kind: 'granted', allocation: toReservedAllocation(row) })

/** A row of the lookup of a name; null if the name is free. */
export interface NameStateRow {
  readonly state: Allocation['state'] | 'pool' | 'cooling-off' | null
  /** Not null if the state is `cooling-off`. */
  readonly availableAt: Timestamp | null
}

const toCoolingOff = ({ availableAt }: Pick<NameStateRow, 'availableAt'>): CoolingOff => ({
  kind: 'cooling-off',
  availableAt: toIsoString(availableAt),
})

export const toNameState = ({ state, availableAt }: NameStateRow): NameState =>
  state === 'cooling-off' ? toCoolingOff({ availableAt }) : state

export const toConflict = ({ availableAt }: ReserveConflict): Exclude<ReserveDecision, Granted> =>
  availableAt === null ? { kind: 'conflict' } : toCoolingOff({ availableAt })

export const toCommitDecision = (result: CommitResult): CommitDecision =>
  result.outcome === 'committed'
    ? { kind: result.outcome, allocation: toActiveAllocation(result), version: result.version }
    : { kind: result.outcome }

export const toUpdateDecision = (result: UpdateResult): UpdateDecision =>
  result.outcome === 'updated'
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
  /** Milliseconds for which a released active name can be reserved by its former client only; 0 by default. */
  readonly coolOffMs?: number
}

/** For each name, the position of the first one that is the same. */
const findFirsts = (names: readonly PoolName[]): number[] => {
  const positions = new Map<string, number>()
  return names.map(({ poolDomain, subdomain }, position) => {
    const fqdn = toFqdn(poolDomain, subdomain)
    const first = positions.get(fqdn) ?? position
    positions.set(fqdn, first)
    return first
  })
}

/** The OID of the type `json`. */
const JSON_TYPE = 114

/** One commit of a batch. */
export interface CommitRequest {
  readonly command: CommitCommand
  /** The desired records of the name. */
  readonly records: readonly RecordSet[]
  readonly caller: Caller
}

export type AllocationRepository = ReturnType<typeof createAllocationRepository>

/**
 * The statements that change pool_allocations. Each of them has no effect after its deadline.
 *
 * One statement decides each write, with the condition inside it: `for update` waits for a concurrent writer of the row and
 * then sees that writer's result, so no decision uses an older state. The same statement inserts the history, sets the
 * desired records in dns_names, and stores the result under the Idempotency-Key. No transaction can be left
 * half done. A write with a claim returns `duplicate-request`, or no rows, if the key is not free.
 *
 * The locks, in their order: idempotency_keys, pool_allocations, dns_names, idempotency_results; rows in name order. Each
 * statement compares the time with the deadline after its last lock. In most of them the last part does, which counts the
 * rows of all parts that write.
 *
 * If the time is up, a statement rejects with a `TimeoutError`; it can then only be committing or have no effect.
 */
export const createAllocationRepository = (
  writer: Writer,
  { reservation, coolOffMs = 0 }: AllocationRepositoryOptions,
) => {
  const { sql } = writer
  const { now, milliseconds } = timeSql(sql)
  const ttl = milliseconds(reservation.ttlMs)
  const maxAge = milliseconds(reservation.maxAgeMs)
  const allocations = allocationSql(sql)
  const { reservationColumns, columns, columnsWithDns, whereName, isLive, isLapsed, isFree, isCoolingOff, freeAt } =
    allocations
  const toJson = (records: readonly RecordSet[]) => sql`${sql.json(records as never)}`
  /** The requests of a batch. Type `json`, because the server reads them once: it would build a `jsonb` in vain. */
  const toInput = (rows: readonly object[]) => sql.typed(rows as never, JSON_TYPE)
  const { setDesiredRecords, insertHistory, renewalColumns, hold, letGo } = allocations
  const nameRow = ({ poolDomain, subdomain }: PoolName) =>
    sql`select ${poolDomain}::text as pool_domain, ${subdomain}::text as subdomain`
  const { claimKey, assertInTime, storeAndReturn } = idempotencySql(sql)
  const write = <Result>(
    { poolDomain, subdomain }: PoolName,
    execute: Execute<Result>,
    first?: () => Promise<Result>,
  ) => writer.write(toFqdn(poolDomain, subdomain), execute, first)

  /** A request that decides alone, or with others by `inBatch`. */
  const decide = <Decision>(
    name: PoolName,
    execute: Execute<Decision[]>,
    inBatch?: () => Promise<Decision>,
  ): Promise<Decision | DuplicateRequest> =>
    write<Decision | DuplicateRequest>(
      name,
      async (lane, guard) => (await execute(lane, guard))[0] ?? duplicateRequest,
      inBatch,
    )

  /** The columns that the requests of every batch have. */
  const toRequestRow = (
    { poolDomain, subdomain, tokenHash }: PoolName & { readonly tokenHash: Buffer },
    { actor, address, requestId }: Caller,
    position: number,
  ) => ({
    position,
    pool_domain: poolDomain,
    subdomain,
    token_hash: `\\x${tokenHash.toString('hex')}`,
    actor,
    address,
    request_id: requestId,
  })

  /** In the order of the requests. */
  const toResults = <Result extends { readonly position: number }>(rows: readonly { readonly result: Result }[]) =>
    rows.map(({ result }) => result).toSorted((a, b) => a.position - b.position)

  // The parts of reserveMany, in the order of its statement.

  /** Of several requests for a name, the first one competes for it. */
  const inputRows = (requests: readonly ReserveRequest[], firsts: readonly number[]) => {
    const rows = requests.flatMap(({ command, tokenHash, caller }, position) =>
      firsts[position] === position
        ? [{ ...toRequestRow({ ...command, tokenHash }, caller, position), created_by: command.createdBy }]
        : [],
    )
    return sql`
      select request.* from claim, json_to_recordset(${toInput(rows)}) as request (
        position int, pool_domain text, subdomain text, created_by text, token_hash bytea, actor text, address text,
        request_id text)`
  }

  const hasFormer = ({ tokenHash, lineageId }: FormerHolder) => sql`
    ${isLapsed} and case
      when a.lineage_id is null then ${tokenHash ?? null}::bytea in (a.token_hash, a.former_token_hash)
      else a.lineage_id = ${lineageId ?? null}::uuid
    end`

  const upsertReservations = (former: FormerHolder | null) => sql`
    insert into pool_allocations as a
      (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    select pool_domain, subdomain, 'reserved', ${now}, ${now} + ${ttl}, token_hash, created_by
    from input order by pool_domain collate "C", subdomain collate "C"
    on conflict (pool_domain, subdomain) do update set
      state = excluded.state, reserved_at = excluded.reserved_at, expires_at = excluded.expires_at,
      token_hash = excluded.token_hash, former_token_hash = ${former?.tokenHash ?? null}::bytea,
      created_by = excluded.created_by, replaced_state = a.state, renewal_count = 0,
      sovereign_fqdn = null, load_balancer_ip = null, committed_at = null,
      cool_off_until = case when a.cool_off_until > ${now} then a.cool_off_until end
    where ${isFree}
      ${former ? sql`or ${hasFormer(former)}` : sql``}
    returning a.pool_domain, a.subdomain, a.reserved_at, a.expires_at, a.replaced_state`

  // The former row is of the snapshot, which does not have a reservation that was inserted and expired while this statement
  // waited for its row. Its created_by and its renewals stay unknown.
  const decidedReservations = sql`
    select input.*, upserted.reserved_at, upserted.expires_at, upserted.replaced_state,
      former.created_by as former_created_by, former.renewal_count, former.renewed_until, former.available_at
    from input
      left join upserted on upserted.pool_domain = input.pool_domain and upserted.subdomain = input.subdomain
      left join lateral (
        select a.created_by, a.renewal_count, a.expires_at as renewed_until, case when ${isCoolingOff} then ${freeAt} end as available_at
        from pool_allocations a
        where (upserted.reserved_at is null or upserted.replaced_state = 'reserved')
          and a.pool_domain = input.pool_domain and a.subdomain = input.subdomain limit 1
      ) former on true`

  const insertTransitions = sql`
    insert into allocation_history
      (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id, renewal_count,
        renewed_until)
    select pool_domain, subdomain, event, from_state, to_state,
      case when event = 'expired' then coalesce(former_created_by, '') else created_by end, actor, address, request_id,
      ${renewalColumns(sql`case when event = 'expired' then renewal_count end`, sql`renewed_until`)}
    from decided, (values (1, 'expired', 'reserved', 'none'), (2, 'reserved', 'none', 'reserved'))
      as transition (step, event, from_state, to_state)
    where reserved_at is not null and (event = 'reserved' or replaced_state = 'reserved')
    order by position, step
    returning 1`

  /**
   * Reserves a name that has no row, to which no rule about an earlier holder applies. Null if it has one: then `reserveRows`
   * decides. It costs the server less than that statement.
   */
  const reserveUnknownName = async (
    lane: Sql,
    guard: Guard,
    { command, tokenHash, caller }: ReserveRequest,
  ): Promise<Granted | null> => {
    const { poolDomain, subdomain, createdBy } = command
    // Nothing but the insert waits for a lock. The history entry takes none that another transaction can hold.
    const insertedInTime = sql`inserted where ${guard.assertInTime(sql`reserved_at`)}`
    const [row] = await lane<Pick<ReservationRow, 'reservedAt' | 'expiresAt'>[]>`
      with inserted as (
          insert into pool_allocations as a
            (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
          select ${poolDomain}, ${subdomain}, 'reserved', ${now}, ${now} + ${ttl}, ${tokenHash}, ${createdBy}
          where ${guard.limitLockWait}
          on conflict (pool_domain, subdomain) do nothing
          returning a.pool_domain, a.subdomain, a.reserved_at, a.expires_at, a.created_by
        ),
        history as (${insertHistory(insertedInTime, sql`'reserved', 'none', 'reserved'`, caller)})
      select reserved_at as "reservedAt", expires_at as "expiresAt" from inserted`
    return row ? toGranted({ ...command, ...row }) : null
  }

  /**
   * Reserves the requested names in one statement. If several requests want the same name, the first one gets it. The
   * result is the decisions in the order of the requests, or none if the key of the claim is not free. A request that is alone,
   * without a claim and a former holder, tries `reserveUnknownName` first.
   *
   *   claim     claims the Idempotency-Key, if any
   *   input     the first request for each name, with its position
   *   upserted  inserts the reservations, and replaces the rows of free names and those of the former holder
   *   decided   the requests with their reservation, if any, and with the row that it replaced or that rejects it
   *   history   inserts 'expired' for a replaced reservation, then 'reserved'
   *   result    'granted' or 'conflict' for each of them. A conflict with `availableAt` is a cool-off. That reason is the one
   *             at the start of the statement; the upsert alone decides whether the name is granted.
   *
   * The upsert locks rows in name order, so concurrent batches cannot deadlock.
   */
  const reserveRows =
    (
      requests: readonly ReserveRequest[],
      claim: IdempotencyClaim | null,
      token: SealedToken | null,
      former: FormerHolder | null,
    ): Execute<ReserveDecision[]> =>
    async (lane, guard) => {
      const [request] = requests
      if (request && requests.length === 1 && claim === null && former === null) {
        const granted = await reserveUnknownName(lane, guard, request)
        if (granted) return [granted]
      }
      const firsts = findFirsts(requests.map(({ command }) => command))
      const rows = await lane<{ result: ReserveResult & { readonly position: number } }[]>`
        with claim as (${claimKey(guard, claim)}),
          input as (${inputRows(requests, firsts)}),
          upserted as (${upsertReservations(former)}),
          decided as (${decidedReservations}),
          history as (${insertTransitions}),
          result as (
            select position, case when reserved_at is null then 'conflict' else 'granted' end as outcome,
              reserved_at as "reservedAt", expires_at as "expiresAt", available_at as "availableAt"
            from decided
          ),
          ${storeAndReturn(guard, claim, ['upserted', 'history'], token && { success: 'granted', token })}`
      const results = new Map(rows.map(({ result }) => [result.position, result]))
      return requests.flatMap(({ command }, position): ReserveDecision[] => {
        const result = results.get(firsts[position] ?? position)
        if (result === undefined) return []
        if (result.outcome === 'conflict') return [toConflict(result)]
        const isFirst = firsts[position] === position
        return [isFirst ? toGranted({ ...command, ...result }) : { kind: 'conflict' }]
      })
    }

  /** What decides about the token of a reservation `a`: `success`, or the reason for a rejection. */
  const tokenOutcome = (tokenHash: Fragment, success: 'committed' | 'renewed') => sql`
    case
      when a.state = 'active' then 'already-active'
      when a.expires_at <= ${now} then 'reservation-expired'
      when a.token_hash <> ${tokenHash} then 'token-mismatch'
      else ${success}
    end`
  const isReservation = sql`a.state not in ('released', 'pool')`

  // The parts of commitMany, in the order of its statement.

  const commitRequests = (requests: readonly CommitRequest[]) => {
    const rows = requests.map(({ command, records, caller }, position) => ({
      ...toRequestRow(command, caller, position),
      sovereign_fqdn: command.sovereignFQDN,
      load_balancer_ip: command.loadBalancerIP,
      desired: records,
    }))
    return sql`
      select request.*
      from claim, json_to_recordset(${toInput(rows)}) as request (
        position int, pool_domain text, subdomain text, token_hash bytea, sovereign_fqdn text, load_balancer_ip inet,
        desired jsonb, actor text, address text, request_id text)
      order by pool_domain collate "C", subdomain collate "C", position`
  }

  // A subquery with a limit is executed once per row of `input`, in their order, and always with the index.
  const lockedReservations = sql`
    select input.*, reservation.*
    from input left join lateral (
      select ${tokenOutcome(sql`input.token_hash`, 'committed')} as outcome, renewal_count as renewals,
        expires_at as reserved_until
      from pool_allocations a
      where a.pool_domain = input.pool_domain and a.subdomain = input.subdomain and ${isReservation} limit 1
      for update
    ) reservation on true`

  const decidedCommits = sql`
    select position, pool_domain, subdomain, case
        when position > min(position) filter (where outcome = 'committed') over (partition by pool_domain, subdomain)
          then 'already-active'
        else coalesce(outcome, 'not-found')
      end as outcome, sovereign_fqdn, load_balancer_ip, desired, actor, address, request_id, renewals, reserved_until
    from locked`

  const updateReservations = sql`
    update pool_allocations a set
      state = 'active', expires_at = null, cool_off_until = null, former_token_hash = null,
      committed_at = greatest(${now}, a.reserved_at), sovereign_fqdn = decided.sovereign_fqdn,
      load_balancer_ip = decided.load_balancer_ip, renewal_count = 0
    from decided
    where decided.outcome = 'committed' and a.pool_domain = decided.pool_domain and a.subdomain = decided.subdomain
    returning a.*, position, desired, actor, address, request_id, renewals, reserved_until`

  const commitResults = sql`
    select decided.position, decided.outcome, ${columns}, desired.version
    from decided left join updated a using (position)
      left join desired on desired.zone = a.pool_domain and desired.subdomain = a.subdomain`

  /**
   * Makes the reservations of these tokens active in one statement, and sets their desired records. The result is what one
   * commit after the other would get, in the order of the requests, or none if the key of the claim is not free.
   *
   *   claim     claims the Idempotency-Key, if any
   *   input     the requests in name order, numbered
   *   locked    `input` with the locked reservation, and whether its token and its expiry permit the commit
   *   decided   the first of the requests that may commit a name does, and for those behind it the name is active
   *   updated   the active names
   *   desired   sets their desired records
   *   history   'committed' for each of them, in the order of the requests
   *   result    of each request
   *
   * Both tables are locked in name order, so concurrent batches cannot deadlock.
   */
  const commitRows =
    (requests: readonly CommitRequest[], claim: IdempotencyClaim | null): Execute<CommitDecision[]> =>
    async (lane, guard) => {
      const rows = await lane<{ result: CommitResult & { readonly position: number } }[]>`
        with claim as (${claimKey(guard, claim)}),
          input as (${commitRequests(requests)}),
          locked as (${lockedReservations}),
          decided as (${decidedCommits}),
          updated as (${updateReservations}),
          desired as (${setDesiredRecords(sql`updated`, sql`held.desired`, 'new')}),
          history as (
            ${insertHistory(sql`updated order by position`, sql`'committed', 'reserved', 'active'`, 'each', {
              renewals: renewalColumns(sql`renewals`, sql`reserved_until`),
            })}
          ),
          result as (${commitResults}),
          ${storeAndReturn(guard, claim, ['updated', 'desired', 'history'])}`
      return toResults(rows).map(toCommitDecision)
    }

  return {
    /** Rejects if a name is locked, see `isLockTimeout`; `deadline` is in milliseconds of `performance.now()`. */
    reserveMany(requests: readonly ReserveRequest[], deadline: number): Promise<ReserveDecision[]> {
      return writer.executeOnce(reserveRows(requests, null, null, null), deadline)
    },

    /** `inBatch` may reserve the name with others in one statement. */
    reserve(
      request: ReserveRequest,
      claim: IdempotencyClaim | null = null,
      /** The reservation token for a replay under the key of the claim. */
      token: SealedToken | null = null,
      former: FormerHolder | null = null,
      inBatch?: () => Promise<ReserveDecision>,
    ): Promise<ReserveDecision | DuplicateRequest> {
      return decide(request.command, reserveRows([request], claim, token, former), inBatch)
    },

    /** Rejects if a name is locked, see `isLockTimeout`; `deadline` is in milliseconds of `performance.now()`. */
    commitMany(requests: readonly CommitRequest[], deadline: number): Promise<CommitDecision[]> {
      return writer.executeOnce(commitRows(requests, null), deadline)
    },

    /**
     * Makes the reservation of this token active and sets its desired records. `inBatch` may commit the name with others in
     * one statement.
     */
    commit(
      command: CommitCommand,
      records: readonly RecordSet[],
      caller: Caller,
      claim: IdempotencyClaim | null = null,
      inBatch?: () => Promise<CommitDecision>,
    ): Promise<CommitDecision | DuplicateRequest> {
      return decide(command, commitRows([{ command, records, caller }], claim), inBatch)
    },

    /** Changes the address of an active name, and its records with it. */
    async update(
      { tokenHash, loadBalancerIP, ...name }: UpdateCommand,
      records: readonly RecordSet[],
      caller: Caller,
      claim: IdempotencyClaim | null = null,
    ): Promise<UpdateDecision | DuplicateRequest> {
      const [row] = await write(
        name,
        (lane, guard) => lane<{ result: UpdateResult }[]>`
          with claim as (${claimKey(guard, claim)}),
            locked as (
              select a.load_balancer_ip as former_ip, case
                when state <> 'active' then 'not-active'
                when token_hash <> ${tokenHash ?? null}::bytea then 'token-mismatch'
                else 'updated'
              end as outcome
              from claim, pool_allocations a where ${whereName(name)} and ${isLive} for update of a
            ),
            updated as (
              update pool_allocations a set load_balancer_ip = coalesce(${loadBalancerIP ?? null}::inet, a.load_balancer_ip)
              from locked where locked.outcome = 'updated' and ${whereName(name)}
              returning a.*, former_ip
            ),
            changed as (select * from updated where load_balancer_ip <> former_ip),
            desired as (${setDesiredRecords(sql`changed`, toJson(records), 'same')}),
            history as (
              ${insertHistory(sql`changed`, sql`'updated', 'active', 'active'`, caller, {
                detail: sql`host(former_ip) || ' replaced by ' || host(load_balancer_ip)`,
              })}
            ),
            result as (
              select coalesce(locked.outcome, 'not-found') as outcome, ${columns}, desired.version
              from claim left join locked on true left join updated a on true left join desired on true
            ),
            ${storeAndReturn(guard, claim, ['updated', 'desired', 'history'])}`,
      )
      return row ? toUpdateDecision(row.result) : duplicateRequest
    },

    /** Ends the cool-off of a name. False if the name is not in a cool-off. */
    async liftCoolOff(name: PoolName, caller: Caller): Promise<boolean> {
      const lifted = await write(
        name,
        (lane, guard) => lane`
          with claim as (${claimKey(guard, null)}),
            locked as (
              select a.* from claim, pool_allocations a
              where ${whereName(name)} and ${isCoolingOff} for update of a
            ),
            lifted as (
              update pool_allocations a set state = 'released', expires_at = null, renewal_count = 0, cool_off_until = ${now}
              from locked where ${whereName(name)}
              returning 1
            ),
            transitions as (
              select *, 1 as step, 'expired' as event, 'reserved' as from_state from locked where state = 'reserved'
              union all
              select *, 2, 'cool-off-lifted', 'none' from locked
              order by step
            ),
            history as (
              ${insertHistory(sql`transitions`, sql`event, from_state, 'none'`, caller, {
                renewals: renewalColumns(sql`case when event = 'expired' then renewal_count end`, sql`expires_at`),
              })}
            ),
            ${assertInTime(guard, ['lifted', 'history'])}
          select from locked, in_time`,
      )
      return lifted.length > 0
    },

    /** Gives the live name with this token to the lineage; see `hold` in sql.ts. False if it does not have the name. */
    async hold({ tokenHash, ...name }: RenewCommand, lineageId: string): Promise<boolean> {
      const held = await write(
        name,
        (lane, guard) => lane`
          with claim as (${claimKey(guard, null)}),
            held as (${hold(sql`claim, (${nameRow(name)}) as name, (
              select ${tokenHash}::bytea as token_hash, ${lineageId}::uuid as lineage_id) as owner`)}),
            ${assertInTime(guard, ['held'])}
          select from held, in_time`,
      )
      return held.length > 0
    },

    /** Ends the hold of the lineage; see `letGo` in sql.ts. False if it does not hold the name. */
    async letGo(name: PoolName, lineageId: string): Promise<boolean> {
      const free = await write(
        name,
        (lane, guard) => lane`
          with claim as (${claimKey(guard, null)}),
            free as (${letGo(
              sql`claim, (${nameRow(name)}) as name, (select ${lineageId}::uuid as lineage_id) as owner`,
              coolOffMs,
            )}),
            ${assertInTime(guard, ['free'])}
          select from free, in_time`,
      )
      return free.length > 0
    },

    /**
     * Extends the reservation of this token to `reservation.ttlMs` from now, but not beyond its `maxAgeMs`. A renewal is
     * only counted: the history entry that ends the reservation has their number.
     */
    async renew(command: RenewCommand): Promise<RenewDecision> {
      const [row] = await write(
        command,
        (lane, guard) => lane<RenewResult[]>`
          with claim as (${claimKey(guard, null)}),
            locked as (
              select ${tokenOutcome(sql`${command.tokenHash}`, 'renewed')} as outcome
              from claim, pool_allocations a where ${whereName(command)} and ${isReservation} for update of a
            ),
            updated as (
              update pool_allocations a set
                expires_at = greatest(a.expires_at, least(${now} + ${ttl}, a.reserved_at + ${maxAge})),
                renewal_count = a.renewal_count + 1
              from locked where locked.outcome = 'renewed' and ${whereName(command)}
              returning a.*
            ),
            ${assertInTime(guard, ['updated'])}
          select locked.outcome, ${columns} from in_time, locked left join updated a on true`,
      )
      return toRenewDecision(row ?? { outcome: 'not-found' })
    },

    /**
     * Releases the allocation. If it was active, its desired records become none. Its row stays, invisible to clients,
     * during the cool-off and while a lineage holds the name.
     */
    async release(
      command: ReleaseCommand,
      caller: Caller,
      claim: IdempotencyClaim | null = null,
    ): Promise<ReleaseDecision | DuplicateRequest> {
      const { tokenHash } = command
      const [row] = await write(
        command,
        (lane, guard) => lane<{ result: ReleaseResult }[]>`
          with claim as (${claimKey(guard, claim)}),
            locked as (
              select a.*,
                case
                  when coalesce(token_hash = ${tokenHash ?? null}::bytea, true) then 'released'
                  else 'token-mismatch'
                end as outcome,
                case when a.state = 'active' then ${now} + ${milliseconds(coolOffMs)} else a.cool_off_until end as free_at
              from claim, pool_allocations a where ${whereName(command)} and ${isLive} for update of a
            ),
            released as (
              select *, lineage_id is not null or coalesce(free_at > ${now}, false) as stays
              from locked where outcome = 'released'
            ),
            kept as (
              update pool_allocations a set
                state = 'released', expires_at = null, renewal_count = 0, cool_off_until = released.free_at
              from released where stays and ${whereName(command)}
              returning 1
            ),
            deleted as (
              delete from pool_allocations a using released where not stays and ${whereName(command)}
              returning 1
            ),
            desired as (${setDesiredRecords(sql`released where state = 'active'`, toJson([]), 'same')}),
            history as (
              ${insertHistory(sql`released`, sql`'released', state, 'none'`, caller, {
                renewals: renewalColumns(sql`renewal_count`, sql`expires_at`),
              })}
            ),
            result as (
              select coalesce(locked.outcome, 'not-found') as outcome, ${columnsWithDns},
                desired.version as "withdrawalVersion"
              from claim left join locked on true left join released a on true left join desired on true
                left join dns_names d on a.state = 'active' and d.zone = a.pool_domain and d.subdomain = a.subdomain
            ),
            ${storeAndReturn(guard, claim, ['kept', 'deleted', 'desired', 'history'])}`,
      )
      return row ? toReleaseDecision(row.result) : duplicateRequest
    },

    /** Deletes the rows of up to `limit` free names, except those that are locked. Returns how many. */
    async deleteExpired(limit: number): Promise<number> {
      const [row] = await writer.executeOnce(
        lane => lane<{ count: number }[]>`
          with expired as (
              select pool_domain, subdomain from pool_allocations a where ${isFree}
              order by ${freeAt} limit ${limit} for update skip locked
            ),
            deleted as (
              delete from pool_allocations a using expired
              where a.pool_domain = expired.pool_domain and a.subdomain = expired.subdomain
              returning a.*
            ),
            history as (
              ${insertHistory(sql`deleted where state = 'reserved'`, sql`'expired', 'reserved', 'none'`, 'sweeper', {
                renewals: renewalColumns(sql`renewal_count`, sql`expires_at`),
              })}
            )
          select count(*) from deleted`,
      )
      return row?.count ?? 0
    },

    /** The reservation of this token as it is now; null if it was committed or released, or has expired. */
    async findReservation(name: PoolName, tokenHash: Buffer): Promise<Granted | null> {
      const [row] = await writer.executeOnce(
        lane => lane<ReservationRow[]>`
          select ${reservationColumns} from pool_allocations a
          where ${whereName(name)} and token_hash = ${tokenHash} and state = 'reserved' and ${isLive}`,
      )
      return row ? toGranted(row) : null
    },
  }
}

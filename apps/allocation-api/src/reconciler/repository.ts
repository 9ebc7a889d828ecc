import type { Fragment, Sql } from '@pool/runtime/database/client'
import { drainRows } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { JOIN_MS } from './domain/backoff.ts'
import type { CheckedName, DueName, NameVersion } from './domain/name.ts'
import type { AppliedName, AttemptedName, FailedName } from './domain/plan.ts'
import type { FailureCause, SyncStatus } from './domain/status.ts'
import type { StopCause, ZoneWrites } from './domain/zone-marker.ts'
import {
  type Claim,
  type Claimed,
  type ClaimRow,
  claim,
  isLeaseHeld,
  type Lease,
  toClaimed,
  updateLease,
} from './zone-lock.ts'

/** What a sync reads first: the names that are due, and the state of the writes to the zone. */
export interface Due {
  readonly names: readonly DueName[]
  readonly writes: ZoneWrites
}

/** What may be written to a zone, and the number of the write. */
export interface Attempt {
  /** Why nothing may be written to the zone; null: it may be written. */
  readonly stoppedCause: StopCause | null
  /** The number of the write. */
  readonly serial: number
  /** The names that may be written. */
  readonly subdomains: readonly string[]
}

/** What a sync achieved. */
export interface SyncOutcomes {
  readonly applied: readonly AppliedName[]
  readonly failed: readonly FailedName[]
  /** The zone has all desired records. */
  readonly isComplete: boolean
  /** The number of the write that the provider confirmed; null: none. */
  readonly serial: number | null
  /** The delay of the first drift check if the zone is new. */
  readonly firstDriftCheckMs: number
}

/** What the service knows of a zone, and when that changed. */
export interface ZoneState {
  readonly zone: string
  /** Whether it has names or is compared. False for a pool that has nothing yet, and for one that had. */
  readonly isTracked: boolean
  /** Names with a change that is not applied. */
  readonly pendingNames: number
  /** The oldest change that is not applied; null: there is none. */
  readonly oldestPendingAt: Date | null
  /** Its age; 0 if there is none. */
  readonly oldestPendingSeconds: number
  /** Names by the cause of their last failure. */
  readonly failing: Readonly<Partial<Record<FailureCause, number>>>
  /** Why nothing is written to the zone; null: it is written. */
  readonly stopCause: StopCause | null
  readonly stoppedAt: Date | null
  /** When the zone last had all desired records. */
  readonly syncedAt: Date | null
  readonly driftCheckedAt: Date | null
  readonly nextDriftCheckAt: Date | null
}

/** Names that are not applied, and how many of these failed at their last attempt. */
export interface PendingCounts {
  readonly pending: number
  readonly failing: number
}

/** How many of the latest previous record sets are kept for a name whose records change often. */
const MAX_PREVIOUS_RECORD_SETS = 120

/**
 * The assignments that start a new version of a row `d` of dns_names, due at `at`. The records that were desired before
 * become previous ones unless they stay, because a write of them that timed out can still take effect. Failures of the previous version end.
 */
export const newVersionColumns = (desired: string, at: string): string => `
  version = nextval('dns_version'), desired = ${desired}, changed_at = ${at}, next_attempt_at = ${at},
  previous_records = (
    select coalesce(jsonb_agg(record_set order by position), '[]') from (
      select record_set, position from jsonb_array_elements(d.previous_records || d.desired)
        with ordinality as previous (record_set, position)
      where position <= jsonb_array_length(d.previous_records)
        or not exists (select from jsonb_array_elements(${desired}) wanted where wanted = record_set)
      order by position desc limit ${MAX_PREVIOUS_RECORD_SETS}
    ) latest),
  attempts = 0, failure = null, last_error = null, leftover = null, is_drift_repair = false`

/** Rows named `item`, passed as one JSON parameter. */
const toVersionRows = (sql: Sql, names: readonly NameVersion[]) => sql`
  jsonb_to_recordset(${sql.json(names.map(({ subdomain, version }) => ({ subdomain, version })))}) as item
    (subdomain text, version bigint)`

/**
 * The columns of `items`, rows named `item`, whose names no other transaction has locked, and of these names; the statement
 * locks them. None if `lease` has no row. The others stay due. So a locked row does not hold up its zone.
 *
 * Every version is positive. The server expects a single row because of this condition, and looks each name up by the primary
 * key. Otherwise it expects a hundred, and may read all names of the zone to find one.
 */
const unlockedNames = (sql: Sql, zone: string, items: Fragment) => sql`
  select item.*, l.* from ${items} cross join lateral (
    select zone, deleted_records as former_deleted, failure as former_failure from dns_names
    where zone = ${zone} and subdomain = item.subdomain and exists (select from lease) limit 1
    for no key update skip locked
  ) l
  where sign(item.version) = 1`

/** The columns of a `DesiredName` and its version. */
const desiredColumns = (sql: Sql) => sql`
  subdomain, version, desired, owned, previous_records as previous,
  attempted_version > applied_version as "hasInFlightWrite",
  desired = '[]' or purge_version > applied_version as "isPurged"`

/** The columns of a `CheckedName`. */
const checkedColumns = (sql: Sql) => sql`
  ${desiredColumns(sql)}, applied_version = version as "isApplied",
  extract(epoch from statement_timestamp() - applied_at)::float8 * 1000 as "appliedMsAgo",
  extract(epoch from statement_timestamp() - changed_at)::float8 * 1000 as "changedMsAgo",
  is_drift_repair as "isDriftRepair"`

/**
 * The names that are due, as `DueName`: withdrawals, then names that are not published for their holder yet, then changes, of
 * which tenants can make many; each time those that wait longest first. Names that wait for their zone are with them, and those
 * that are due soon, unless they were rejected: they need few calls of their own, and get the room that a withdrawal makes. They
 * alone are not a reason to sync.
 */
const selectDue = (sql: Sql, zone: string, limit: number) => sql`
  select ${desiredColumns(sql)}, attempts, failure, is_drift_repair as "isDriftRepair"
  from dns_names
  where zone = ${zone} and applied_version < version and (next_attempt_at <= statement_timestamp() or failure = 'zone'
      or (failure in ('foreign-record', 'provider') and next_attempt_at <= statement_timestamp() + ${timeSql(sql).milliseconds(JOIN_MS)}))
    and (select min(next_attempt_at) from dns_names where zone = ${zone} and applied_version < version) <= statement_timestamp()
  order by next_attempt_at > statement_timestamp(), desired <> '[]', applied_version > purge_version and applied_version > 0,
    changed_at limit ${limit}`

/**
 * Raises the number of the zone's last write and returns it as `serial`, with the cause of a stop. It is committed before the
 * write. Nothing if `lease` has no row.
 */
const raiseSerial = (sql: Sql, zone: string, providerKind: string) => sql`
  insert into dns_zone_writes as w (zone, serial, provider_kind) select ${zone}::text, 1, ${providerKind}::text from lease
  on conflict (zone) do update set serial = w.serial + 1, provider_kind = coalesce(w.provider_kind, excluded.provider_kind)
  returning serial, stopped_cause`

/** The columns of a `ZoneWrites`. */
const selectWrites = (sql: Sql, zone: string) => sql`
  select i.id as installation, coalesce(w.serial, 0) as serial, w.provider_kind as "providerKind",
    w.stopped_cause as "stoppedCause", coalesce(w.confirmed_serial, 0) as "confirmedSerial",
    extract(epoch from statement_timestamp() - w.confirmed_at)::float8 * 1000 as "confirmedMsAgo",
    extract(epoch from statement_timestamp() - w.stopped_at)::float8 * 1000 as "stoppedMsAgo"
  from installation i left join dns_zone_writes w on w.zone = ${zone}`

/** `row` is the first one of `selectWrites`. */
const assertInstallation = <Row>(row: Row | undefined): Row => {
  if (!row) throw new Error('the table installation is empty; restore its row')
  return row
}

const toState = (desired: readonly RecordSet[]) => (desired.length === 0 ? 'none' : 'active')

export type ReconcilerRepository = ReturnType<typeof createReconcilerRepository>

/**
 * The desired records, which version of them the provider has, and when drift checks are due. `zoneSql` is for the statements that
 * acquire or release a lock.
 */
export const createReconcilerRepository = (sql: Sql, { timeoutMs }: { timeoutMs: number }, zoneSql = sql) => ({
  async listDue(zone: string, limit: number): Promise<DueName[]> {
    return withTimeout(sql<DueName[]>`${selectDue(sql, zone, limit)}`, timeoutMs)
  },

  /** Acquires the lock of the zone, and reads the due names and the state of the writes under it, in one statement. */
  async findDue(zone: string, limit: number, wanted: Claim): Promise<Claimed<Due>> {
    const due = sql`
      select * from (${selectWrites(sql, zone)}) as writes left join (${selectDue(sql, zone, limit)}) as due on true`
    const rows = await withTimeout(
      zoneSql<(ClaimRow & ZoneWrites & (DueName | { readonly subdomain: null }))[]>`${claim(sql, wanted, due)}`,
      timeoutMs,
    )
    const [row] = rows
    return toClaimed(row, () => ({
      names: rows.filter(one => one.subdomain !== null),
      writes: assertInstallation(row?.installation ? row : undefined),
    }))
  },

  /**
   * Every zone that was ever written, whether or not it is still configured, and every pool that a replica has registered:
   * this replica may not have read it yet.
   */
  async listZones(): Promise<string[]> {
    const rows = await withTimeout(
      sql<{ zone: string }[]>`select zone from dns_zones union select domain from pools`,
      timeoutMs,
    )
    return rows.map(row => row.zone)
  },

  async listDueZones(): Promise<string[]> {
    const rows = await withTimeout(
      sql<{ zone: string }[]>`
        select distinct zone from dns_names
        where applied_version < version and next_attempt_at <= statement_timestamp()`,
      timeoutMs,
    )
    return rows.map(row => row.zone)
  },

  /**
   * Records that the provider may have these versions from now on, whether or not the write is confirmed. It is committed
   * before the write: after a crash in between, the service must not take its own records for foreign ones. It does not
   * make the records `owned`, because a rejected write leaves the existing records in place. The records of other writers
   * that it deletes are saved for the history, because nothing shows them after the write. Returns the number of the write
   * and the names to write: not those whose row is locked. It renews the lease. Null: the lock is lost.
   */
  async markAttempted(
    zone: string,
    names: readonly AttemptedName[],
    providerKind: string,
    lease: Lease,
  ): Promise<Attempt | null> {
    const rows = names.map(({ subdomain, version, deletedRecords }) => ({ subdomain, version, deletedRecords }))
    const items = sql`
      jsonb_to_recordset(${sql.json(rows)}) as item (subdomain text, version bigint, "deletedRecords" jsonb)`
    const [row] = await withTimeout(
      sql<Attempt[]>`
        with ${updateLease(sql, lease, 'renew')}, item as (${unlockedNames(sql, zone, items)}), attempted as (
          update dns_names d set attempted_version = greatest(d.attempted_version, item.version),
            deleted_records = case
              when item."deletedRecords" = '[]' or d.applied_version >= item.version then d.deleted_records
              else (
                select jsonb_agg(distinct deleted)
                from jsonb_array_elements(d.deleted_records || item."deletedRecords") deleted)
            end
          from item
          where d.zone = item.zone and d.subdomain = item.subdomain
          returning d.subdomain
        ), raised as (${raiseSerial(sql, zone, providerKind)})
        select raised.serial, (select coalesce(jsonb_agg(subdomain), '[]') from attempted) as subdomains,
          raised.stopped_cause as "stoppedCause"
        from raised`,
      timeoutMs,
    )
    return row ?? null
  },

  /**
   * Records what a sync achieved and releases the lock of the zone, in one statement. Returns whether it was held; if not, the
   * statement changes nothing. A name whose row is locked stays due; the next sync finds its records and records that. It waits
   * for no flush: a crash of the server within a second can undo it, and then the next sync finds the state before it.
   *
   *   item     the names whose rows are not locked
   *   applied  those whose version the provider has, unless a newer one was attempted or applied
   *   failed   those whose version could not be applied, unless it was replaced in the meantime; a rejected one retries
   *            after the other rejected names
   *   freed    the other rejected names, if the provider has accepted one of them
   *   events   for the history: a failure when its cause changes, not for every attempt
   *   synced   the end of the sync
   */
  async saveOutcomes(
    zone: string,
    { applied, failed, isComplete, serial, firstDriftCheckMs }: SyncOutcomes,
    lease: Lease,
  ): Promise<boolean> {
    let queueMs = 0
    const rows = [
      ...applied.map(({ subdomain, version, desired, event, detail, leftover }) => {
        const owned = desired.map(({ name, type }) => ({ name, type }))
        return { subdomain, version, event, state: toState(desired), detail, leftover, owned }
      }),
      ...failed.map(({ subdomain, version, desired, failure, reason: detail, retryDelayMs, paceMs }) => {
        const row = { subdomain, version, event: 'failing', state: toState(desired), detail, failure, retryDelayMs }
        queueMs += paceMs
        return { ...row, paceMs, queueMs }
      }),
    ]
    const items = sql`
      jsonb_to_recordset(${sql.json(rows)}) as item
        (subdomain text, version bigint, event text, state text, detail text, leftover text, owned jsonb, failure text,
          "retryDelayMs" float8, "paceMs" float8, "queueMs" float8)`
    const milliseconds = (column: string) => sql`item.${sql(column)} * interval '1 millisecond'`
    const [row] = await withTimeout(
      zoneSql<{ isHeld: boolean }[]>`
        with ${updateLease(sql, lease, 'release')}, item as (${unlockedNames(sql, zone, items)}), applied as (
          update dns_names d set
            applied_version = item.version, applied_at = statement_timestamp(), attempted_version = item.version,
            attempts = 0, failure = null, last_error = null, leftover = item.leftover, is_drift_repair = false, owned = item.owned,
            deleted_records = '[]'
          from item
          where item.failure is null and d.zone = item.zone and d.subdomain = item.subdomain
            and d.applied_version < item.version and d.attempted_version <= item.version
          returning item.*
        ), failed as (
          update dns_names d set
            attempts = case when d.failure = 'provider' and item.failure <> 'provider' then 1 else d.attempts + 1 end,
            failure = item.failure, last_error = item.detail,
            next_attempt_at = greatest(
              statement_timestamp() + ${milliseconds('retryDelayMs')},
              case when item."paceMs" > 0 then
                -- The first name that fails is tried again at once.
                ${milliseconds('queueMs')}
                  - case when d.failure is distinct from 'rejected' then ${milliseconds('paceMs')} else interval '0' end
                  + greatest(statement_timestamp(), (
                    select max(other.next_attempt_at) from dns_names other
                    where other.zone = d.zone and other.applied_version < other.version and other.failure = 'rejected'
                      and not exists (select from item where item.subdomain = other.subdomain)))
              end)
          from item
          where item.failure is not null and d.zone = item.zone and d.subdomain = item.subdomain
            and d.version = item.version and d.applied_version < d.version
          returning item.*
        ), events as (
          insert into allocation_history
            (pool_domain, subdomain, event, from_state, to_state, actor, created_by, detail, deleted_records)
          select zone, subdomain, event, state, state, 'convergence', '', detail,
            case when failure is null then nullif(former_deleted, '[]') end
          from (
            select * from applied union all select * from failed where failure is distinct from former_failure
          ) as changed
        ), freed as (
          update dns_names d set next_attempt_at = statement_timestamp()
          from (
            select zone, subdomain from dns_names
            where zone = ${zone} and applied_version < version and failure = 'rejected'
              and exists (select from applied where former_failure = 'rejected')
              and not exists (select from item where item.subdomain = dns_names.subdomain)
            for no key update skip locked
          ) as rejected
          where d.zone = rejected.zone and d.subdomain = rejected.subdomain
        ), confirmed as (
          update dns_zone_writes set confirmed_serial = ${serial}::bigint, confirmed_at = statement_timestamp()
          where zone = ${zone} and confirmed_serial < ${serial}::bigint and exists (select from lease)
        ), synced as (
          insert into dns_zones as z (zone, synced_at, next_drift_check_at)
          select ${zone}::text, case when ${isComplete}::boolean then statement_timestamp() end,
            statement_timestamp() + ${timeSql(sql).milliseconds(firstDriftCheckMs)}
          from lease
          on conflict (zone) do update set synced_at = coalesce(excluded.synced_at, z.synced_at)
        )
        select exists (select from lease) and set_config('synchronous_commit', 'off', true) is not null as "isHeld"`,
      timeoutMs,
    )
    return row?.isHeld === true
  },

  async findWrites(zone: string): Promise<ZoneWrites> {
    const [row] = await withTimeout(sql<ZoneWrites[]>`${selectWrites(sql, zone)}`, timeoutMs)
    return assertInstallation(row)
  },

  /** Raises the number of the zone's last write, and returns it. It renews the lease. Null: the lock is lost. */
  async raiseSerial(zone: string, providerKind: string, lease: Lease): Promise<number | null> {
    const [row] = await withTimeout(
      sql<{ serial: number }[]>`with ${updateLease(sql, lease, 'renew')} ${raiseSerial(sql, zone, providerKind)}`,
      timeoutMs,
    )
    return row?.serial ?? null
  },

  /** Stops all writes to the zone, from every replica. Returns false if they are stopped already. */
  async stopWrites(zone: string, cause: StopCause, lease: Lease): Promise<boolean> {
    const stopped = await withTimeout(
      sql`
      insert into dns_zone_writes as w (zone, stopped_cause, stopped_at)
      select ${zone}::text, ${cause}::text, statement_timestamp() where ${isLeaseHeld(sql, lease)}
      on conflict (zone) do update set stopped_cause = excluded.stopped_cause, stopped_at = excluded.stopped_at
        where w.stopped_cause is null
      returning zone`,
      timeoutMs,
    )
    return stopped.length > 0
  },

  async findStatus(zone: string, subdomain: string): Promise<SyncStatus | null> {
    const [row] = await withTimeout(
      sql<SyncStatus[]>`
        select version, applied_version as "appliedVersion", coalesce(last_error, leftover) as "lastError" from dns_names
        where zone = ${zone} and subdomain = ${subdomain}`,
      timeoutMs,
    )
    return row ?? null
  },

  /** Every zone that was written or has names, and every registered pool; by name. */
  async listZoneStates(): Promise<ZoneState[]> {
    return withTimeout(
      sql<ZoneState[]>`
        with pending as (
          select zone, failure, count(*) as names, min(changed_at) as since from dns_names
          where applied_version < version group by zone, failure
        ), zones as (
          select zone from dns_zones union select domain from pools union select zone from pending
          union select zone from dns_zone_writes
        )
        select zone, count(z.zone) + count(p.zone) + count(w.stopped_cause) > 0 as "isTracked",
          coalesce(sum(p.names), 0)::int as "pendingNames", min(p.since) as "oldestPendingAt",
          coalesce(extract(epoch from statement_timestamp() - min(p.since))::float8, 0) as "oldestPendingSeconds",
          coalesce(jsonb_object_agg(p.failure, p.names) filter (where p.failure is not null), '{}') as failing,
          min(w.stopped_cause) as "stopCause", min(w.stopped_at) as "stoppedAt", min(z.synced_at) as "syncedAt",
          min(z.drift_checked_at) as "driftCheckedAt", min(z.next_drift_check_at) as "nextDriftCheckAt"
        from zones left join dns_zones z using (zone) left join pending p using (zone)
          left join dns_zone_writes w using (zone)
        group by zone order by zone`,
      timeoutMs,
    )
  },

  /**
   * The zones whose drift check is due. Each is claimed by one caller; if the caller does not call `recordDriftCheck`, the
   * zone is due again after `claimMs`.
   */
  async claimDueDriftChecks(claimMs: number): Promise<string[]> {
    const rows = await withTimeout(
      sql<{ zone: string }[]>`
        update dns_zones z set next_drift_check_at = statement_timestamp() + ${timeSql(sql).milliseconds(claimMs)}
        from (
          select zone from dns_zones where next_drift_check_at <= statement_timestamp() for update skip locked
        ) due
        where z.zone = due.zone returning z.zone`,
      timeoutMs,
    )
    return rows.map(row => row.zone)
  },

  async recordDriftCheck(zone: string, nextInMs: number): Promise<void> {
    await withTimeout(
      sql`
        update dns_zones set drift_checked_at = statement_timestamp(),
          next_drift_check_at = statement_timestamp() + ${timeSql(sql).milliseconds(nextInMs)}
        where zone = ${zone}`,
      timeoutMs,
    )
  },

  /** The names of the zone after `after`, in their order. */
  async listNames(zone: string, after: string, limit: number): Promise<CheckedName[]> {
    const rows = await withTimeout(
      sql<CheckedName[]>`
        select ${checkedColumns(sql)} from dns_names where zone = ${zone} and subdomain > ${after}
        order by subdomain limit ${limit}`,
      timeoutMs,
    )
    return drainRows(rows)
  },

  /** Those of `subdomains` that have a row. */
  async findNames(zone: string, subdomains: readonly string[]): Promise<CheckedName[]> {
    const rows = await withTimeout(
      sql<CheckedName[]>`
        select ${checkedColumns(sql)} from dns_names
        where zone = ${zone} and subdomain in (select jsonb_array_elements_text(${sql.json(subdomains)}))`,
      timeoutMs,
    )
    return drainRows(rows)
  },

  /** Gives applied names a new version of the same records, because the provider no longer has them. */
  async markDrifted(zone: string, names: readonly NameVersion[], lease: Lease): Promise<void> {
    await withTimeout(
      sql`
        update dns_names d set version = nextval('dns_version'), is_drift_repair = true,
          changed_at = statement_timestamp(), next_attempt_at = statement_timestamp()
        from ${toVersionRows(sql, names)}
        where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version and ${isLeaseHeld(sql, lease)}`,
      timeoutMs,
    )
  },

  /** Deletes the previous records of applied names, and the rows of names without desired records. */
  async prune(zone: string, names: readonly NameVersion[], lease: Lease): Promise<void> {
    await withTimeout(
      sql`
        with item as (select * from ${toVersionRows(sql, names)} where ${isLeaseHeld(sql, lease)}), deleted as (
          delete from dns_names d using item
          where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version and d.desired = '[]'
        )
        update dns_names d set previous_records = '[]' from item
        where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version and d.desired <> '[]'`,
      timeoutMs,
    )
  },

  /**
   * Makes every pending name of the zone due now, because an operator requested a retry. The caller holds the zone lock:
   * the statement locks as many rows as a sync does, in another order.
   */
  async retryNow(zone: string, lease: Lease): Promise<void> {
    await withTimeout(
      sql`
        update dns_names set next_attempt_at = statement_timestamp()
        where zone = ${zone} and applied_version < version and next_attempt_at > statement_timestamp()
          and ${isLeaseHeld(sql, lease)}`,
      timeoutMs,
    )
  },

  /** How many names of the zone are not applied, and how many of these have failed. */
  async countPending(zone: string): Promise<PendingCounts> {
    const [row] = await withTimeout(
      sql<PendingCounts[]>`
        select count(*) as pending, count(failure) as failing from dns_names
        where zone = ${zone} and applied_version < version`,
      timeoutMs,
    )
    return row ?? { pending: 0, failing: 0 }
  },
})

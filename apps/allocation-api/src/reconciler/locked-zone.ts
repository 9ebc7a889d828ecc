import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import pLimit from 'p-limit'
import type { ApplyResult, ReadResult, Unavailable, WantedRecords } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import type { RecordTemplate } from '../dns/domain/target.ts'
import type { Pools } from '../naming/naming.ts'
import type { ReconcilerObserver } from '../observability/domain/observer.ts'
import type { DesiredName } from './domain/name.ts'
import {
  MAX_BATCH_SIZE,
  type NameOutcome,
  type PlannedName,
  type PlanOptions,
  type SyncResult,
  toAppliedNames,
  toAttemptedNames,
  toFailedNames,
} from './domain/plan.ts'
import {
  createMarkerRecord,
  findStopCause,
  isMarkerOutdated,
  isOwnProvider,
  parseMarkers,
  type StopCause,
  toMarkerName,
  type ZoneMarker,
} from './domain/zone-marker.ts'
import type { OperationsRepository } from './operations-repository.ts'
import type { ProviderClient } from './provider-client.ts'
import type { LockLane, ReconcilerRepository } from './repository.ts'
import { type ScanPage, scanZone } from './zone-scan.ts'

/** Milliseconds, the same for every lock. */
export interface ZoneLockLimits {
  /** How long to queue behind another holder. */
  readonly waitMs: number
  /** How long a holder may send no statement before Postgres ends its transaction, and with it the lock. */
  readonly idleTimeoutMs: number
  /** How long one statement may take. */
  readonly timeoutMs: number
}

interface IdleClient {
  readonly sql: Sql
  /** The silences of the sessions when it was used last. */
  readonly silences: number
}

export interface ZoneLock {
  /** The id of the transaction that holds the lock, which no other transaction ever has. */
  readonly transaction: string
  /** Throws a `ZoneLockLostError` if the database, or the connection to it, went away since the lock was acquired. */
  assertHeld(): Promise<void>
  /**
   * Executes the last statement of the work, which `execute` sends before it returns, in the transaction that holds the lock,
   * and commits it, in one round trip. `execute` resolves with the value of `isHeld` in the statement. Rejects with a
   * `ZoneLockLostError` if the lock is lost; then the statement has no effect. Its result waits for no flush: a crash of the
   * server within a second can undo it, and then the next work finds the state before it.
   */
  finish(execute: (lane: LockLane) => Promise<boolean>): Promise<void>
}

export class ZoneLockLostError extends Error {
  constructor(name: string) {
    super(`zone lock lost: ${name}`)
  }
}

export type ZoneLocks = ReturnType<typeof createZoneLocks>

/** The SQLSTATE of an exceeded lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03'

/** Reads in the round trip that acquires the lock, after it is acquired: it sends its statements before it returns. */
export type ReadFirst<First> = (sql: Sql) => Promise<First>

/** Runs `work` while it holds the lock of `name`; null if the lock was not free for too long. */
export type WithLock = <Result, First = null>(
  name: string,
  work: (lock: ZoneLock, first: First) => Promise<Result>,
  readFirst?: ReadFirst<First>,
) => Promise<Result | null>

/**
 * Exclusive locks among all replicas: a row lock in an open transaction. Waiters queue. If the holder dies, Postgres
 * releases the lock when the connection closes.
 *
 * Each lock has its own connection, a client with a single one, and sends `begin` and `commit` itself. The driver's own
 * transactions are not used: if the connection dies in one, version 3.4.9 can write to the closed socket, which ends the
 * process, or run the rest on another session (its issues 1208 and 1216). Here a statement that
 * reaches another session finds another transaction, so the lost lock is noticed.
 *
 * The connections are not among `sessions`, which would close one that holds a lock. `sessions` only report a silent server.
 */
export const createZoneLocks = (url: string, limits: ZoneLockLimits, sessions: { readonly silences: number }) => {
  const { waitMs, idleTimeoutMs, timeoutMs } = limits
  const idle: IdleClient[] = []
  const inUse = new Set<Sql>()

  const close = (sql: Sql): void => void sql.end({ timeout: 0 }).catch(() => {})

  /** Not one whose server may have vanished: its first statement would wait in vain. */
  const takeIdle = (): Sql | null => {
    for (let client = idle.pop(); client; client = idle.pop()) {
      if (client.silences === sessions.silences) return client.sql
      close(client.sql)
    }
    return null
  }

  /**
   * The id of the transaction that holds the lock; `busy` after `waitMs`; `unknown` if the lock has no row yet. The settings of
   * the transaction are a condition on the row, which the server evaluates before it locks the row.
   */
  const acquire = async (sql: Sql, name: string): Promise<{ readonly transaction: string } | 'busy' | 'unknown'> => {
    const query = sql<{ transaction: string }[]>`
      with held as (
        select name from dns_zone_locks
        where name = ${name} and set_config('lock_timeout', ${`${waitMs}ms`}, true) is not null
          and set_config('idle_in_transaction_session_timeout', ${`${idleTimeoutMs}ms`}, true) is not null
          and set_config('synchronous_commit', 'off', true) is not null
        for update
      )
      select pg_current_xact_id()::text as transaction from held`
    try {
      const [held] = await withTimeout(query, waitMs + timeoutMs)
      return held ?? 'unknown'
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE) return 'busy'
      throw error
    }
  }

  const isCurrentTransaction = async (sql: Sql, transaction: string): Promise<boolean> => {
    const [row] = await withTimeout(
      sql<{ isCurrent: boolean | null }[]>`
        select pg_current_xact_id_if_assigned()::text = ${transaction} as "isCurrent"`,
      timeoutMs,
    )
    return row?.isCurrent === true
  }

  const commit = (sql: Sql) => withTimeout(sql`commit`, timeoutMs)

  /** Sends everything at once. The driver executes it in its order, because the client has a single connection. */
  const begin = async <First>(sql: Sql, name: string, readFirst: ReadFirst<First>) => {
    const steps = [
      withTimeout(sql`begin`, timeoutMs),
      acquire(sql, name),
      withTimeout(readFirst(sql), waitMs + timeoutMs),
    ] as const
    // After the first rejection, the others are not awaited.
    void Promise.allSettled(steps)
    const [began, acquired, first] = steps
    await began
    const lock = await acquired
    return typeof lock === 'string' ? lock : { ...lock, first: await first }
  }

  const runInTransaction = async <Result, First>(
    sql: Sql,
    name: string,
    work: (lock: ZoneLock, first: First) => Promise<Result>,
    readFirst: ReadFirst<First>,
  ): Promise<Result | null> => {
    let isFinished = false
    try {
      let held = await begin(sql, name, readFirst)
      while (held === 'unknown') {
        await commit(sql)
        await withTimeout(sql`insert into dns_zone_locks (name) values (${name}) on conflict do nothing`, timeoutMs)
        held = await begin(sql, name, readFirst)
      }
      if (held === 'busy') return null
      const { transaction, first } = held
      const assertHeld = async () => {
        if (!(await isCurrentTransaction(sql, transaction))) throw new ZoneLockLostError(name)
      }
      const isHeld = sql`pg_current_xact_id_if_assigned() is not distinct from ${transaction}::xid8`
      const lock: ZoneLock = {
        transaction,
        assertHeld,
        async finish(execute) {
          isFinished = true
          // Sent in this order: a query is sent when something waits for it.
          const executed = withTimeout(execute({ sql, isHeld }), timeoutMs)
          const [wasHeld] = await Promise.all([executed, commit(sql)])
          if (!wasHeld) throw new ZoneLockLostError(name)
        },
      }
      return await work(lock, first)
    } finally {
      if (!isFinished) await commit(sql)
    }
  }

  return {
    /**
     * Runs `work` while it holds the lock of `name`; null if the lock was not free within `waitMs`. `work` gets what
     * `readFirst` returns.
     */
    async withLock<Result, First = null>(
      name: string,
      work: (lock: ZoneLock, first: First) => Promise<Result>,
      readFirst: ReadFirst<First> = async () => null as First,
    ): Promise<Result | null> {
      const sql =
        takeIdle() ??
        createDatabaseClient(url, {
          maxConnections: 1,
          applicationName: 'allocation-api zone',
          maxStatementMs: waitMs + timeoutMs,
          expires: false,
        })
      inUse.add(sql)
      try {
        const result = await runInTransaction(sql, name, work, readFirst)
        idle.push({ sql, silences: sessions.silences })
        return result
      } catch (error) {
        // The state of the connection is unknown, so it is not reused. Closing it releases the lock.
        close(sql)
        throw error
      } finally {
        inUse.delete(sql)
      }
    },
    async close(): Promise<void> {
      const clients = [...idle.splice(0).map(({ sql }) => sql), ...inUse]
      await Promise.all(clients.map(sql => sql.end({ timeout: 0 })))
    },
  }
}

/** What a process needs to know for its work on zones. */
export interface ReconcilerSettings {
  /** Stored with each zone that the process writes. A zone of another kind is not written. */
  readonly providerKind: string
  /** False: reads and plans only. */
  readonly writesZones: boolean
  /** Whether a name whose records were in a zone before the service waits for an operator. */
  readonly keepsUnknown: boolean
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
  /** Milliseconds from one drift check of a zone to the next. */
  readonly driftIntervalMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly observer: ReconcilerObserver
}

/** What all work on zones uses. A process has one. */
export interface ReconcilerTools extends ReconcilerSettings {
  readonly repository: ReconcilerRepository
  readonly operations: OperationsRepository
  readonly provider: ProviderClient
  /** The provider has one TTL for all records of a zone. */
  readonly hasZoneTtl: boolean
}

/** Another replica held the zone lock for longer than this one waits. */
export interface Busy {
  readonly kind: 'busy'
}

/** Runs `work` while no other process writes to the zone; null if another replica held its lock for too long. */
export type WithZone = <Result, First = null>(
  name: string,
  work: (zone: LockedZone, first: First) => Promise<Result>,
  readFirst?: ReadFirst<First>,
) => Promise<Result | null>

/** `apply` changes the database, and the zone if necessary. */
export type Mode = 'dry-run' | 'apply'

export interface MarkerCheck {
  /** Why the zone must not be written; null: it can be. */
  readonly stopCause: StopCause | null
  /** Milliseconds since it was stopped; null: it was not. */
  readonly stoppedMsAgo: number | null
  /** The marker is missing or older than the last write. */
  readonly isOutdated: boolean
}

export interface Applied {
  readonly result: ApplyResult
  /** The names that were not written because their rows were locked. */
  readonly locked: ReadonlySet<string>
  /** Not null: the zone was stopped since the sync began, so nothing was written. */
  readonly stoppedCause: StopCause | null
  /** The number of the write in the marker; null: nothing was written, or the marker was not. */
  readonly serial: number | null
}

const NOTHING_TO_APPLY: ApplyResult = { kind: 'applied', rejected: [] }

/** After this time it is verified again that the lock is held. */
const MAX_LOCK_STATUS_AGE_MS = 100

/** A zone while this process holds its lock: no other replica writes to it. */
export class LockedZone {
  readonly name: string
  readonly tools: ReconcilerTools
  readonly #lock: ZoneLock
  /** The number of the last write that the provider confirmed under this lock; null: none. */
  #confirmed: number | null = null

  constructor(name: string, tools: ReconcilerTools, lock: ZoneLock) {
    this.name = name
    this.tools = tools
    this.#lock = lock
  }

  /** Throws a `ZoneLockLostError` if the lock was lost. */
  assertHeld(): Promise<void> {
    return this.#lock.assertHeld()
  }

  /** A provider that replaces whole zones plans the next write on the result. */
  read(wanted: WantedRecords): Promise<ReadResult> {
    return this.tools.provider.read(this.name, wanted)
  }

  async readMarkers(): Promise<{ readonly kind: 'read'; readonly markers: readonly ZoneMarker[] } | Unavailable> {
    const read = await this.read({ names: [toMarkerName(this.name)], branches: [] })
    return read.kind === 'unavailable' ? read : { kind: 'read', markers: parseMarkers(this.name, read.records) }
  }

  /** Compares all records of the zone with the rows of its names; see `scanZone`. */
  scan(): AsyncGenerator<ScanPage | Unavailable, void> {
    const { name, tools } = this
    const { provider, repository, recordTemplate } = tools
    return scanZone({
      zone: name,
      recordTemplate,
      readZone: onPart => provider.readZone(name, onPart),
      listNames: (after, limit) => repository.listNames(name, after, limit),
      findNames: subdomains => repository.findNames(name, subdomains),
    })
  }

  /** For the plans of `names`. */
  planOptions(names: readonly DesiredName[]): Promise<PlanOptions> {
    return toPlanOptions(this.tools, this.name, names)
  }

  /** Null if the provider of this process is that of the zone. */
  async findOtherProvider(): Promise<Unavailable | null> {
    const { name, tools } = this
    const writes = await tools.repository.findWrites(name)
    if (isOwnProvider(writes, tools.providerKind)) return null
    const reason = `The zone ${name} is published with ${writes.providerKind}, and this replica is configured with ${tools.providerKind}.`
    return { kind: 'unavailable', scope: 'zone', reason }
  }

  /**
   * Compares the markers of a read that has ended with the database: read after the markers, its number is never lower, even
   * if the lock was lost in between. `apply` stops the zone if it must not be written, for all replicas.
   */
  async checkMarkers(markers: readonly ZoneMarker[], mode: Mode): Promise<MarkerCheck> {
    const { repository, observer } = this.tools
    const known = await repository.findWrites(this.name)
    const stopCause = findStopCause(markers, known)
    if (stopCause && mode === 'apply') {
      // Another replica may have resumed the zone since the markers were read.
      await this.assertHeld()
      if (await repository.stopWrites(this.name, stopCause)) observer.onZoneStopped(this.name, stopCause)
    }
    return { stopCause, stoppedMsAgo: known.stoppedMsAgo, isOutdated: isMarkerOutdated(markers, known) }
  }

  /** Writes the marker alone. It reads it first: a provider that replaces whole zones plans the write on that read. */
  async writeMarker(): Promise<ApplyResult> {
    const { repository, providerKind } = this.tools
    const read = await this.readMarkers()
    if (read.kind === 'unavailable') return read
    const { installation } = await repository.findWrites(this.name)
    const serial = await repository.raiseSerial(this.name, providerKind)
    await this.assertHeld()
    return this.#write({ installation, serial }, [])
  }

  /** Writes the changes of the plans. Before the write, it records the attempt and raises the number of the zone. */
  async apply(planned: readonly PlannedName[], installation: string): Promise<Applied> {
    const { repository, providerKind } = this.tools
    if (!planned.some(({ plan }) => plan.kind === 'changes' && plan.changes.length > 0)) {
      return { result: NOTHING_TO_APPLY, locked: new Set(), stoppedCause: null, serial: null }
    }
    const attempted = planned.flatMap(toAttemptedNames)
    const startedAt = performance.now()
    const attempt = await repository.markAttempted(this.name, attempted, providerKind, this.#lock.transaction)
    const { isHeld, stoppedCause, serial } = attempt
    if (!isHeld) throw new ZoneLockLostError(this.name)
    // The attempt knows the lock as it was before its commit, which may have waited for a disk or a standby.
    if (performance.now() - startedAt > MAX_LOCK_STATUS_AGE_MS) await this.assertHeld()
    const writable = new Set(attempt.subdomains)
    const locked = new Set(attempted.map(name => name.subdomain).filter(subdomain => !writable.has(subdomain)))
    const changes = planned.flatMap(({ name, plan }) =>
      plan.kind === 'changes' && !locked.has(name.subdomain) ? plan.changes : [],
    )
    if (stoppedCause || changes.length === 0) return { result: NOTHING_TO_APPLY, locked, stoppedCause, serial: null }
    const result = await this.#write({ installation, serial }, changes)
    const marker = toMarkerName(this.name)
    const isApplied = result.kind === 'applied' && !result.rejected.some(({ name }) => name === marker)
    if (isApplied && !result.skipped?.includes(marker)) this.#confirmed = serial
    return { result, locked, stoppedCause, serial: this.#confirmed }
  }

  /**
   * Saves what a sync achieved, in the transaction of the lock, which ends with it. A process that lost the lock saves nothing:
   * it does not know what another one has written since.
   */
  async save(outcomes: readonly NameOutcome[]): Promise<SyncResult> {
    const { repository, driftIntervalMs, random } = this.tools
    const applied = outcomes.flatMap(toAppliedNames)
    const failed = outcomes.flatMap(outcome => toFailedNames(outcome, random))
    const isComplete = applied.length === outcomes.length
    const firstDriftCheckMs = driftIntervalMs * (0.5 + 0.5 * random())
    const achieved = { applied, failed, isComplete, serial: this.#confirmed, firstDriftCheckMs }
    await this.#lock.finish(lane => repository.saveOutcomes(this.name, achieved, lane))
    return {
      applied: new Map(
        applied.filter(({ leftover }) => leftover === null).map(({ subdomain, version }) => [subdomain, version]),
      ),
      failed: new Map(failed.map(name => [name.subdomain, name])),
      hasMore:
        (outcomes.length === MAX_BATCH_SIZE && applied.length > 0) ||
        outcomes.some(({ outcome }) => outcome.kind === 'skipped'),
    }
  }

  /** Writes the marker before everything else. */
  async #write(marker: ZoneMarker, changes: readonly RecordChange[]): Promise<ApplyResult> {
    const { provider, recordTemplate, observer } = this.tools
    const set = createMarkerRecord(this.name, marker, recordTemplate.ttl)
    const result = await provider.apply(this.name, [{ kind: 'upsert', set }, ...changes])
    // The names are published nevertheless: without the marker, only the protection of a later restore is missing.
    const rejection = result.kind === 'applied' && result.rejected.find(({ name }) => name === set.name)
    if (rejection) observer.onMarkerRejected(this.name, rejection.reason)
    return result
  }
}

/** For the plans of `names`, those of one sync or drift check. */
export const toPlanOptions = async (
  { repository, hasZoneTtl, pools }: ReconcilerTools,
  zone: string,
  names: readonly DesiredName[],
): Promise<PlanOptions> => {
  // A zone that another replica manages, or that is no longer configured, keeps its records as well.
  const zones = names.some(name => name.isPurged) ? [...pools().known, ...(await repository.listZones())] : []
  return { zone, hasZoneTtl, zones }
}

/** Each has one provider call and one database connection. */
export const MAX_CONCURRENT_ZONES = 16

/** The lock of a provider that accepts one call at a time for the whole account. No zone has this name. */
const ACCOUNT_LOCK = '(account)'

/** How often a lock is used during the work. Less than the time after which Postgres ends an idle transaction. */
const HOLD_INTERVAL_MS = 5_000

/** Keeps the lock during work that sends no statement on its connection for long, such as a read of a large zone. */
const holdDuring = async <Result>(lock: ZoneLock, work: () => Promise<Result>): Promise<Result> => {
  // If the lock is lost, the next `assertHeld` of the work itself throws.
  const timer = setInterval(() => void lock.assertHeld().catch(() => {}), HOLD_INTERVAL_MS)
  return work().finally(() => clearInterval(timer))
}

/** Limits how many zones this process works on. `concurrency` is the provider's: 1 makes all zones share one lock. */
export const createZoneLocker = (tools: ReconcilerTools, withLock: WithLock, concurrency: 1 | undefined): WithZone => {
  const limit = pLimit(concurrency ?? MAX_CONCURRENT_ZONES)
  return (name, work, readFirst) =>
    limit(() =>
      withLock(
        concurrency === 1 ? ACCOUNT_LOCK : name,
        (lock, first) => holdDuring(lock, () => work(new LockedZone(name, tools, lock), first)),
        readFirst,
      ),
    )
}

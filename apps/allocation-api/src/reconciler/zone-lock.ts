import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'

/** One acquisition of a lock. */
export interface Lease {
  /** Of the lock. */
  readonly name: string
  /** A new id for each acquisition. */
  readonly holder: string
}

/** What a row of a lock had when it was read. */
interface SeenLease {
  readonly holder: string
  /** Null: of an acquisition by this process, whose work has ended. No other one has its holder. */
  readonly version: number | null
}

/** An attempt to acquire a lock. It succeeds if the lock is free, or still as it was when its holder was found to be dead. */
export interface Claim extends Lease {
  readonly expired: SeenLease | null
}

/** The outcome of an attempt: what was read under the lock, or what the lock has instead; null: it has no row. */
export type Claimed<First> =
  | { readonly isHeld: true; readonly first: First }
  | { readonly isHeld: false; readonly found: { readonly holder: string | null; readonly version: number } | null }

/** The columns of each row of a `claim`. */
export interface ClaimRow {
  readonly isHeld: boolean
  readonly foundHolder: string | null
  readonly foundVersion: number | null
}

/**
 * A statement that attempts to acquire a lock and reads `first` if it did. Its rows have the columns of a `ClaimRow` and those
 * of `first`. It acquires nothing if the lock changed after the statement began, so `first` is never older than the work of the
 * holder before. It does not wait for the row, which a build before leases may have locked.
 *
 * The acquisition is not flushed: the first write under the lock flushes it.
 */
export const claim = (sql: Sql, { name, holder, expired }: Claim, first: Fragment): Fragment => sql`
  with free as (
    select name, version from zone_leases
    where name = ${name} and set_config('synchronous_commit', 'off', true) is not null and (
      holder is null or holder = ${expired?.holder ?? null}::uuid and version = coalesce(${expired?.version ?? null}::bigint, version))
    for update skip locked
  ), lease as (
    update zone_leases l set holder = ${holder}::uuid, version = l.version + 1, changed_at = clock_timestamp() from free
    where l.name = free.name and free.version = (select version from zone_leases where name = ${name})
    returning l.name
  )
  select exists (select from lease) as "isHeld", l.holder as "foundHolder", l.version as "foundVersion", first.*
  from (select) as always left join zone_leases l on l.name = ${name} left join (${first}) as first on exists (select from lease)`

/** `row` is the first one of a `claim`. */
export const toClaimed = <First>(row: ClaimRow | undefined, readFirst: () => First): Claimed<First> => {
  if (row?.isHeld) return { isHeld: true, first: readFirst() }
  const { foundHolder: holder = null, foundVersion: version = null } = row ?? {}
  return { isHeld: false, found: version === null ? null : { holder, version } }
}

/** A common table expression that begins the lease anew or ends it. It has a row if the lock was held. */
export const updateLease = (sql: Sql, { name, holder }: Lease, end: 'renew' | 'release'): Fragment => sql`
  lease as (
    update zone_leases set holder = ${end === 'renew' ? holder : null}::uuid, version = version + 1, changed_at = clock_timestamp()
    where name = ${name} and holder = ${holder}::uuid returning name
  )`

/** A condition of each other write under the lock. If the lock is lost, the statement fails; else it is kept until its end. */
export const isLeaseHeld = (sql: Sql, { name, holder }: Lease): Fragment =>
  sql`(select assert_zone_lease(${name}, ${holder}::uuid))`

/** Milliseconds, the same for every lock. */
export interface ZoneLockLimits {
  /** How long to wait for another holder, unless the caller waits otherwise. */
  readonly waitMs: number
  /** How long a lock outlasts its holder. Every process has the same. */
  readonly leaseMs: number
  /** How long one statement may take. */
  readonly timeoutMs: number
}

export interface ZoneLock {
  readonly lease: Lease
  /** Milliseconds for which no other process acquires the lock, whatever becomes of this one and the database. */
  remainingMs(): number
  /** Executes a statement that also renews the lease. Rejects with a `ZoneLockLostError` if it returns null: the lock is lost. */
  renewWith<Result>(execute: (lease: Lease) => Promise<Result | null>): Promise<Result>
  /**
   * Executes the last statement of the work, which also releases the lock, and resolves with whether it was held. Rejects with a
   * `ZoneLockLostError` if not; then the statement has no effect.
   */
  finish(execute: (lease: Lease) => Promise<boolean>): Promise<void>
}

export class ZoneLockLostError extends Error {
  constructor(name: string) {
    super(`zone lock lost: ${name}`)
  }
}

export interface LockOptions<First> {
  /** Executes a `claim`. */
  readonly acquire?: (claim: Claim) => Promise<Claimed<First>>
  readonly waitMs?: number
}

/** Runs `work` while it holds the lock of `name`; null if the lock was not free for too long. */
export type WithLock = <Result, First = null>(
  name: string,
  work: (lock: ZoneLock, first: First) => Promise<Result>,
  options?: LockOptions<First>,
) => Promise<Result | null>

/** A part of the lease that its holder does not use: the monotonic clock of another machine can be faster. */
const LEASE_MARGIN = 0.1

/** The pause between two attempts to acquire a lock, before its jitter. It doubles. */
const MIN_PAUSE_MS = 5
const MAX_PAUSE_MS = 100

/**
 * Exclusive locks among all replicas. A lock is a row with the acquisition that holds it. No connection belongs to it, so work
 * under a lock needs none but that of its current statement.
 *
 *   acquire   if the row has no holder
 *   renew     raises the version, by each attempt to write and a few times in each lease
 *   expire    a process that saw the same version for the time of a lease takes the lock. So a step of a clock, of the database
 *             or of a machine, neither ends nor extends a lease
 *   write     each statement under the lock has the holder as a condition, so one that lost it changes nothing in the database
 *   call      the provider is called only in the time that is left of the lease since its last renewal
 *
 * A process that is paused during a call can continue it after its lease, as it can be late at the provider: the versions, the
 * attempts and the marker of the zone are for such writes.
 */
export const createZoneLocks = (sql: Sql, limits: ZoneLockLimits) => {
  const { leaseMs, timeoutMs } = limits
  const usableMs = leaseMs * (1 - LEASE_MARGIN)
  /** The other holder of each lock, and since when. */
  const seen = new Map<string, SeenLease & { readonly since: number }>()

  const findExpired = (name: string): SeenLease | null => {
    const last = seen.get(name)
    return last && performance.now() - last.since >= leaseMs ? last : null
  }

  /** The time is that of the answer: the holder counts from before its renewal. */
  const observe = (name: string, { holder, version }: { holder: string | null; version: number }): void => {
    const last = seen.get(name)
    const isSame = last?.holder === holder && (last.version === null || last.version === version)
    if (holder !== null && !isSame) seen.set(name, { holder, version, since: performance.now() })
  }

  const acquireOnly = async (wanted: Claim): Promise<Claimed<null>> => {
    const [row] = await withTimeout(sql<ClaimRow[]>`${claim(sql, wanted, sql`select`)}`, timeoutMs)
    return toClaimed(row, () => null)
  }

  const create = (name: string) =>
    withTimeout(sql`insert into zone_leases (name) values (${name}) on conflict do nothing`, timeoutMs)

  const update = async (lease: Lease, end: 'renew' | 'release'): Promise<true | null> => {
    const rows = await withTimeout(sql`with ${updateLease(sql, lease, end)} select from lease`, timeoutMs)
    return rows.length > 0 ? true : null
  }

  const hold = async <Result>(lease: Lease, acquiredAt: number, work: (lock: ZoneLock) => Promise<Result>) => {
    let renewedAt = acquiredAt
    let isReleased = false
    const renewWith: ZoneLock['renewWith'] = async execute => {
      const sentAt = performance.now()
      const result = await execute(lease)
      if (result === null) throw new ZoneLockLostError(lease.name)
      renewedAt = Math.max(renewedAt, sentAt)
      return result
    }
    // If it fails, the next statement or call of the work does not happen.
    const renewal = setInterval(() => void renewWith(() => update(lease, 'renew')).catch(() => {}), leaseMs / 4)
    try {
      const result = await work({
        lease,
        remainingMs: () => renewedAt + usableMs - performance.now(),
        renewWith,
        async finish(execute) {
          clearInterval(renewal)
          isReleased = await execute(lease)
          if (!isReleased) throw new ZoneLockLostError(lease.name)
        },
      })
      if (!isReleased) await update(lease, 'release')
      return result
    } finally {
      clearInterval(renewal)
    }
  }

  return {
    async withLock<Result, First = null>(
      name: string,
      work: (lock: ZoneLock, first: First) => Promise<Result>,
      { acquire = acquireOnly as never, waitMs = limits.waitMs }: LockOptions<First> = {},
    ): Promise<Result | null> {
      const lease: Lease = { name, holder: randomUUID() }
      const deadline = performance.now() + waitMs
      let mayHold = false
      try {
        for (let pauseMs = MIN_PAUSE_MS; ; ) {
          const sentAt = performance.now()
          mayHold = true
          const claimed = await acquire({ ...lease, expired: findExpired(name) })
          if (claimed.isHeld) return await hold(lease, sentAt, lock => work(lock, claimed.first))
          mayHold = false
          const { found } = claimed
          if (!found) {
            await create(name)
            continue
          }
          observe(name, found)
          if (performance.now() >= deadline) return null
          await sleep(pauseMs * (0.5 + Math.random()))
          pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
        }
      } catch (error) {
        if (mayHold) void update(lease, 'release').catch(() => {})
        throw error
      } finally {
        // Its work has ended, whatever the database has of it now or later.
        if (mayHold) seen.set(name, { holder: lease.holder, version: null, since: Number.NEGATIVE_INFINITY })
      }
    },
  }
}

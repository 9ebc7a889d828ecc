import type { Writer } from '@pool/runtime/database/writer'
import type { PoolName } from '../naming/naming.ts'
import type { Granted, ReservationLimits } from './domain/types.ts'
import { type ReservationRow, toGranted } from './rows.ts'
import {
  FREE_AT,
  IS_FREE,
  IS_LIVE,
  insertHistory,
  isRowOf,
  type NameRequest,
  type NameStatement,
  RESERVATION_COLUMNS,
  renewalColumns,
  SWEEPER,
  toSharedWrite,
} from './sql.ts'
import { commitStatement } from './statements/commit.ts'
import { holdStatement, letGoStatement } from './statements/hold.ts'
import { liftCoolOffStatement } from './statements/lift-cool-off.ts'
import { releaseStatement } from './statements/release.ts'
import { renewStatement } from './statements/renew.ts'
import { reserveStatement } from './statements/reserve.ts'
import { updateStatement } from './statements/update.ts'

export interface AllocationRepositoryOptions {
  readonly reservation: ReservationLimits
  /** Milliseconds for which a released active name can be reserved by its former client only; 0 by default. */
  readonly coolOffMs?: number
}

export type AllocationRepository = ReturnType<typeof createAllocationRepository>

/**
 * The writes to pool_allocations.
 *
 * One statement decides a write, with the condition inside it: its lock waits for a concurrent writer of the row and then
 * sees that writer's result, so no decision uses an older state. The same statement inserts the history, sets the desired
 * records in dns_names, and stores the outcome under the Idempotency-Key. No transaction can be left half done.
 *
 * The locks, in their order: pool_allocations, dns_names, idempotency_keys; rows in name order, and in the order of the keys.
 * So concurrent statements cannot deadlock. Each compares the time with the deadline after its last lock.
 */
export const createAllocationRepository = (
  writer: Writer,
  { reservation, coolOffMs = 0 }: AllocationRepositoryOptions,
) => {
  const share = <Request extends NameRequest, Row extends object, Decision>(
    statement: NameStatement<Request, Row, Decision>,
  ) => writer.share(toSharedWrite(statement))
  /** A request without a claim is never a duplicate. */
  const shareUnkeyed = <Request extends NameRequest, Row extends object, Decision>(
    statement: NameStatement<Request, Row, Decision>,
  ) => share(statement) as (request: Request) => Promise<Decision>

  return {
    reserve: share(reserveStatement(reservation)),
    commit: share(commitStatement),
    update: share(updateStatement),
    release: share(releaseStatement(coolOffMs)),
    renew: shareUnkeyed(renewStatement(reservation)),
    hold: shareUnkeyed(holdStatement),
    letGo: shareUnkeyed(letGoStatement(coolOffMs)),
    liftCoolOff: shareUnkeyed(liftCoolOffStatement),

    /** Deletes the rows of up to `limit` free names, except those that are locked. Returns how many. */
    async deleteExpired(limit: number): Promise<number> {
      const [row] = await writer.executeOnce(
        lane => lane<{ count: number }[]>`
          with expired as (
              select pool_domain, subdomain from pool_allocations a where ${lane.unsafe(IS_FREE)}
              order by ${lane.unsafe(FREE_AT)} limit ${limit} for update skip locked
            ),
            deleted as (
              delete from pool_allocations a using expired where ${lane.unsafe(isRowOf('expired'))}
              returning a.*
            ),
            ended as (select * from deleted where state = 'reserved'),
            history as (
              ${lane.unsafe(
                insertHistory('ended', `'expired', 'reserved', 'none'`, {
                  renewals: renewalColumns('renewal_count', 'expires_at'),
                  origin: SWEEPER,
                }),
              )}
            )
          select count(*) from deleted`,
      )
      return row?.count ?? 0
    },

    /** The reservation of this token as it is now; null if it was committed or released, or has expired. */
    async findReservation({ poolDomain, subdomain }: PoolName, tokenHash: Buffer): Promise<Granted | null> {
      const [row] = await writer.executeOnce(
        lane => lane<ReservationRow[]>`
          select ${lane.unsafe(RESERVATION_COLUMNS)} from pool_allocations a
          where a.pool_domain = ${poolDomain} and a.subdomain = ${subdomain} and token_hash = ${tokenHash}
            and state = 'reserved' and ${lane.unsafe(IS_LIVE)}`,
      )
      return row ? toGranted(row) : null
    },
  }
}

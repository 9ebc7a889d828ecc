import { NOW, toInterval } from '@pool/runtime/database/time'
import type { RenewCommand, RenewDecision, ReservationLimits, TokenRejection } from '../domain/types.ts'
import { type ReservationRow, toReservedAllocation } from '../rows.ts'
import {
  IS_RESERVATION,
  isInTime,
  isRowOf,
  type NameStatement,
  RESERVATION_COLUMNS,
  requests,
  tokenOutcome,
} from '../sql.ts'

type RenewRow = (ReservationRow & { readonly outcome: 'renewed' }) | { readonly outcome: TokenRejection['kind'] }

/**
 *   input    the requests
 *   locked   the requests with the locked reservation, and whether its token and its expiry permit the renewal
 *   updated  the reservations. A renewal is only counted: the history entry that ends the reservation has their number.
 */
const toText = ({ ttlMs, maxAgeMs }: ReservationLimits): string => `
  with input as (${requests()}),
    locked as (
      select input.*, coalesce(reservation.outcome, 'not-found') as outcome
      from input left join lateral (
        select ${tokenOutcome('renewed')} as outcome
        from pool_allocations a where ${isRowOf('input')} and ${IS_RESERVATION} limit 1
        for update
      ) reservation on true
    ),
    updated as (
      update pool_allocations a set
        expires_at = greatest(a.expires_at, least(${NOW} + ${toInterval(ttlMs)}, a.reserved_at + ${toInterval(maxAgeMs)})),
        renewal_count = a.renewal_count + 1
      from locked where locked.outcome = 'renewed' and ${isRowOf('locked')}
      returning a.*, position
    )
  select locked.position, is_new as "isNew", outcome, ${RESERVATION_COLUMNS}
  from locked left join updated a on a.position = locked.position
  where ${isInTime('updated')}`

/** Extends the reservation of a token to `ttlMs` from now, but not beyond its `maxAgeMs`. */
export const renewStatement = (limits: ReservationLimits): NameStatement<RenewCommand, RenewRow, RenewDecision> => ({
  text: toText(limits),
  toColumns: () => ({}),
  toDecision: row =>
    row.outcome === 'renewed' ? { kind: row.outcome, allocation: toReservedAllocation(row) } : { kind: row.outcome },
})

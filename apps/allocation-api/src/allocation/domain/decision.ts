import { activeOf, allocationOf, type Row, type RowWithProgress, reservedOf } from './mapping.ts'
import type { CommitDecision, Granted, ReleaseDecision, RenewDecision, ReserveDecision, TokenRefusal } from './types.ts'

/**
 * What the statements say that decide: one JSON object each, the same when it has just been decided and when it is
 * read again under an Idempotency-Key. The row stands in it only where something was done.
 */
export type Said<Outcome extends string, Row, Refused extends string> =
  | (Row & { readonly outcome: Outcome })
  | { readonly outcome: Refused }

export type ReserveSaid = Said<'granted', Row & { readonly reservationToken: string }, 'conflict'>
export type CommitSaid = Said<'committed', Row & { readonly version: number }, TokenRefusal['kind']>
export type RenewSaid = Said<'renewed', Row, TokenRefusal['kind']>
export type ReleaseSaid = Said<
  'released',
  RowWithProgress & { readonly withdrawal: number | null },
  'not-found' | 'token-mismatch'
>

export const grantedOf = (row: Row, reservationToken: string): Granted => ({
  kind: 'granted',
  allocation: reservedOf(row),
  reservationToken,
})

export const reserveDecisionOf = (said: ReserveSaid): ReserveDecision =>
  said.outcome === 'granted' ? grantedOf(said, said.reservationToken) : { kind: said.outcome }

export const commitDecisionOf = (said: CommitSaid): CommitDecision =>
  said.outcome === 'committed'
    ? { kind: said.outcome, allocation: activeOf(said), version: said.version }
    : { kind: said.outcome }

export const renewDecisionOf = (said: RenewSaid): RenewDecision =>
  said.outcome === 'renewed' ? { kind: said.outcome, allocation: reservedOf(said) } : { kind: said.outcome }

export const releaseDecisionOf = (said: ReleaseSaid): ReleaseDecision =>
  said.outcome === 'released'
    ? { kind: said.outcome, allocation: allocationOf(said), version: said.withdrawal }
    : { kind: said.outcome }

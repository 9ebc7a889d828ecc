import type { ActiveAllocation, Allocation, HistoryEntry, ReservedAllocation } from '@pool/contract'

/** A pair as it is granted: canonical, its label well-formed. */
export interface PoolName {
  readonly poolDomain: string
  readonly subdomain: string
}

/** Who asked, for the history. */
export interface Caller {
  /** The address that the request came through, or who works by itself. */
  readonly actor: 'in-cluster' | 'operator' | 'deployment'
  readonly address: string | null
  readonly requestId: string
}

export interface ReserveCommand extends PoolName {
  readonly createdBy: string
}

export interface ReserveRequest {
  readonly command: ReserveCommand
  readonly caller: Caller
}

export interface RenewCommand extends PoolName {
  readonly reservationToken: string
}

export interface CommitCommand extends RenewCommand {
  readonly sovereignFQDN: string
  readonly loadBalancerIP: string
}

export interface ReleaseCommand extends PoolName {
  /** When given, it must be the one of the allocation. */
  readonly reservationToken?: string | undefined
}

/** The right to decide under an Idempotency-Key, to be claimed by the statement that decides. */
export interface IdempotencyClaim {
  readonly key: string
  /** SHA-256 of the request. */
  readonly fingerprint: Buffer
  readonly keyTtlMs: number
  /** The attempt whose decision was found to hold no more; 0 when none was found. */
  readonly seenAttempt: number
}

/** Another request with the same key decides, or has decided: nothing was done. */
export type DuplicateRequest = Rejection<'key-taken'>

/** Why nothing was done. Each kind is the error code of its answer. */
export type Rejection<Kind extends string> = { readonly kind: Kind }

/** An active allocation as the table has it; how far its records are is kept elsewhere. */
export type ActiveRow = Omit<ActiveAllocation, 'dns'>

export type Granted = {
  readonly kind: 'granted'
  readonly allocation: ReservedAllocation
  readonly reservationToken: string
}
export type ReserveDecision = Granted | Rejection<'conflict'>

export type TokenRefusal = Rejection<'not-found' | 'already-active' | 'reservation-expired' | 'token-mismatch'>

/** `version` is that of the desired records: the one to wait for. */
export type Committed = { readonly kind: 'committed'; readonly allocation: ActiveRow; readonly version: number }
export type CommitDecision = Committed | TokenRefusal

export type RenewDecision = { readonly kind: 'renewed'; readonly allocation: ReservedAllocation } | TokenRefusal

/** `allocation` as it was; `version` is that of the withdrawal, null when the name never had records. */
export type Released = { readonly kind: 'released'; readonly allocation: Allocation; readonly version: number | null }
export type ReleaseDecision = Released | Rejection<'not-found' | 'token-mismatch'>

/** A transition with its place in the history, by which the reading goes on. */
export interface EntryWithId {
  readonly id: number
  readonly entry: HistoryEntry
}

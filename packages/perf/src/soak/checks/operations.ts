/** Milliseconds since the epoch on the clock of this machine, which is also the database's. */
export interface Span {
  /** Before the first byte of the first attempt was sent. */
  readonly start: number
  /** After the response; Infinity: none came. */
  readonly end: number
}

interface NameCall extends Span {
  readonly name: string
  /** Unique to the call; prefix of the request ids of its attempts. */
  readonly callId: string
  readonly attempts: number
}

/** A reserve with status 201. */
export interface Grant extends NameCall {
  readonly kind: 'grant'
  readonly token: string
  /** The `createdBy` of the request. No other reserve has the same. */
  readonly owner: string
  /** Null unless the request presented the token of a former holder. */
  readonly formerToken: string | null
  readonly reservedAt: number
  readonly expiresAt: number
}

export interface Renewal extends NameCall {
  readonly kind: 'renewal'
  readonly token: string
  readonly expiresAt: number
}

export interface Commitment extends NameCall {
  readonly kind: 'commitment'
  readonly token: string
  readonly address: string
}

/** A change of the address, also one without a response, which may have succeeded. */
export interface Update extends NameCall {
  readonly kind: 'update'
  readonly token: string
  readonly address: string
  readonly isAnswered: boolean
}

/** A release that succeeded, or one without a response, which may have succeeded. */
export interface Release extends NameCall {
  readonly kind: 'release'
  /** Null: releases the name of any owner. */
  readonly token: string | null
  readonly isAnswered: boolean
}

/** An operator's end of a cool-off that succeeded, or one without a response, which may have succeeded. */
export interface Lift extends NameCall {
  readonly kind: 'lift'
  readonly isAnswered: boolean
}

export type RejectedAction = 'take-back' | 'commit' | 'update' | 'renew' | 'release'

/** A call with a 4xx status: the token does not have the reservation. Of a take-back: the former token. */
export interface RejectedCall extends NameCall {
  readonly kind: 'rejection'
  readonly action: RejectedAction
  readonly token: string | null
  readonly status: number
}

/** A commit without a response, which may have succeeded. */
export interface UnansweredCommit extends NameCall {
  readonly kind: 'unanswered-commit'
  readonly token: string
}

export type NameOperation = Grant | Renewal | Commitment | Update | Release | Lift | RejectedCall | UnansweredCommit

export interface ObservedState {
  readonly state: 'reserved' | 'active'
  readonly owner: string
  readonly address: string | null
}

/** The state of names according to one response. */
export interface NameObservation extends Span {
  readonly source: string
  /** Null: free. In a complete list, a missing name is free. */
  readonly states: ReadonlyMap<string, ObservedState | null>
  readonly isCompleteList: boolean
}

/** Milliseconds since the epoch, on the clock of this machine, which is the database's too. */
export interface Span {
  /** Before the first byte of the first attempt was sent. */
  readonly start: number
  /** After the answer; Infinity: none came. */
  readonly end: number
}

interface OfName extends Span {
  readonly name: string
  /** One intention, however often it was asked for; begins the request ids of all its attempts. */
  readonly intention: string
  readonly attempts: number
}

/** A reserve that was answered 201. */
export interface Grant extends OfName {
  readonly kind: 'grant'
  readonly token: string
  /** The `createdBy` that it was asked with, of this intention alone. */
  readonly owner: string
  readonly reservedAt: number
  readonly expiresAt: number
}

export interface Renewal extends OfName {
  readonly kind: 'renewal'
  readonly token: string
  readonly expiresAt: number
}

export interface Commitment extends OfName {
  readonly kind: 'commitment'
  readonly token: string
  readonly address: string
}

/** A release that may have been made: answered so, or not answered. */
export interface Release extends OfName {
  readonly kind: 'release'
  /** Null: whoever has the name loses it. */
  readonly token: string | null
  readonly isAnswered: boolean
}

/** A commit, renew or release by token that was refused: its sender is told that it does not have the reservation. */
export interface Denial extends OfName {
  readonly kind: 'denial'
  readonly verb: 'commit' | 'renew' | 'release'
  readonly token: string | null
  readonly status: number
}

/** A commit that was not answered, or is under way: it may have been made. */
export interface Attempted extends OfName {
  readonly kind: 'attempted-commit'
  readonly token: string
}

export type NameOperation = Grant | Renewal | Commitment | Release | Denial | Attempted

export interface Seen {
  readonly state: 'reserved' | 'active'
  readonly owner: string
  readonly address: string | null
}

/** What was seen of names, by one answer. */
export interface Reading extends Span {
  readonly by: string
  /** Null: free. Of a whole list every name that it does not have is free. */
  readonly seen: ReadonlyMap<string, Seen | null>
  readonly isWhole: boolean
}

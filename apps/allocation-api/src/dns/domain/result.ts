import type { RecordSet } from './rrset.ts'

/** The provider could not do it now; it may later. `reason` is for an operator: no key, token or URL query in it. */
export interface Unavailable {
  readonly kind: 'unavailable'
  readonly reason: string
  /** Milliseconds after which the provider accepts calls again, if it stated that. */
  readonly retryAfterMs?: number
  /** `zone`: only this zone is affected, for example because it does not exist. Default: the whole provider. */
  readonly scope?: 'zone' | 'provider'
  /** Of a zone: the next call may succeed although nothing else changes. Failures of the whole provider always may. */
  readonly isTransient?: true
}

/** The record sets at each of `names`, and those at or below each of `branches`. All are absolute names of one zone. */
export interface WantedRecords {
  readonly names: readonly string[]
  readonly branches: readonly string[]
}

/**
 * What hides a name and all below it from resolvers, by that name: `zone`, another zone of the provider, which answers for
 * them; or the type of a record set at or above the pool (`hidesPool`).
 */
export type Hiding = ReadonlyMap<string, string>

export type ZonePart =
  /** Two parts can have the same record set, each with some of its values. */
  | {
      readonly kind: 'part'
      readonly records: readonly RecordSet[]
      /** As in `ReadResult`. */
      readonly unserved?: readonly RecordSet[]
      readonly hiding?: Hiding
    }
  /** The zone changed during the transfer: the parts so far do not count, and every record set follows again. */
  | { readonly kind: 'restart' }

export type ReadResult =
  | {
      readonly kind: 'read'
      readonly records: readonly RecordSet[]
      /** Records that the provider stores without serving them. A name can have some of a type that it also serves. */
      readonly unserved?: readonly RecordSet[]
      /** These are all records of the zone, whatever was requested. */
      readonly isFullZone?: true
      readonly hiding?: Hiding
    }
  | Unavailable

export type ApplyResult =
  | {
      /** The provider has every change except those at the `rejected` and the `skipped` owner names. */
      readonly kind: 'applied'
      readonly rejected: readonly {
        readonly name: string
        readonly reason: string
        /** Not the record is at fault: the zone has no room for it. */
        readonly isZoneFull?: true
      }[]
      /** Not applied because the search for rejected names reached its limit. Never all owner names of the call. */
      readonly skipped?: readonly string[]
    }
  | Unavailable

/**
 * What a refusal is about. Only those of records are searched record by record; of an `unknown` one it is found out with few
 * calls. `room`: the zone is full, so what needs no room is written. `zone`, `account`: nothing more is written in this sync.
 */
export type RefusalScope = 'record' | 'room' | 'zone' | 'account' | 'unknown'

/** Milliseconds until a zone or an account that refuses everything is tried again, unless something changes before. */
export const REFUSAL_RETRY_MS = 60_000

export const toZoneRefusal = (reason: string): Unavailable => ({
  kind: 'unavailable',
  scope: 'zone',
  reason,
  retryAfterMs: REFUSAL_RETRY_MS,
})

/** `isAll`: these are all zones of the provider below the one that was asked for. */
export type ZoneSearch =
  | { readonly kind: 'found'; readonly zones: readonly string[]; readonly isAll?: true }
  | Unavailable

/** Whether the service can work with a zone. The texts are for an operator: no key, token or URL query in them. */
export type ZoneCheck =
  /** `defect`: it works, and others that depend on the zone do not get its changes. */
  | { readonly kind: 'writable'; readonly defect?: { readonly reason: string; readonly advice: string } }
  /** It can be read. `reason`: why it is unknown whether it can be written. */
  | { readonly kind: 'readable'; readonly reason: string }
  /** `advice`: what to do. */
  | { readonly kind: 'unusable'; readonly reason: string; readonly advice: string }

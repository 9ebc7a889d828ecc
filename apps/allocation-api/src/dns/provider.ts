import type { RecordChange, RecordSet } from './domain/rrset.ts'

/** The provider could not do it now; it may later. `reason` is for an operator: no key, token or URL query in it. */
export interface Unavailable {
  readonly kind: 'unavailable'
  readonly reason: string
  /** Milliseconds the provider asked to be left alone, when it said so. */
  readonly retryAfterMs?: number
  /** `zone`: only this zone is affected, for example because it does not exist. Default: the whole provider. */
  readonly scope?: 'zone' | 'provider'
}

export type ReadResult =
  | {
      readonly kind: 'read'
      readonly records: readonly RecordSet[]
      /** These are all records of the zone, whatever was asked for. */
      readonly isFullZone?: true
    }
  | Unavailable

export type ApplyResult =
  | {
      /** Everything is at the provider but the changes at the `refused` and the `skipped` owner names, which are not. */
      readonly kind: 'applied'
      readonly refused: readonly { readonly name: string; readonly reason: string }[]
      /** Nothing is known against them: the search for what was refused took too long. Never all that was asked for. */
      readonly skipped?: readonly string[]
    }
  | Unavailable

/**
 * The port to a DNS provider: the two things that convergence needs and no more.
 *
 * The caller holds the zone's claim: no two `apply` calls of one zone overlap, in this process or another. It has
 * subtracted what is there already, so changes touch only records that are ours. Expected trouble (unreachable, rate
 * limited, refused) is a result; a throw is a defect and is treated as `unavailable` without its text. After
 * `unavailable` the caller assumes nothing about what was applied, and reads again before the next write.
 */
export interface DnsProvider {
  /** The account takes one call at a time, whatever the zone. Zones are then written in turn, across replicas too. */
  readonly concurrency?: 1
  /** Its record sets have the TTL of their zone. What was asked for may differ, and is not compared with what is read. */
  readonly hasZoneTtl?: true
  /** Every record set at or below each of `owners` (`'all'`: of the zone). It may return more; never less. */
  read(zone: string, owners: readonly string[] | 'all', signal: AbortSignal): Promise<ReadResult>
  /** Applies `changes`, each of them wholly or not at all. Applying the same changes again changes nothing. */
  apply(zone: string, changes: readonly RecordChange[], signal: AbortSignal): Promise<ApplyResult>
  /** Lets go of sockets and timers; nothing is called afterwards. */
  close(): Promise<void>
}

import type { Sql } from '@pool/runtime/database/client'
import type { EnvReader } from '@pool/runtime/service/env'
import type {
  ApplyResult,
  ReadResult,
  Unavailable,
  WantedRecords,
  ZoneCheck,
  ZonePart,
  ZoneSearch,
} from './domain/result.ts'
import type { RecordChange } from './domain/rrset.ts'

/**
 * The calls of a provider that read and write records. `zone` is the domain of a pool: the zone itself, or a name in it. The
 * zone of the provider is then `zoneOf(zone)`; a result may have its other records, and no change is outside of the pool.
 */
export interface ZoneAccess {
  /**
   * The wanted record sets, also those at names from the pool up to its zone. It may return more, but never less. The next
   * `apply` of the zone is planned on the result. `onProgress`: the provider still works on it, so it has not timed out.
   */
  read(zone: string, wanted: WantedRecords, signal: AbortSignal, onProgress?: () => void): Promise<ReadResult>
  /**
   * Every record set of the pool, and at the names above it in its zone, in any order, without holding the zone in memory.
   * `unavailable` is the last part. No `apply` is planned on it. A caller that stops early ends the transfer.
   */
  readZone(zone: string, signal: AbortSignal, onProgress?: () => void): AsyncGenerator<ZonePart | Unavailable, void>
  /**
   * Applies `changes`, each completely or not at all. Applying the same changes again changes nothing. If this takes
   * several requests, the first change is in the first one: it says that the others may follow. Not so after a rejection
   * of a part, and with a provider whose request replaces the whole zone. `onProgress`: as above.
   */
  apply(
    zone: string,
    changes: readonly RecordChange[],
    signal: AbortSignal,
    onProgress?: () => void,
  ): Promise<ApplyResult>
}

/**
 * The port to a DNS provider: the operations that the reconciler needs.
 *
 * The caller holds the zone lock: no two `apply` calls of one zone overlap, in this process or another. The caller has
 * subtracted the records that the zone already has, so changes touch only records that the service owns. Expected
 * failures (unreachable, rate limited, rejected) are results. A throw is a bug; the caller treats it as `unavailable`
 * without its text. After `unavailable` the caller assumes nothing about what was applied, and reads again before the
 * next write.
 */
export interface DnsProvider extends ZoneAccess {
  /** 1: the account accepts one call at a time, for all zones and from all replicas. */
  readonly concurrency?: 1
  /** Every record set has the TTL of its zone, so the desired TTL is not compared with the TTL that was read. */
  readonly hasZoneTtl?: true
  /** Its records are in the database of the service, so its failures are those of the database. */
  readonly isDatabase?: true
  /** Below a zone, it has no NS and DS records. */
  readonly hasNoDelegations?: true
  /** Whether the zone exists, can be read and can be written, found out without a change to it. */
  checkZone(zone: string, signal: AbortSignal): Promise<ZoneCheck>
  /** Whether the provider has a zone of this name. Absent: each pool is a zone. */
  hasZone?(name: string, signal: AbortSignal): Promise<boolean | Unavailable>
  /**
   * The zones of the provider below the zone of a pool: those among `names` at least. Without an answer of the provider,
   * none. Absent: it has no such zones.
   */
  findZones?(zone: string, names: readonly string[], signal: AbortSignal, onProgress?: () => void): Promise<ZoneSearch>
  /** Closes sockets and timers. No call follows. */
  close(): Promise<void>
}

/** The zone that has the names of the domain of a pool. */
export type ZoneOf = (pool: string) => string

/** What a provider needs to start, apart from its own variables. */
export interface ProviderContext {
  /** The zones of the managed and the draining pools, at the moment of the call. */
  readonly listZones: () => readonly string[]
  readonly sql: Sql
  readonly onError: (error: unknown) => void
  /** The zone of the provider that has the names of a pool. */
  readonly zoneOf: ZoneOf
}

export interface StartedProvider {
  readonly provider: DnsProvider
  /** What the operator may want to know at start, such as where it listens. No key. */
  readonly info: Readonly<Record<string, unknown>>
}

export type StartProvider = (context: ProviderContext) => Promise<StartedProvider>

/** Reads a provider's own variables and reports invalid ones to `read`. `testUrl` replaces the URL of its API. */
export type ReadProvider = (read: EnvReader, testUrl?: string) => StartProvider

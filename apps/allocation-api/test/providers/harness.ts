import type { ReadResult, WantedRecords } from '../../src/dns/domain/result.ts'
import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { collectWanted } from '../../src/dns/read-zone.ts'

/** A provider and a zone that a test may change freely. */
export interface ProviderSubject extends AsyncDisposable {
  readonly provider: DnsProvider
  /** An existing zone that contains only SOA and NS records. Its name is unique to the subject. */
  readonly zone: string
  /** The zone's records, not read through the provider: without SOA and NS of the apex, sorted by name and type. */
  readonly records: () => Promise<RecordSet[]>
  /** Writes a record set as another client, not through the provider. */
  readonly put: (set: RecordSet) => Promise<void>
  /** Removes a record set as another client. */
  readonly remove: (name: string, type: string) => Promise<void>
  /** The server does not respond (connections are refused or reset) until `start`. */
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
  /** A provider for the same zone with a wrong key. Undefined: the provider has no key. */
  readonly withWrongKey?: DnsProvider
  /** Record sets that a zone can hold, or write within a test's timeout; undefined: enough for every test. */
  readonly maxRecordSets?: number
  /** The TTL of all records, if the provider has one TTL for each zone. */
  readonly onlyTtl?: number
  /** The keys, which no result, log or error may contain. */
  readonly secrets: readonly string[]
}

export type StartSubject = () => Promise<ProviderSubject>

/** Capabilities that differ between providers. */
export interface Traits {
  /** The provider authenticates with a key. */
  readonly hasKey: boolean
  /** The provider serves every zone, so no zone is missing. */
  readonly hasEveryZone: boolean
}

/** Everything at or below each of `branches`; of a zone, everything. */
export const atOrBelow = (...branches: readonly string[]): WantedRecords => ({ names: [], branches })

/** The whole zone, as the parts of `readZone` give it. */
export const readAll = (provider: DnsProvider, zone: string, signal: AbortSignal): Promise<ReadResult> =>
  collectWanted(provider.readZone(zone, signal), atOrBelow(zone))

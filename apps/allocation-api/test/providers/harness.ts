import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'

/** A provider with a zone behind it that a test may do anything to. */
export interface ProviderSubject extends AsyncDisposable {
  readonly provider: DnsProvider
  /** It is there, and holds what a new zone holds (SOA, NS), and nothing else. Another name for each subject. */
  readonly zone: string
  /** What stands there, asked past the provider: without SOA and NS of the apex; sorted by name and type. */
  readonly records: () => Promise<RecordSet[]>
  /** Writes a record set past the provider, as somebody else would. */
  readonly put: (set: RecordSet) => Promise<void>
  /** Removes one, likewise. */
  readonly remove: (name: string, type: string) => Promise<void>
  /** From now on nothing answers (connections are refused or break), until `comeBack`. */
  readonly goAway: () => Promise<void>
  readonly comeBack: () => Promise<void>
  /** Another provider of the same zone whose key is wrong. Undefined: it has no key. */
  readonly withWrongKey?: DnsProvider
  /** Record sets that a zone can hold, or write within a test's patience; undefined: more than any test has. */
  readonly mostRecordSets?: number
  /** The one TTL that all records of the zone have, where the provider knows no other. */
  readonly onlyTtl?: number
  /** Everything that must be in no result, log or error: the keys. */
  readonly secrets: readonly string[]
}

/** Starts one. */
export type StartSubject = () => Promise<ProviderSubject>

/** What not every provider has. */
export interface Traits {
  /** Keys, which can be wrong. */
  readonly hasKey: boolean
  /** It serves whatever zone it is asked about, so none is missing. */
  readonly hasEveryZone: boolean
}

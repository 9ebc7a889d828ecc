import type { DynadotCommand, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import type { RecordSet } from '../../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'

/** An atomic edit of a zone that bypasses the API. */
export interface Edit {
  readonly remove: readonly { readonly name: string; readonly type: string }[]
  readonly put: readonly RecordSet[]
}

/** The provider that hosts the zones of one worker. Its `edit` bypasses the API. */
export interface ZoneHost extends AsyncDisposable {
  addZone(zone: string): Promise<void>
  /** The records of the zone, without SOA and NS of the apex. */
  records(zone: string): Promise<RecordSet[]>
  edit(zone: string, edit: Edit): Promise<void>
  createProvider(): DnsProvider
  /** Environment with which an API process uses this host. */
  readonly env: Readonly<Record<string, string>>
  /** Creates a provider that ignores later changes, as a late write does. Absent: this host has no late writes. */
  createUnconditionalProvider?(): DnsProvider
  /** The TTL of all records, in seconds. Absent: each record set has its own. */
  readonly fixedTtl?: number
  /** Types, beyond the usual ones, of which the zone can have records below a name. */
  readonly typesBelow?: readonly string[]
  /** A write replaces the whole zone, so concurrent external edits are lost. */
  readonly replacesZone: boolean
  /** Only for a host with an HTTP API: the fault of the next request. */
  nextHttpFault?: (command: DynadotCommand) => DynadotFault | undefined
  /** The number of writes that have taken effect. */
  countEffects?(): number
}

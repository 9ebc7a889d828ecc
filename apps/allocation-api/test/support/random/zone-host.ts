import type { DynadotCommand, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import type { RecordSet } from '../../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'

/** What somebody does to a zone past the API, in one go. */
export interface Edit {
  readonly remove: readonly { readonly name: string; readonly type: string }[]
  readonly put: readonly RecordSet[]
}

/** Where the zones of one lane stand, with a door for other people. */
export interface ZoneHost extends AsyncDisposable {
  addZone(zone: string): Promise<void>
  /** What stands there, without SOA and NS of the apex. */
  records(zone: string): Promise<RecordSet[]>
  edit(zone: string, edit: Edit): Promise<void>
  createProvider(): DnsProvider
  /** What an API process needs to use it. */
  readonly env: Readonly<Record<string, string>>
  /** One that writes whatever has been written since, as an order does that comes late. Absent: none comes late there. */
  createHeedlessProvider?(): DnsProvider
  /** Seconds; the only one there is. */
  readonly onlyTtl?: number
  /** A write replaces all that the zone holds, so that what others write meanwhile is lost. */
  readonly isWholeSet: boolean
  /** Of a host that is spoken to over HTTP: what befalls the next call. */
  httpFaultOf?: (command: DynadotCommand) => DynadotFault | undefined
  /** Orders that have taken effect. */
  effects?(): number
}

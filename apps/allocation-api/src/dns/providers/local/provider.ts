import { untilAborted } from '@pool/runtime/database/with-timeout'
import type { Unavailable, ZonePart } from '../../domain/result.ts'
import { groupByOwner, toApplyResult, toOwnerName } from '../../domain/rrset.ts'
import type { DnsProvider } from '../../provider.ts'
import { findCnameConflicts, validateChange } from './validate.ts'
import type { RecordKey, ZonePage, ZoneTable } from './zone-table.ts'

export interface LocalProviderOptions {
  readonly table: ZoneTable
  /** Closed with the provider. Absent where another process serves the same table. */
  readonly server?: { close(): Promise<void> }
  /** Reports database errors to the log; they are never part of a result. */
  readonly onError: (error: unknown) => void
}

const unavailable: Unavailable = {
  kind: 'unavailable',
  reason: 'The database of the local DNS server did not respond.',
}

const serialConflict: Unavailable = {
  kind: 'unavailable',
  reason: 'Zone serial conflict: the zone was modified concurrently.',
  scope: 'zone',
}

/** Record sets per statement of a read of the whole zone. */
const PAGE_SIZE = 5_000

/** For development: the zone is a table, so every replica serves the same records, also after a restart. */
export const createLocalProvider = ({ table, server, onError }: LocalProviderOptions): DnsProvider => {
  /** The serial of the last read, on which the next apply is planned. */
  const serials = new Map<string, number>()

  const attempt = async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | Unavailable> => {
    if (signal.aborted) return unavailable
    try {
      return await untilAborted(work(), signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
      return unavailable
    }
  }

  return {
    read: (zone, wanted, signal) =>
      attempt(async () => {
        const { serial, records } = await table.read(zone, wanted.branches, wanted.names)
        // After an abort the next write is planned on the next read.
        if (!signal.aborted) serials.set(zone, serial)
        return { kind: 'read' as const, records }
      }, signal),

    async *readZone(zone, signal): AsyncGenerator<ZonePart | Unavailable, void> {
      let after: RecordKey | null = null
      do {
        const start: RecordKey | null = after
        const page: ZonePage | Unavailable = await attempt(() => table.readPage(zone, start, PAGE_SIZE), signal)
        if ('kind' in page) return yield page
        yield { kind: 'part', records: page.records }
        after = page.next
      } while (after !== null)
    },

    apply: (zone, changes, signal) =>
      attempt(async () => {
        const { owners, rejected } = groupByOwner(changes, change => validateChange(zone, change))
        const valid = owners.flatMap(owner => owner.changes)
        const upserts = valid.filter(({ kind }) => kind === 'upsert')
        const existing = await table.read(zone, [], upserts.map(toOwnerName))
        for (const name of findCnameConflicts(existing.records, valid)) {
          rejected.set(name, 'a CNAME must be the only record at its name')
        }
        const accepted = valid.filter(change => !rejected.has(toOwnerName(change)))
        if (accepted.length > 0) {
          const expected = serials.get(zone) ?? existing.serial
          const serial = await table.apply(zone, accepted, expected)
          if (serial === null) return serialConflict
          if (!signal.aborted) serials.set(zone, serial)
        }
        return toApplyResult(rejected, [])
      }, signal),

    async checkZone() {
      return { kind: 'writable' }
    },

    async close() {
      await server?.close()
    },
  }
}

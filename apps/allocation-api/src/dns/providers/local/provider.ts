import { abortable } from '../../../lib/abortable.ts'
import type { Unavailable } from '../../domain/result.ts'
import { toOwner } from '../../domain/rrset.ts'
import { groupByOwner, toApplyResult } from '../../group-changes.ts'
import type { DnsProvider } from '../../provider.ts'
import { namesWithCnameBeside } from './domain/cname-conflict.ts'
import { validateChange } from './validate.ts'
import type { ZoneTable } from './zone-table.ts'

export interface LocalProviderOptions {
  readonly table: ZoneTable
  /** Closed with the provider. Absent where another process serves the same table. */
  readonly server?: { close(): Promise<void> }
  /** What the database said, for the log; never part of a result. */
  readonly onError: (error: unknown) => void
}

const unavailable: Unavailable = {
  kind: 'unavailable',
  reason: 'The database of the local DNS server did not answer.',
}

const overtaken: Unavailable = {
  kind: 'unavailable',
  reason: 'The zone was changed by another writer meanwhile.',
  scope: 'zone',
}

/** For development: the zone is a table, so that every replica and every restart serves the same. */
export const createLocalProvider = ({ table, server, onError }: LocalProviderOptions): DnsProvider => {
  /** As last read: what is applied was planned on it. */
  const serials = new Map<string, number>()

  const attempt = async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | Unavailable> => {
    if (signal.aborted) return unavailable
    try {
      return await abortable(work(), signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
      return unavailable
    }
  }

  return {
    read: (zone, owners, signal) =>
      attempt(async () => {
        const { serial, records } = await table.read(zone, owners)
        // What comes after it was given up is news to nobody: the next write is planned on the next read.
        if (!signal.aborted) serials.set(zone, serial)
        return { kind: 'read' as const, records }
      }, signal),

    apply: (zone, changes, signal) =>
      attempt(async () => {
        const { owners, refused } = groupByOwner(changes, change => validateChange(zone, change))
        const sound = owners.flatMap(owner => owner.changes)
        const there = await table.read(zone, sound.filter(({ kind }) => kind === 'upsert').map(toOwner))
        for (const name of namesWithCnameBeside(there.records, sound)) {
          refused.set(name, 'a CNAME stands alone at its name')
        }
        const accepted = sound.filter(change => !refused.has(toOwner(change)))
        if (accepted.length > 0) {
          const expected = serials.get(zone) ?? there.serial
          const serial = await table.apply(zone, accepted, expected)
          if (serial === null) return overtaken
          if (!signal.aborted) serials.set(zone, serial)
        }
        return toApplyResult(refused, [])
      }, signal),

    async close() {
      await server?.close()
    },
  }
}

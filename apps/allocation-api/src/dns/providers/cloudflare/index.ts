import type { EnvReader } from '../../../config/env.ts'
import type { ApplyResult, ReadResult } from '../../domain/result.ts'
import { isAtOrBelow } from '../../domain/rrset.ts'
import { groupByOwner } from '../../group-changes.ts'
import type { DnsProvider } from '../../provider.ts'
import type { ReadProvider } from '../../provider-factory.ts'
import { type CloudflareOptions, createApi, DEFAULT_URL } from './api.ts'
import { validateCloudflareChange } from './batch.ts'
import type { StaleZoneError } from './errors.ts'
import { type ListedRecords, listRecords } from './list.ts'
import { toRecordSets } from './record.ts'
import { write } from './write.ts'
import { createWithZone } from './zone-lookup.ts'

/**
 * Cloudflare DNS by its API v4. An apply needs the ids of the records that it changes: it has them from the read before
 * it, or lists the names again when Cloudflare says that they are out of date. It sends batches, each of which is one
 * transaction. Records of other names and types are in no call that writes.
 */
export const createCloudflareProvider = (options: CloudflareOptions): DnsProvider => {
  const api = createApi(options)
  const atZone = createWithZone(api)
  /** By zone: what the last read showed, for the owners that it was asked about. Good for one apply. */
  const seen = new Map<string, { readonly listed: ListedRecords; readonly owners: readonly string[] | 'all' }>()
  return {
    read: (zone, owners, signal) => {
      seen.delete(zone)
      return atZone(zone, signal, async (place): Promise<ReadResult | StaleZoneError> => {
        const listed = await listRecords(api, place, owners, signal)
        if (listed.kind !== 'listed') return listed
        seen.set(zone, { listed, owners })
        return {
          kind: 'read',
          records: toRecordSets(listed.records),
          ...(listed.isFullZone ? { isFullZone: true } : {}),
        }
      })
    },

    async apply(zone, changes, signal) {
      const { owners, rejected } = groupByOwner(changes, change => validateCloudflareChange(zone, change))
      const last = seen.get(zone)
      seen.delete(zone)
      const isShown = (name: string) =>
        last?.listed.isFullZone || (last?.owners !== 'all' && last?.owners.some(owner => isAtOrBelow(name, owner)))
      const known = last && owners.every(({ name }) => isShown(name)) ? last.listed : undefined
      return atZone<ApplyResult>(zone, signal, place => write(api, place, owners, { known, rejected }, signal))
    },

    async close() {},
  }
}

export const readCloudflareProvider: ReadProvider = (read: EnvReader) => {
  const options = {
    url: read.url('DNSPROVIDER_CLOUDFLARE_URL', DEFAULT_URL),
    apiToken: read.required('DNSPROVIDER_CLOUDFLARE_API_TOKEN', 'a token with the permissions Zone Read and DNS Write'),
  }
  return async () => ({ provider: createCloudflareProvider(options), info: { url: options.url } })
}

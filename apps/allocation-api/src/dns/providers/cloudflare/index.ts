import type { EnvReader } from '@pool/runtime/service/env'
import type { ApplyResult, ReadResult, Unavailable, WantedRecords, ZoneCheck, ZonePart } from '../../domain/result.ts'
import { createNameFilter, groupByOwner, namesUpTo } from '../../domain/rrset.ts'
import type { DnsProvider, ReadProvider } from '../../provider.ts'
import { API_URL, type CloudflareOptions, createApi, isOutdated, type StaleZoneError } from './api.ts'
import { groupRecords } from './record.ts'
import { validateCloudflareChange, write } from './write.ts'
import {
  createWithZone,
  hasZone,
  type ListedRecords,
  listParts,
  listRecords,
  listZonesBelow,
  type ZoneRef,
} from './zone.ts'

/** Ids are random (32 hexadecimal digits). Only a token that may write the zone learns that no record has this one. */
const NO_RECORD_ID = '0'.repeat(32)

/**
 * Cloudflare DNS over its API v4. An apply needs the ids of the records that it changes. It has them from the previous
 * read, or lists the names again if Cloudflare reports that they are out of date. It sends batches; each batch is one
 * transaction. No write includes records of other names or types.
 */
export const createCloudflareProvider = (options: CloudflareOptions): DnsProvider => {
  const { zoneOf = (pool: string) => pool } = options
  const api = createApi(options)
  const withZone = createWithZone(api, zoneOf)
  /** By pool: the records of the last read, and what was wanted. Valid for one apply. */
  const lastReads = new Map<string, { readonly listed: ListedRecords; readonly wanted: WantedRecords }>()

  return {
    hasZone: (name, signal) => hasZone(api, name, signal),

    findZones: (pool, _names, signal) => listZonesBelow(api, zoneOf(pool), signal),

    read: (pool, wanted, signal, onProgress) => {
      lastReads.delete(pool)
      return withZone(pool, signal, async (zoneRef): Promise<ReadResult | StaleZoneError> => {
        const listed = await listRecords(api, zoneRef, wanted, signal, onProgress)
        if (listed.kind !== 'listed') return listed
        lastReads.set(pool, { listed, wanted })
        return {
          kind: 'read',
          records: groupRecords(listed.records),
          ...(listed.isFullZone ? { isFullZone: true } : {}),
        }
      })
    },

    async *readZone(pool, signal): AsyncGenerator<ZonePart | Unavailable, void> {
      // The first page shows whether the cached id of the zone is valid.
      const found = await withZone(pool, signal, async (zoneRef: ZoneRef) => {
        const first = await api.listPage(zoneRef.id, {}, 1, signal)
        if (first.kind !== 'done') return first
        const names = zoneRef.part === undefined ? [] : namesUpTo(zoneRef.part, zoneRef.name)
        const above = await listRecords(api, zoneRef, { names, branches: [] }, signal)
        return above.kind === 'listed' ? { kind: 'found' as const, zoneRef, above } : above
      })
      if (found.kind !== 'found') return yield found
      for await (const part of listParts(api, found.zoneRef, undefined, signal)) {
        if (part.kind === 'records') yield { kind: 'part', records: groupRecords(part.records) }
        else yield part.kind === 'doubt' ? part.unavailable : part
      }
      const above = groupRecords(found.above.records)
      if (above.length > 0) yield { kind: 'part', records: above }
    },

    async apply(pool, changes, signal) {
      const { owners, rejected } = groupByOwner(changes, change => validateCloudflareChange(pool, change))
      const last = lastReads.get(pool)
      lastReads.delete(pool)
      const wasWanted = createNameFilter(last?.wanted ?? { names: [], branches: [] })
      const wasRead = (name: string) => last?.listed.isFullZone || wasWanted(name)
      const known = last && owners.every(({ name }) => wasRead(name)) ? last.listed : undefined
      return withZone<ApplyResult>(pool, signal, zoneRef => write(api, zoneRef, owners, { known, rejected }, signal))
    },

    async checkZone(pool, signal) {
      const result = await withZone(
        pool,
        signal,
        async (zoneRef): Promise<ZoneCheck | Unavailable | StaleZoneError> => {
          const page = await api.listPage(zoneRef.id, {}, 1, signal)
          if (page.kind !== 'done') return page
          const answer = await api.batch(
            zoneRef.id,
            { deletes: [{ id: NO_RECORD_ID }], patches: [], posts: [] },
            signal,
          )
          if (answer.kind === 'unavailable' || answer.kind === 'doubt') return answer
          return answer.kind === 'declined' && isOutdated(answer)
            ? { kind: 'writable' }
            : {
                kind: 'readable',
                reason: 'Cloudflare did not answer as documented to the deletion of a record that does not exist',
              }
        },
      )
      if (result.kind !== 'unavailable') return result
      const advice =
        'check DNSPROVIDER_CLOUDFLARE_API_TOKEN: it needs the permissions Zone Read and DNS Write for this zone, which must be in the account'
      return { kind: 'unusable', reason: result.reason, advice }
    },

    async close() {},
  }
}

export const readCloudflareProvider: ReadProvider = (read: EnvReader, url = API_URL) => {
  const options = {
    url,
    apiToken: read.required('DNSPROVIDER_CLOUDFLARE_API_TOKEN', 'a token with the permissions Zone Read and DNS Write'),
  }
  return async ({ zoneOf }) => ({
    provider: createCloudflareProvider({ ...options, zoneOf }),
    info: { url: options.url },
  })
}

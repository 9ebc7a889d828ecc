import type { EnvReader } from '@pool/runtime/service/env'
import type { DnsProvider, ReadProvider, ZoneOf } from '../../provider.ts'
import { createDynadotApi, type DomainSettings, toFingerprint } from './api.ts'
import { parseRecordSets } from './record.ts'
import { writeChanges } from './write.ts'

export interface DynadotProviderOptions {
  /** The JSON interface of API 3. */
  readonly url?: string
  /** The account's key. */
  readonly apiKey: string
  /** Default: each pool is a domain. */
  readonly zoneOf?: ZoneOf
}

const API_URL = 'https://api.dynadot.com/api3.json'

/** Seconds assumed for a domain without a TTL. The documentation names no default; other clients report this one. */
const DEFAULT_TTL = 300

const toRecordSets = (zone: string, { records, ttl = DEFAULT_TTL }: DomainSettings) =>
  parseRecordSets(records, zone, ttl)

/**
 * Dynadot, the registrar: a zone is a domain registered in the account, with one pool: a stale read of a second one could
 * revert a write of the first, whose marker it does not look at. Its API (version 3)
 * only replaces a domain's whole record set, so each write reads the set, changes it and sends all of it. The set holds
 * 20 records of the domain itself and 100 of names below it. The option to add to the set (add_dns_to_current_setting)
 * can neither change nor delete, so it is not used.
 *
 * A domain has one TTL, which also applies to foreign records, so it is never changed. A domain without a TTL gets the
 * first desired one.
 *
 * The API has no version or precondition, so an apply reads the set again and writes only if it equals the last `read`:
 * one of the two may be out of date, or another client may have written in between. This does not prevent all lost
 * updates: an apply reverts a change that neither read shows, because both were out of date or because another client
 * wrote after the second (within about a second; up to nine during a bisection). Dynadot may also publish writes to its
 * name servers out of order, as the authors of acme.sh have seen, which no read shows.
 */
export const createDynadotProvider = ({
  url = API_URL,
  apiKey,
  zoneOf = pool => pool,
}: DynadotProviderOptions): DnsProvider => {
  const api = createDynadotApi({ url, apiKey })
  /** By zone: the fingerprint of the last read. Valid for one apply. */
  const lastReads = new Map<string, string>()

  return {
    concurrency: 1,
    hasZoneTtl: true,
    hasNoDelegations: true,

    async read(pool, _wanted, signal) {
      const zone = zoneOf(pool)
      lastReads.delete(zone)
      const now = await api.getDns(zone, signal)
      if (now.kind === 'unavailable') return now
      lastReads.set(zone, toFingerprint(now.settings))
      return { kind: 'read', records: toRecordSets(zone, now.settings), isFullZone: true }
    },

    async *readZone(pool, signal) {
      const zone = zoneOf(pool)
      const now = await api.getDns(zone, signal)
      yield now.kind === 'unavailable' ? now : { kind: 'part', records: toRecordSets(zone, now.settings) }
    },

    async apply(pool, changes, signal) {
      const zone = zoneOf(pool)
      const before = lastReads.get(zone)
      lastReads.delete(zone)
      if (changes.length === 0) return { kind: 'applied', rejected: [] }
      const now = await api.getDns(zone, signal)
      if (now.kind === 'unavailable') return now
      if (before !== undefined && before !== toFingerprint(now.settings)) {
        const reason = `The last two responses of Dynadot for the records of ${zone} differ: another client is changing them, or one response is out of date. Nothing was written.`
        return { kind: 'unavailable', scope: 'zone', reason }
      }
      return writeChanges(zone, now.settings, changes, settings => api.setDns(zone, settings, signal))
    },

    async checkZone(pool, signal) {
      const now = await api.getDns(zoneOf(pool), signal)
      return now.kind === 'unavailable'
        ? {
            kind: 'unusable',
            reason: now.reason,
            advice:
              'check DNSPROVIDER_DYNADOT_API_KEY, and that the domain is in its account with the DNS setting of Dynadot',
          }
        : { kind: 'readable', reason: 'Dynadot has no write that changes nothing' }
    },

    async close() {},
  }
}

export const readDynadotProvider: ReadProvider = (read: EnvReader, url = API_URL) => {
  const options = {
    url,
    apiKey: read.required('DNSPROVIDER_DYNADOT_API_KEY', "the account's API key"),
  }
  return async ({ zoneOf }) => ({ provider: createDynadotProvider({ ...options, zoneOf }), info: { url: options.url } })
}

import type { EnvReader } from '../../../config/env.ts'
import type { DnsProvider } from '../../provider.ts'
import type { ReadProvider } from '../../provider-factory.ts'
import { createDynadotApi } from './api.ts'
import { toRecordSets } from './record.ts'
import { toFingerprint } from './response.ts'
import { writeChanges } from './write.ts'

export interface DynadotProviderOptions {
  /** The JSON interface of API 3. */
  readonly url?: string
  /** Of the account. */
  readonly apiKey: string
}

const DEFAULT_URL = 'https://api.dynadot.com/api3.json'

/** Seconds assumed for a domain without a TTL. The documentation names no default; other clients report this one. */
const DEFAULT_TTL = 300

/**
 * Dynadot, the registrar: a zone is a domain registered in the account, never a name below one. Its API (version 3)
 * knows a domain's whole record set and no part of it, so each write reads the set, changes it and sends all of it; the
 * set holds 20 records of the domain itself and 100 of names below it. Its option to add to the set
 * (add_dns_to_current_setting) can neither change nor delete, so it is not used.
 *
 * A domain has one TTL, which also applies to foreign records, so it is never changed. A domain without a TTL gets the
 * first desired one.
 *
 * The API has no version or precondition, so an apply reads the set anew and writes nothing unless it is what the last
 * `read` showed: one of the two may be out of date, or somebody has written in between. What remains: a change that
 * neither of the two shows is taken back, be it that both are out of date or that somebody writes after the second (a
 * second or so; up to nine while a rejected record is looked for). And Dynadot may carry writes to its name servers in
 * another order than they came in, as acme.sh's authors have seen, which no read shows.
 */
export const createDynadotProvider = ({ url = DEFAULT_URL, apiKey }: DynadotProviderOptions): DnsProvider => {
  const api = createDynadotApi({ url, apiKey })
  /** By zone: what the last read showed. Good for one apply. */
  const seen = new Map<string, string>()

  return {
    concurrency: 1,
    hasZoneTtl: true,

    async read(zone, _owners, signal) {
      seen.delete(zone)
      const now = await api.getDns(zone, signal)
      if (now.kind === 'unavailable') return now
      const { settings } = now
      seen.set(zone, toFingerprint(settings))
      return {
        kind: 'read',
        records: toRecordSets(settings.records, zone, settings.ttl ?? DEFAULT_TTL),
        isFullZone: true,
      }
    },

    async apply(zone, changes, signal) {
      const before = seen.get(zone)
      seen.delete(zone)
      if (changes.length === 0) return { kind: 'applied', rejected: [] }
      const now = await api.getDns(zone, signal)
      if (now.kind === 'unavailable') return now
      if (before !== undefined && before !== toFingerprint(now.settings)) {
        const reason = `Dynadot's last two answers about the records of ${zone} differ: somebody is changing them, or one answer is out of date. Nothing was written.`
        return { kind: 'unavailable', scope: 'zone', reason }
      }
      return writeChanges(zone, now.settings, changes, settings => api.setDns(zone, settings, signal))
    },

    async close() {},
  }
}

export const readDynadotProvider: ReadProvider = (read: EnvReader) => {
  const options = {
    url: read.url('DNSPROVIDER_DYNADOT_URL', DEFAULT_URL),
    apiKey: read.required('DNSPROVIDER_DYNADOT_API_KEY', "the account's API key"),
  }
  return async () => ({ provider: createDynadotProvider(options), info: { url: options.url } })
}

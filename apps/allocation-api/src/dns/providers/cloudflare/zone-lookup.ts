import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import type { Unavailable } from '../../domain/result.ts'
import type { CloudflareApi } from './api.ts'
import { type StaleZoneError, unavailable } from './errors.ts'
import { toList, toText } from './record.ts'

/** A zone in the API. */
export interface ZoneRef {
  readonly id: string
  readonly name: string
  /** Maximum operations in a batch on the zone's plan. */
  readonly batchLimit: number
  /** Calls that the last list of the whole zone needed. */
  pages: number
}

/** Batches of 200 operations on the Free plan, of 3500 on the others. */
const toBatchLimit = (zone: JsonObject): number => {
  const plan = isJsonObject(zone.plan) ? toText(zone.plan.legacy_id) : ''
  return ['pro', 'business', 'enterprise'].includes(plan) ? 3_500 : 200
}

/** Selects the zone `name` from the API's `zones`, or explains why it cannot be written. */
export const selectZone = (name: string, zones: unknown): ZoneRef | Unavailable => {
  const found = toList(zones).filter(entry => toText(entry.name).toLowerCase() === name)
  // A domain can be in several accounts; it is active in one.
  const zone = found.find(({ status }) => status === 'active') ?? found[0]
  const id = toText(zone?.id)
  const scope = 'zone'
  if (!zone || !id)
    return { ...unavailable(`Cloudflare has no zone ${name}, or the API token may not read it (Zone Read).`), scope }
  if (zone.type === 'secondary')
    return { ...unavailable(`The zone ${name} at Cloudflare is secondary: its records come from elsewhere.`), scope }
  return { id, name, batchLimit: toBatchLimit(zone), pages: 1 }
}

/** Runs work on a zone with its cached id. If Cloudflare rejects the id, looks the zone up again. */
export const createWithZone = (api: CloudflareApi) => {
  const zoneRefs = new Map<string, ZoneRef>()

  return async <Result extends { readonly kind: string }>(
    zone: string,
    signal: AbortSignal,
    work: (zoneRef: ZoneRef) => Promise<Result | StaleZoneError>,
  ): Promise<Result | Unavailable> => {
    const isStale = (result: Result | StaleZoneError): result is StaleZoneError => result.kind === 'doubt'
    const cached = zoneRefs.get(zone)
    if (cached) {
      const result = await work(cached)
      if (!isStale(result)) return result
      zoneRefs.delete(zone)
    }
    const answer = await api.findZones(zone, signal)
    if (answer.kind !== 'done') return answer.kind === 'doubt' ? answer.unavailable : answer
    const zoneRef = selectZone(zone, answer.result)
    if ('kind' in zoneRef) return zoneRef
    const result = await work(zoneRef)
    if (!isStale(result)) {
      zoneRefs.set(zone, zoneRef)
      return result
    }
    // The token found the zone, so a missing permission concerns only this zone.
    return { ...result.unavailable, reason: `Zone ${zone}: ${result.unavailable.reason}`, scope: 'zone' }
  }
}

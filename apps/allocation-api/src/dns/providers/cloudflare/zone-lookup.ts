import { isJsonObject, type JsonObject } from '../../../lib/json.ts'
import type { Unavailable } from '../../domain/result.ts'
import type { CloudflareApi } from './api.ts'
import { type StaleZoneError, unavailable } from './errors.ts'
import { toList, toText } from './json.ts'

/** Where the API has a zone. */
export interface ZoneRef {
  readonly id: string
  /** Operations that a batch may have on the zone's plan. */
  readonly batchLimit: number
  /** Calls that a list of the whole zone took when last done. */
  pages: number
}

/** Batches of 200 operations on the Free plan, of 3500 on the others. */
const toBatchLimit = (zone: JsonObject): number => {
  const plan = isJsonObject(zone.plan) ? toText(zone.plan.legacy_id) : ''
  return ['pro', 'business', 'enterprise'].includes(plan) ? 3_500 : 200
}

/** Of the zones the API gave, where `name` is; or why none is to be written. */
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
  return { id, batchLimit: toBatchLimit(zone), pages: 1 }
}

/** Runs work at a zone's place, remembered or, when that is in doubt, looked up again. */
export const createWithZone = (api: CloudflareApi) => {
  const places = new Map<string, ZoneRef>()

  return async <Result extends { readonly kind: string }>(
    zone: string,
    signal: AbortSignal,
    work: (place: ZoneRef) => Promise<Result | StaleZoneError>,
  ): Promise<Result | Unavailable> => {
    const isDoubt = (result: Result | StaleZoneError): result is StaleZoneError => result.kind === 'doubt'
    const remembered = places.get(zone)
    if (remembered) {
      const result = await work(remembered)
      if (!isDoubt(result)) return result
      places.delete(zone)
    }
    const answer = await api.zonesNamed(zone, signal)
    if (answer.kind !== 'done') return answer.kind === 'doubt' ? answer.unavailable : answer
    const place = selectZone(zone, answer.result)
    if ('kind' in place) return place
    const result = await work(place)
    if (!isDoubt(result)) {
      places.set(zone, place)
      return result
    }
    // The token was good enough to find the zone: what is lacking is lacking here.
    return { ...result.unavailable, reason: `Zone ${zone}: ${result.unavailable.reason}`, scope: 'zone' }
  }
}

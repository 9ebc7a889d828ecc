import { type ProviderRequest, requestJson } from '../../http-client.ts'
import type { Operations } from './batch.ts'
import { classifyResponse, unavailable } from './errors.ts'

export interface CloudflareOptions {
  /** Base URL of the API v4. Default: https://api.cloudflare.com/client/v4 */
  readonly url?: string
  /** Needs the permissions Zone Read and DNS Write for the zone. */
  readonly apiToken: string
}

export const DEFAULT_URL = 'https://api.cloudflare.com/client/v4'

/**
 * Records requested per page. Cloudflare may return smaller pages, and allows larger ones, but those stay in memory for longer.
 */
const PAGE_SIZE = 1_000

type Query = Readonly<Record<string, string>>

/** Client for the three calls of the API v4 that the provider needs; each is one HTTP request. */
export const createApi = ({ url = DEFAULT_URL, apiToken }: CloudflareOptions) => {
  const call = async (path: string, request: Omit<ProviderRequest, 'url' | 'headers'>, signal: AbortSignal) => {
    const target = new URL(`${url.replace(/\/+$/, '')}${path}`)
    const response = await requestJson(
      { ...request, url: target, headers: { Authorization: `Bearer ${apiToken}` } },
      signal,
    )
    return response.kind === 'unavailable' ? response : classifyResponse(response, [apiToken])
  }
  const get = async (path: string, query: Query, signal: AbortSignal) => {
    const result = await call(`${path}?${new URLSearchParams(query)}`, {}, signal)
    return result.kind === 'declined' ? unavailable(`Cloudflare rejected the read: ${result.reason}.`) : result
  }
  const recordsPath = (zoneId: string): string => `/zones/${encodeURIComponent(zoneId)}/dns_records`

  return {
    findZones: (name: string, signal: AbortSignal) => get('/zones', { name, per_page: '50' }, signal),
    listPage: (zoneId: string, query: Query, number: number, signal: AbortSignal) => {
      const all = { ...query, page: String(number), per_page: String(PAGE_SIZE), order: 'name' }
      return get(recordsPath(zoneId), all, signal)
    },
    /** Applies all operations in one transaction, deletions first. */
    batch: (zoneId: string, operations: Operations, signal: AbortSignal) =>
      call(`${recordsPath(zoneId)}/batch`, { method: 'POST', body: operations }, signal),
  }
}

export type CloudflareApi = ReturnType<typeof createApi>

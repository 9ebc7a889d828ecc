import { type ProviderRequest, requestJson } from '../../http-client.ts'
import type { Operations } from './batch.ts'
import { classifyResponse, unavailable } from './errors.ts'

export interface CloudflareOptions {
  /** Of the API v4. Default: https://api.cloudflare.com/client/v4 */
  readonly url?: string
  /** Needs the permissions Zone Read and DNS Write for the zone. */
  readonly apiToken: string
}

export const DEFAULT_URL = 'https://api.cloudflare.com/client/v4'

/** Records asked for at once: some megabytes. A page may be smaller than asked for. */
const PAGE_SIZE = 5_000

type Query = Readonly<Record<string, string>>

/** The three calls of the API v4 that are needed; each is one exchange. */
export const createApi = ({ url = DEFAULT_URL, apiToken }: CloudflareOptions) => {
  const ask = async (path: string, question: Omit<ProviderRequest, 'url' | 'headers'>, signal: AbortSignal) => {
    const to = new URL(`${url.replace(/\/+$/, '')}${path}`)
    const answer = await requestJson({ ...question, url: to, headers: { Authorization: `Bearer ${apiToken}` } }, signal)
    return answer.kind === 'unavailable' ? answer : classifyResponse(answer, [apiToken])
  }
  const get = async (path: string, query: Query, signal: AbortSignal) => {
    const answer = await ask(`${path}?${new URLSearchParams(query)}`, {}, signal)
    return answer.kind === 'declined' ? unavailable(`Cloudflare rejected to read: ${answer.reason}.`) : answer
  }
  const recordsOf = (zoneId: string): string => `/zones/${encodeURIComponent(zoneId)}/dns_records`

  return {
    zonesNamed: (name: string, signal: AbortSignal) => get('/zones', { name, per_page: '50' }, signal),
    page: (zoneId: string, query: Query, number: number, signal: AbortSignal) => {
      const all = { ...query, page: String(number), per_page: String(PAGE_SIZE), order: 'name' }
      return get(recordsOf(zoneId), all, signal)
    },
    /** All operations in one transaction; deletions first. */
    batch: (zoneId: string, operations: Operations, signal: AbortSignal) =>
      ask(`${recordsOf(zoneId)}/batch`, { method: 'POST', body: operations }, signal),
  }
}

export type CloudflareApi = ReturnType<typeof createApi>

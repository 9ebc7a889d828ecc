import { isLoopbackHost } from '@pool/contract'
import { isCrossOrigin } from './domain/cross-origin.ts'
import type { ErrorOutcome } from './errors.ts'
import type { RequestContext } from './request-context.ts'

export interface BrowserPolicy {
  /** Normalized. Their pages may send requests; without CORS headers, they cannot read the responses. */
  readonly allowedOrigins: readonly string[]
  /** Rejects a `Host` that is not a loopback name: on a developer's machine, DNS rebinding makes any page same-origin. */
  readonly loopbackHostsOnly: boolean
}

const CROSS_ORIGIN =
  'A web page of another origin sent this request; add its origin to PDM_ALLOWED_ORIGINS if it may do so.'
const NOT_LOOPBACK =
  'Host is not a loopback name; use localhost, or set PDM_LOOPBACK_HOSTS_ONLY=false to accept every Host.'

/**
 * Rejects requests that a browser sends for a page of another site. The in-cluster listener has no authentication, so any
 * page that a user of its network opens could otherwise write. It reads headers only, before the body.
 */
export const rejectForeignPage = (
  request: RequestContext,
  { allowedOrigins, loopbackHostsOnly }: BrowserPolicy,
): ErrorOutcome | null => {
  const host = request.header('host')
  if (loopbackHostsOnly && !isLoopbackHost(host ?? '')) return { kind: 'forbidden', detail: NOT_LOOPBACK }
  const secFetchSite = request.header('sec-fetch-site')
  const origin = request.header('origin')
  if (secFetchSite === undefined && origin === undefined) return null
  return isCrossOrigin({ secFetchSite, origin, host }, allowedOrigins)
    ? { kind: 'forbidden', detail: CROSS_ORIGIN }
    : null
}

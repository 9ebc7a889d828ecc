import { isLoopbackHost } from '@pool/contract'
import { createMiddleware } from 'hono/factory'
import { isCrossOrigin } from './domain/cross-origin.ts'
import { sendError } from './errors.ts'
import { readHeader } from './headers.ts'
import type { HttpEnv } from './types.ts'

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
export const rejectForeignPages = ({ allowedOrigins, loopbackHostsOnly }: BrowserPolicy) =>
  createMiddleware<HttpEnv>((c, next) => {
    if (loopbackHostsOnly && !isLoopbackHost(c.req.header('Host') ?? '')) {
      return Promise.resolve(sendError(c, { kind: 'forbidden', detail: NOT_LOOPBACK }))
    }
    const secFetchSite = readHeader(c, 'sec-fetch-site')
    const origin = readHeader(c, 'origin')
    if (secFetchSite === undefined && origin === undefined) return next()
    return isCrossOrigin({ secFetchSite, origin, host: c.req.header('Host') }, allowedOrigins)
      ? Promise.resolve(sendError(c, { kind: 'forbidden', detail: CROSS_ORIGIN }))
      : next()
  })

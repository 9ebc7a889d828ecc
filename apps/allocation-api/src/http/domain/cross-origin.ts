import { normalizeOrigin, parseOrigin } from '../../config/origin.ts'

/** The request headers by which a browser identifies the page that sends a request. Undefined: absent. */
export interface OriginHeaders {
  /** Fetch Metadata Request Headers, section 2.4. Only browsers send it, and a page cannot change it. */
  readonly secFetchSite: string | undefined
  /** RFC 6454 section 7. Browsers send it with every request that is not a GET or HEAD. */
  readonly origin: string | undefined
  readonly host: string | undefined
}

/** Whether the origin is `Host`. A gate in front of the service may have ended TLS, so either scheme matches. */
const isSameHost = (origin: string, host: string | undefined): boolean => {
  const page = parseOrigin(origin)
  return page !== null && host !== undefined && parseOrigin(`${page.protocol}//${host}`)?.host === page.host
}

/**
 * Whether a web page of another origin sent the request. Requests without these headers are not from a page of a current
 * browser. `allowedOrigins` are normalized, and always pass.
 *
 * `same-site` counts as another origin: a page of one tenant's subdomain has the same site as one of another's.
 */
export const isCrossOrigin = (
  { secFetchSite, origin, host }: OriginHeaders,
  allowedOrigins: readonly string[],
): boolean => {
  if (origin !== undefined && allowedOrigins.includes(normalizeOrigin(origin) ?? '')) return false
  // A repeated header arrives as a list.
  const sites = secFetchSite?.toLowerCase().split(/[\s,]+/) ?? []
  if (sites.includes('cross-site') || sites.includes('same-site')) return true
  // Of an unknown later value, nothing is known. Then Origin decides, as it does without the header.
  const isKnown = sites.length > 0 && sites.every(site => site === 'same-origin' || site === 'none')
  return !isKnown && origin !== undefined && !isSameHost(origin, host)
}

/**
 * Whether a browser says that a page of this very origin sent a request that changes something. Every browser sends `Origin`
 * with it. `Sec-Fetch-Site`, which it sends to a host with TLS or a loopback name, decides also behind a gate that changes
 * `Host`.
 */
export const isSameOriginWrite = ({ secFetchSite, origin, host }: OriginHeaders): boolean =>
  secFetchSite === undefined
    ? origin !== undefined && isSameHost(origin, host)
    : secFetchSite.toLowerCase() === 'same-origin'

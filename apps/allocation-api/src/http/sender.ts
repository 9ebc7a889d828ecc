import { BlockList, isIP, SocketAddress } from 'node:net'
import { isLoopbackHost, parseHost } from '@pool/contract'
import type { Network } from '../config/ip-address.ts'
import { normalizeOrigin, parseOrigin } from '../config/origin.ts'
import type { ErrorOutcome, RequestContext } from './request.ts'

/** A header field of a request; undefined: absent. Several fields of one name are joined by commas. */
export type GetHeader = (name: Lowercase<string>) => string | undefined

/**
 * Returns the address of the client from the address of the connection and the headers of a request. Null: the
 * connection has closed, and the address is unknown.
 */
export type ClientAddress = (peer: string | null, getHeader: GetHeader) => string | null

/** In one form for all spellings. An IPv4-mapped IPv6 address is the IPv4 address (RFC 4291 section 2.5.5.2). */
const normalize = (text: string): string | null => {
  const plain = text.replace(/^::ffff:(?=\d+\.)/i, '')
  const version = plain.includes('%') ? 0 : isIP(plain)
  return version === 0 ? null : new SocketAddress({ address: plain, family: version === 4 ? 'ipv4' : 'ipv6' }).address
}

/**
 * The address of a node: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:4711` (RFC 7239
 * section 6). Null: anything else, such as `unknown` or an obfuscated identifier.
 */
const parseNode = (text: string): string | null => {
  const [, bracketed, dotted] = /^(?:\[([^\]]*)\]|([\d.]+))(?::(?:\d{1,5}|_[\w.-]+))?$/.exec(text) ?? []
  if (bracketed !== undefined) return bracketed.includes(':') ? normalize(bracketed) : null
  return normalize(dotted ?? text)
}

const TOKEN = "[!#$%&'*+.^_`|~\\dA-Za-z-]+"
const PAIR = new RegExp(`[ \\t]*(${TOKEN})=(?:(${TOKEN})|"((?:[^"\\\\]|\\\\.)*)")[ \\t]*`, 'y')

/** The values of `for` in a Forwarded header (RFC 7239 section 4), one per proxy. Null: the header is malformed. */
const parseForwarded = (header: string): readonly string[] | null => {
  const nodes: string[] = []
  let node = ''
  for (let at = 0; ; ) {
    PAIR.lastIndex = at
    const [pair, name, token, quoted] = PAIR.exec(header) ?? []
    if (pair === undefined) return null
    if (name?.toLowerCase() === 'for') node = token ?? quoted?.replaceAll(/\\(.)/g, '$1') ?? ''
    at += pair.length
    const isLast = at === header.length
    if (isLast || header[at] === ',') {
      nodes.push(node)
      node = ''
    } else if (header[at] !== ';') return null
    if (isLast) return nodes
    at += 1
  }
}

/** Whether an address is that of a trusted proxy. */
export const createProxyCheck = (trustedProxies: readonly Network[]): ((address: string) => boolean) => {
  if (trustedProxies.length === 0) return () => false
  const proxies = new BlockList()
  for (const { address, prefix, family } of trustedProxies) proxies.addSubnet(address, prefix, family)
  return text => {
    const address = normalize(text)
    return address !== null && proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
  }
}

/**
 * Believes the headers only as far as trusted proxies wrote them: each proxy adds the address of its own client at the end,
 * so the client is the last address that is not that of a trusted proxy. An entry that is not an address, and a malformed
 * header, hide the client; then the address is that of the last known proxy. The same holds if Forwarded and X-Forwarded-For
 * lead to different addresses, because the client may have sent the one that the proxies do not write.
 */
export const createClientAddress = (trustedProxies: readonly Network[]): ClientAddress => {
  const toPeer = (peer: string | null): string | null => peer?.replace(/^::ffff:/, '') ?? null
  if (trustedProxies.length === 0) return toPeer
  const isTrusted = createProxyCheck(trustedProxies)

  const follow = (peer: string, nodes: readonly string[]): string => {
    let known = peer
    for (let i = nodes.length - 1; i >= 0 && isTrusted(known); i -= 1) {
      const next = parseNode(nodes[i] ?? '')
      if (next === null) return known
      known = next
    }
    return known
  }

  return (connection, getHeader) => {
    const peer = toPeer(connection)
    const address = peer === null ? null : normalize(peer)
    if (address === null || !isTrusted(address)) return peer
    const forwarded = getHeader('forwarded')
    const list = getHeader('x-forwarded-for')
    const candidates = [
      ...(forwarded === undefined ? [] : [follow(address, parseForwarded(forwarded) ?? [])]),
      ...(list === undefined
        ? []
        : [
            follow(
              address,
              list.split(',').map(entry => entry.trim()),
            ),
          ]),
    ]
    const [first = address, second = first] = candidates
    return first === second ? first : address
  }
}

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

export interface BrowserPolicy {
  /** Normalized. Their pages may send requests; without CORS headers, they cannot read the responses. */
  readonly allowedOrigins: readonly string[]
  /** The hosts, as `parseHost` returns them, that requests can be for; empty: any. A page with another one is from DNS rebinding. */
  readonly allowedHosts: readonly string[]
  /** Rejects a `Host` that is not a loopback name: on a developer's machine, DNS rebinding makes any page same-origin. */
  readonly loopbackHostsOnly: boolean
}

const CROSS_ORIGIN =
  'A web page of another origin sent this request; add its origin to PDM_ALLOWED_ORIGINS if it may do so.'
const FOREIGN_HOST = 'Host is not in PDM_ALLOWED_HOSTS; use one of these names, or add this one.'
const NOT_LOOPBACK =
  'Host is not a loopback name; use localhost, or set PDM_LOOPBACK_HOSTS_ONLY=false to accept every Host.'

/** Rejects requests for another host. */
export const rejectForeignHost = (request: RequestContext, allowedHosts: readonly string[]): ErrorOutcome | null => {
  if (allowedHosts.length === 0 || allowedHosts.includes(parseHost(request.header('host') ?? '') ?? '')) return null
  return { kind: 'forbidden', detail: FOREIGN_HOST }
}

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

/** A `Host` header (RFC 9110 section 7.2) has no user, path or query. */
const HOST_HEADER = /^[^\s/?#@\\]+$/

/**
 * Whether a `Host` header names this machine: `localhost` and the names below it (RFC 6761 section 6.3), 127.0.0.0/8 or
 * `[::1]`, with any port. A web page that points its own domain at a loopback address (DNS rebinding) cannot send such a
 * header.
 */
export const isLoopbackHost = (host: string): boolean => {
  if (!HOST_HEADER.test(host)) return false
  const name = URL.parse(`http://${host}`)?.hostname.replace(/\.$/, '') ?? ''
  return name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || /^127(?:\.\d+){3}$/.test(name)
}

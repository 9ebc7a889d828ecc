import * as z from 'zod'
import { rule } from './allocation-problem.ts'
import { isPlainLine, maxCharacters, ONE_LINE } from './common.ts'

/** JSON `null` for an optional field means the same as its absence. */
export const absentIfNull = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .preprocess(value => (value === null ? undefined : value), schema)
    .meta({ nullable: schema.safeParse(undefined).success })

/**
 * Lower-cases ASCII letters only. Unicode lower-casing maps some other letters to ASCII (U+212A KELVIN SIGN to `k`), and
 * the client would get a name that it did not send.
 */
export const asciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, letter => letter.toLowerCase())

/** The form in which names are compared: trimmed, with ASCII letters in lower case. */
export const canonicalName = (text: string): string => asciiLowerCase(text.trim())

/**
 * The pattern of what a client may send for a value with this pattern: with white space around it. The OpenAPI document
 * states these patterns, so they have no look-around, no Unicode classes and no flags, which many languages lack. Match
 * them in time proportional to the length: they are applied to bodies of 64 KiB.
 */
export const withWhiteSpace = (pattern: string): RegExp => new RegExp(`^\\s*(?:${pattern})\\s*$`)

/** One label of a host name (RFC 1123 section 2.1), in any case. */
const HOST_LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'

export const DNS_LABEL = withWhiteSpace(HOST_LABEL)

/** A label that is not all digits. The third form can be too long. */
const LAST_LABEL =
  '[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?|[0-9][A-Za-z0-9-]{0,61}[A-Za-z]|[0-9][A-Za-z0-9-]{0,61}[A-Za-z-][A-Za-z0-9-]{0,61}[0-9]'

/** Two or more labels, the last not all digits. */
export const HOST_NAME = `(?:${HOST_LABEL}\\.)+(?:${LAST_LABEL})`

/**
 * A label (RFC 1035 section 2.3.1): a letter, then letters, digits and hyphens, not ending in a hyphen; at most 63. RFC 5890
 * section 2.3.1 reserves labels with "--" in positions 3 and 4 (`xn--…` and any later prefix).
 */
export const LABEL = withWhiteSpace(
  '[A-Za-z](?:[A-Za-z0-9]|[A-Za-z0-9-](?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,59}[A-Za-z0-9])?|-[A-Za-z0-9](?:[A-Za-z0-9-]{0,58}[A-Za-z0-9])?))?',
)

const labelRule =
  'subdomain must be one label of 1 to 63 characters a-z, 0-9 and "-", beginning with a letter and not ending in "-"'

/** The label rules except for the reserved labels. */
const UNRESERVED_LABEL = withWhiteSpace('[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?')

const findLabelError = (value: unknown): string =>
  UNRESERVED_LABEL.test(String(value))
    ? 'subdomain must not have "--" in positions 3 and 4: RFC 5890 reserves such labels.'
    : `${labelRule}.`

/** One label under a pool domain. Surrounding white space and ASCII case are not significant. */
export const subdomain = z
  .string(rule('invalid-format', `${labelRule}.`))
  .regex(LABEL, { ...rule('invalid-format', findLabelError), abort: true })
  .overwrite(canonicalName)
  .meta({
    description: 'One label under the pool domain; trimmed and lower-cased before validation.',
    example: 'acme',
  })

/** The form in which domains are compared: as names, without the final dot. */
export const canonicalDomain = (text: string): string => {
  const name = canonicalName(text)
  return name.endsWith('.') ? name.slice(0, -1) : name
}

/** The pool domain in the path. The service decides whether it is managed (`unsupported-pool`). */
export const poolDomain = z.string().overwrite(canonicalDomain).meta({
  description: 'A managed pool domain; trimmed, lower-cased and without a final dot before validation.',
  example: 'pool.test',
})

/** One label of a host name (RFC 1123 section 2.1), in lower case. */
export const isDnsLabel = (text: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)

/** A host name (RFC 1123 section 2.1) of two or more labels, the last not all digits; at most 253 characters. */
export const isHostName = (name: string): boolean => {
  if (name.length > 253) return false
  const labels = name.split('.')
  return labels.length >= 2 && labels.every(isDnsLabel) && !/^\d+$/.test(labels.at(-1) ?? '')
}

/** A `Host` header (RFC 9110 section 7.2) has no user, path or query. */
const HOST_HEADER = /^[^\s/?#@\\]+$/

/** The name or the address of a `Host` header, in one form: without the port. Null: it is not valid. */
export const parseHost = (host: string): string | null =>
  HOST_HEADER.test(host) ? (URL.parse(`http://${host}`)?.hostname.replace(/\.$/, '') ?? null) : null

/**
 * Whether a `Host` header names this machine: `localhost` and the names below it (RFC 6761 section 6.3), 127.0.0.0/8 or
 * `[::1]`, with any port. A web page that points its own domain at a loopback address (DNS rebinding) cannot send such a
 * header.
 */
export const isLoopbackHost = (host: string): boolean => {
  const name = parseHost(host) ?? ''
  return name === 'localhost' || name.endsWith('.localhost') || name === '[::1]' || /^127(?:\.\d+){3}$/.test(name)
}

/** Lower-cased, without white space and the trailing dot of an absolute name. */
export const toCanonicalFqdn = (name: string): string => canonicalName(name).replace(/\.$/, '')

/** A fully qualified domain name; trimmed and lower-cased, without a trailing dot. */
export const createFqdn = (
  missing: ReturnType<typeof rule>,
  invalid = missing,
  isValid: (name: string) => boolean = isHostName,
) =>
  z
    .string(missing)
    .regex(withWhiteSpace(`${HOST_NAME}\\.?`), invalid)
    .overwrite(toCanonicalFqdn)
    .refine(isValid, { ...invalid, when: ({ issues }) => issues.length === 0 })

export const fqdn = createFqdn(
  rule('invalid-fqdn', 'sovereignFQDN is required: a fully qualified domain name such as acme.pool.test.'),
  rule('invalid-fqdn', 'sovereignFQDN must be a fully qualified domain name such as acme.pool.test.'),
).meta({ example: 'acme.pool.test' })

/** A decimal octet without leading zeros (RFC 6943 section 3.1.1 explains why looser forms are dangerous). */
const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'
/** From 1 to 223, without 127 and 169. */
const FIRST_OCTET = '(?:[1-9]|[1-9][0-9]|1[01345789][0-9]|12[0-689]|16[0-8]|2[01][0-9]|22[0-3])'
const OCTET_BUT_254 = '(?:25[0-35]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])'

/**
 * 0/8, link-local 169.254/16, multicast 224/4 and reserved 240/4 (RFC 6890) cannot be addresses of a load balancer.
 * Loopback 127/8 can if the records are served to this machine only.
 */
const createAddressPattern = (acceptsLoopback: boolean): RegExp => {
  const first = acceptsLoopback ? `(?:${FIRST_OCTET}|127)` : FIRST_OCTET
  return new RegExp(`^(?:${first}\\.${OCTET}|169\\.${OCTET_BUT_254})\\.${OCTET}\\.${OCTET}$`)
}
const ADDRESS = createAddressPattern(false)
const ADDRESS_OR_LOOPBACK = createAddressPattern(true)

export const isLoadBalancerAddress = (address: string, acceptsLoopback: boolean): boolean =>
  (acceptsLoopback ? ADDRESS_OR_LOOPBACK : ADDRESS).test(address)

const addressMissing = rule('missing-lb-ip', 'loadBalancerIP is required: the IPv4 address for the records.')

export const toAddressDetail = (field: string): string =>
  `${field} must be a unicast IPv4 address such as 203.0.113.10, and neither link-local nor loopback.`

/** An IPv4 address of a load balancer. Private ranges are allowed, because a pool may serve a private network. */
export const createLoadBalancerIP = (acceptsLoopback: boolean, field = 'loadBalancerIP') => {
  const notText = rule('invalid-lb-ip', `${field} must be a string: an IPv4 address such as 203.0.113.10.`)
  return z
    .string({ error: issue => (issue.input === undefined ? addressMissing : notText).error(issue) })
    .min(1, { ...(field === 'loadBalancerIP' ? addressMissing : notText), abort: true })
    .regex(acceptsLoopback ? ADDRESS_OR_LOOPBACK : ADDRESS, rule('invalid-lb-ip', toAddressDetail(field)))
    .meta({ format: 'ipv4', example: '203.0.113.10' })
}

export const loadBalancerIP = createLoadBalancerIP(true)

/** An IPv6 address in the form of RFC 5952; null: it is not one. */
export const toCanonicalIPv6 = (text: string): string | null =>
  /^[0-9A-Fa-f:.]+$/.test(text) ? (URL.parse(`http://[${text}]`)?.hostname.slice(1, -1) ?? null) : null

/** ::/96, which has the unspecified and the loopback address, IPv4-mapped ::ffff:0:0/96, link-local fe80::/10, multicast ff00::/8. */
const NOT_UNICAST_IPV6 =
  /^(?:::(?:(?:ffff:[0-9a-f]+:)?[0-9a-f]+|[0-9a-f]+:[0-9a-f]+)?$|fe[89ab][0-9a-f]:|ff[0-9a-f]{2}:)/

const ipv6Rule = rule(
  'invalid-lb-ip',
  'loadBalancerIPv6 must be a unicast IPv6 address such as 2001:db8::10, and neither link-local nor loopback.',
)

export const loadBalancerIPv6 = z
  .string(ipv6Rule)
  .regex(/^[0-9A-Fa-f:.]{2,45}$/, { ...ipv6Rule, abort: true })
  .overwrite(text => toCanonicalIPv6(text) ?? text)
  .refine(text => text === toCanonicalIPv6(text) && !NOT_UNICAST_IPV6.test(text), ipv6Rule)
  .meta({ format: 'ipv6', example: '2001:db8::10' })

/** Free text that Postgres can store and a log line can contain: no control characters, no lone surrogates, and nothing that hides what it says. */
const createdByRule = rule(
  'invalid-format',
  'createdBy must be text of at most 253 characters without control characters, line breaks and changes of direction.',
)
export const createdBy = z
  .string(createdByRule)
  .regex(new RegExp(`^${ONE_LINE}$`), createdByRule)
  .check(maxCharacters(253, createdByRule))
  .refine(isPlainLine, createdByRule)

const tokenRule = rule('missing-token', 'reservationToken is required: the token in the response to reserve.')

/** Any text is allowed, so that a token that is not a UUID is a mismatch (403) rather than malformed. */
export const reservationToken = z.string(tokenRule).min(1, tokenRule)

/** In characters. */
export const MAX_IDEMPOTENCY_KEY_LENGTH = 255

/** Visible ASCII characters (VCHAR, RFC 5234). The operations document reuse with a different request. */
export const idempotencyKey = z
  .string()
  .regex(
    new RegExp(`^[\\x21-\\x7e]{1,${MAX_IDEMPOTENCY_KEY_LENGTH}}$`),
    rule(
      'invalid-idempotency-key',
      `Idempotency-Key must be 1 to ${MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters.`,
    ),
  )

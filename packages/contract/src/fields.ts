import * as z from 'zod'
import { rule } from './allocation-problem.ts'

/** JSON `null` for an optional field means the same as its absence. */
export const absentIfNull = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess(value => (value === null ? undefined : value), schema)

/**
 * Lower-cases ASCII letters only. Unicode lower-casing maps some other letters to ASCII (U+212A KELVIN SIGN to `k`), and
 * the client would get a name that it did not send.
 */
export const asciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, letter => letter.toLowerCase())

/** The form in which names are compared: trimmed, with ASCII letters in lower case. */
export const canonicalName = (text: string): string => asciiLowerCase(text.trim())

/** A label (RFC 1035 section 2.3.1): a letter, then letters, digits and hyphens, not ending in a hyphen; at most 63. */
const LABEL = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** RFC 5890 section 2.3.1: labels with "--" in positions 3 and 4 are reserved (`xn--…` and any later prefix). */
const RESERVED_LDH_LABEL = /^..--/

const labelRule =
  'subdomain must be one label of 1 to 63 characters a-z, 0-9 and "-", beginning with a letter and not ending in "-"'

/** One label under a pool domain. Surrounding white space and ASCII case are not significant. */
export const subdomain = z
  .string(rule('invalid-format', `${labelRule}.`))
  .overwrite(canonicalName)
  .regex(LABEL, { ...rule('invalid-format', `${labelRule}.`), abort: true })
  .refine(
    name => !RESERVED_LDH_LABEL.test(name),
    rule('invalid-format', 'subdomain must not have "--" in positions 3 and 4: RFC 5890 reserves such labels.'),
  )
  .meta({
    description: 'One label under the pool domain; trimmed and lower-cased before validation.',
    example: 'acme',
  })

/** The pool domain in the path. The service decides whether it is managed (`unsupported-pool`). */
export const poolDomain = z
  .string()
  .overwrite(canonicalName)
  .meta({ description: 'A managed pool domain; trimmed and lower-cased before validation.', example: 'pool.test' })

/** One label of a host name (RFC 1123 section 2.1), in lower case. */
export const isDnsLabel = (text: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)

/** A host name (RFC 1123 section 2.1) of two or more labels, the last not all digits; at most 253 characters. */
export const isHostName = (name: string): boolean => {
  if (name.length > 253) return false
  const labels = name.split('.')
  return labels.length >= 2 && labels.every(isDnsLabel) && !/^\d+$/.test(labels.at(-1) ?? '')
}

/** A fully qualified domain name; trimmed and lower-cased, without a trailing dot. */
export const fqdn = z
  .string(rule('invalid-fqdn', 'sovereignFQDN is required: a fully qualified domain name such as acme.pool.test.'))
  .overwrite(name => canonicalName(name).replace(/\.$/, ''))
  .refine(
    isHostName,
    rule('invalid-fqdn', 'sovereignFQDN must be a fully qualified domain name such as acme.pool.test.'),
  )
  .meta({ example: 'acme.pool.test' })

/** Four decimal octets without leading zeros (RFC 6943 section 3.1.1 explains why looser forms are dangerous). */
const DOTTED_QUAD = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/

/**
 * 0/8, link-local 169.254/16, multicast 224/4 and reserved 240/4 (RFC 6890) cannot be addresses of a load balancer.
 * Loopback 127/8 can if the records are served to this machine only.
 */
export const isLoadBalancerAddress = (address: string, acceptsLoopback: boolean): boolean => {
  if (!DOTTED_QUAD.test(address)) return false
  const [first, second] = address.split('.').map(Number)
  if (first === undefined || first === 0 || first >= 224) return false
  return !(first === 169 && second === 254) && (first !== 127 || acceptsLoopback)
}

const addressMissing = rule('missing-lb-ip', 'loadBalancerIP is required: the IPv4 address for the records.')
const addressNotText = rule('invalid-lb-ip', 'loadBalancerIP must be a string: an IPv4 address such as 203.0.113.10.')

export const invalidAddressDetail =
  'loadBalancerIP must be a unicast IPv4 address such as 203.0.113.10, and neither link-local nor loopback.'

/** An IPv4 address of a load balancer. Private ranges are allowed, because a pool may serve a private network. */
export const createLoadBalancerIP = (acceptsLoopback: boolean) =>
  z
    .string({ error: issue => (issue.input === undefined ? addressMissing : addressNotText).error(issue) })
    .min(1, { ...addressMissing, abort: true })
    .refine(address => isLoadBalancerAddress(address, acceptsLoopback), rule('invalid-lb-ip', invalidAddressDetail))
    .meta({ example: '203.0.113.10' })

export const loadBalancerIP = createLoadBalancerIP(true)

/** Free text that Postgres can store and a log line can contain: no control characters, no lone surrogates. */
const createdByRule = rule(
  'invalid-format',
  'createdBy must be text of at most 253 characters without control characters.',
)
export const createdBy = z
  .string(createdByRule)
  .refine(text => [...text].length <= 253 && text.isWellFormed() && !/\p{Cc}/u.test(text), createdByRule)

const tokenRule = rule('missing-token', 'reservationToken is required: the response to reserve contains it.')

/** Any text is allowed, so that a token that is not a UUID is a mismatch (403) rather than malformed. */
export const reservationToken = z.string(tokenRule).min(1, tokenRule)

/** Visible ASCII characters (VCHAR, RFC 5234). The operations document reuse with a different request. */
export const idempotencyKey = z
  .string()
  .regex(
    /^[\x21-\x7e]{1,255}$/,
    rule('invalid-idempotency-key', 'Idempotency-Key must be 1 to 255 visible ASCII characters.'),
  )

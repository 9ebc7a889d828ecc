import * as z from 'zod'
import { fault } from './allocation-problem.ts'

/**
 * Lower-cases ASCII letters only. Unicode lower-casing would turn some foreign letters into ASCII ones (U+212A KELVIN
 * SIGN into `k`), and a name would be granted that nobody wrote.
 */
export const asciiLowerCase = (text: string): string => text.replace(/[A-Z]/g, letter => letter.toLowerCase())

/** How names are compared: without white space around them, ASCII letters in lower case. */
export const canonicalName = (text: string): string => asciiLowerCase(text.trim())

/** RFC 1035 section 2.3.1 label: a letter, then letters, digits and hyphens, not ending in a hyphen; 63 at most. */
const label = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** RFC 5890 section 2.3.1: labels with "--" in positions 3 and 4 are reserved (`xn--…` and any later prefix). */
const reservedLdh = /^..--/

const labelRule = 'subdomain must be one label of 1 to 63 characters a-z, 0-9 and "-": first a letter, last not a "-"'

/** One label under a pool domain, as granted. White space around it and ASCII case are not significant. */
export const subdomain = z
  .string(fault('invalid-format', `${labelRule}.`))
  .overwrite(canonicalName)
  .regex(label, { error: fault('invalid-format', `${labelRule}.`), abort: true })
  .refine(name => !reservedLdh.test(name), {
    error: fault('invalid-format', 'subdomain must not have "--" in positions 3 and 4: RFC 5890 reserves such labels.'),
  })
  .meta({
    description: 'One label under the pool domain; trimmed and lower-cased before anything else.',
    example: 'acme',
  })

/** The pool domain as the path names it. Whether it is managed is the service's to say (`unsupported-pool`). */
export const poolDomain = z
  .string()
  .overwrite(canonicalName)
  .meta({ description: 'A managed pool domain; trimmed and lower-cased before anything else.', example: 'pool.test' })

/** One label of a host name (RFC 1123 section 2.1), in lower case. */
export const isDnsLabel = (text: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)

/** RFC 1123 section 2.1 host name of two or more labels whose last is not all digits; 253 characters at most. */
export const isHostName = (name: string): boolean => {
  if (name.length > 253) return false
  const labels = name.split('.')
  return labels.length >= 2 && labels.every(isDnsLabel) && !/^\d+$/.test(labels.at(-1) ?? '')
}

/** A fully qualified domain name; lower-cased, and a trailing dot is dropped. */
export const fqdn = z
  .string(fault('invalid-fqdn', 'sovereignFQDN is required: a fully qualified domain name such as acme.pool.test.'))
  .overwrite(name => asciiLowerCase(name).replace(/\.$/, ''))
  .refine(isHostName, {
    error: fault('invalid-fqdn', 'sovereignFQDN must be a fully qualified domain name such as acme.pool.test.'),
  })
  .meta({ example: 'acme.pool.test' })

/** Four decimal octets without leading zeros (RFC 6943 section 3.1.1 tells why the looser forms are dangerous). */
const dottedQuad = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/

/** 0/8, multicast 224/4 and reserved 240/4 (RFC 6890) can never be a load balancer's address. */
const isUnicast = (address: string): boolean => {
  const first = Number(address.slice(0, address.indexOf('.')))
  return first > 0 && first < 224
}

/** A unicast IPv4 address. Private and loopback ranges are allowed: a pool may serve a closed network. */
export const loadBalancerIP = z
  .string({
    error: issue =>
      issue.input === undefined
        ? fault('missing-lb-ip', 'loadBalancerIP is required: the IPv4 address that the records will point at.')
        : fault('invalid-lb-ip', 'loadBalancerIP must be a string: an IPv4 address such as 203.0.113.10.'),
  })
  .min(1, {
    error: fault('missing-lb-ip', 'loadBalancerIP is required: the IPv4 address that the records will point at.'),
    abort: true,
  })
  .refine(address => dottedQuad.test(address) && isUnicast(address), {
    error: fault('invalid-lb-ip', 'loadBalancerIP must be a unicast IPv4 address such as 203.0.113.10.'),
  })
  .meta({ example: '203.0.113.10' })

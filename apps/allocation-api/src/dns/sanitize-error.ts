import { redacted } from '@pool/contract'

/** Characters of a provider's message. */
const MAX_LENGTH = 300

/** A URL query with a value, which may be a key. */
const query = /[?&][^?&=]+=/

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Plain, and encoded for a URL or a form. */
const toSpellings = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  new URLSearchParams([['', secret]]).toString().slice(1),
]

/**
 * Sanitizes a provider's message for an operator: one line, printable, of bounded length, without `secrets` (in any
 * case) and without URLs that have a query. Empty if nothing is left.
 */
export const sanitizeMessage = (text: string, secrets: readonly string[]): string => {
  // The longest first: one secret may be a part of another.
  const known = secrets.flatMap(toSpellings).sort((a, b) => b.length - a.length)
  // Before truncation, or a part of a secret could stay.
  const redactedText = known
    .filter(secret => secret !== '')
    .reduce((rest, secret) => rest.replace(new RegExp(escaped(secret), 'gi'), redacted), text)
  return redactedText
    .split(/[^\x21-\x7e]+/)
    .filter(word => word !== '')
    .map(word => (query.test(word) ? redacted : word))
    .join(' ')
    .slice(0, MAX_LENGTH)
}

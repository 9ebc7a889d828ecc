import { redacted } from '@pool/contract'

/** Characters of a provider's words that are told at the most. */
const MOST = 300

/** A query with a value, as of a URL: a key may be in it. */
const query = /[?&][^?&=]+=/

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** As it is, and as it stands in a URL or a form. */
const spellingsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  new URLSearchParams([['', secret]]).toString().slice(1),
]

/**
 * A provider's own words made fit for an operator: on one line, printable, of bounded length, without `secrets`
 * (in whatever case) and without URLs that have a query. Empty when nothing is left.
 */
export const sanitizeMessage = (text: string, secrets: readonly string[]): string => {
  // The longest first: one secret may be a part of another.
  const known = secrets.flatMap(spellingsOf).sort((a, b) => b.length - a.length)
  // Before anything is cut off, or a part of a secret would stay.
  const told = known
    .filter(secret => secret !== '')
    .reduce((rest, secret) => rest.replace(new RegExp(escaped(secret), 'gi'), redacted), text)
  return told
    .split(/[^\x21-\x7e]+/)
    .filter(word => word !== '')
    .map(word => (query.test(word) ? redacted : word))
    .join(' ')
    .slice(0, MOST)
}

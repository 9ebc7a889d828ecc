/** Replaces what Postgres rejects in text: removes U+0000 and replaces lone surrogates (RFC 3629 section 3). */
export const sanitizeText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** Sanitizes every string and property name of a JSON value. Terraform allows U+0000 in both. */
export const sanitizeJson = (value: unknown): unknown => {
  if (typeof value === 'string') return sanitizeText(value)
  if (Array.isArray(value)) return value.map(sanitizeJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [sanitizeText(name), sanitizeJson(each)]))
}

/** Removes ECMA-48 escape sequences and control characters except line feed and tab. */
export const stripControlCharacters = (text: string): string =>
  text
    .replace(/(?![\n\t])\p{Cc}\[[0-9;:?]*[ -/]*[@-~]/gu, '')
    .replace(/(?![\n\t])\p{Cc}/gu, '')
    .toWellFormed()

const encoder = new TextEncoder()

/** At most `maxBytes` of UTF-8, including the ellipsis that marks a truncation. */
export const truncateUtf8 = (text: string, maxBytes: number): string => {
  if (text.length * 3 <= maxBytes) return text
  if (encoder.encodeInto(text, new Uint8Array(maxBytes)).read === text.length) return text
  return `${text.slice(0, encoder.encodeInto(text, new Uint8Array(maxBytes - 3)).read)}…`
}

export const toSingleLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

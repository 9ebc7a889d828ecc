/**
 * Without the sequences of ECMA-48 that colour a terminal, and without control characters apart from line feed and tab:
 * Postgres stores no U+0000 in a text, and no half of a surrogate pair (RFC 3629 section 3).
 */
export const readable = (text: string): string =>
  text
    .replace(/(?![\n\t])\p{Cc}\[[0-9;:?]*[ -/]*[@-~]/gu, '')
    .replace(/(?![\n\t])\p{Cc}/gu, '')
    .toWellFormed()

const encoder = new TextEncoder()

/** At most `bytes` of UTF-8; what was cut off is shown by an ellipsis within them. */
export const shortened = (text: string, bytes: number): string => {
  if (text.length * 3 <= bytes) return text
  if (encoder.encodeInto(text, new Uint8Array(bytes)).read === text.length) return text
  return `${text.slice(0, encoder.encodeInto(text, new Uint8Array(bytes - 3)).read)}…`
}

/** On one line. */
export const flat = (text: string): string => text.replace(/\s+/g, ' ').trim()

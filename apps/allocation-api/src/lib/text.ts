// Text that comes from elsewhere, such as the output of a program, and the JSON in it.

/** A JSON object: neither an array nor null. */
export type JsonObject = Readonly<Record<string, unknown>>

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Undefined if the text is not JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Replaces what Postgres rejects in text: removes U+0000 and replaces lone surrogates (RFC 3629 section 3). */
export const sanitizeText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** Sanitizes every string and property name of a JSON value. Terraform allows U+0000 in both. */
export const sanitizeJson = (value: unknown): unknown => {
  if (typeof value === 'string') return sanitizeText(value)
  if (Array.isArray(value)) return value.map(sanitizeJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [sanitizeText(name), sanitizeJson(each)]))
}

/** A title or a link (OSC), up to its terminator, and the choice of a character set, which programs send to reset a terminal. */
const ESCAPE = '\u001b'
const OTHER_SEQUENCES = new RegExp(
  `${ESCAPE}\\][^\\n\u0007${ESCAPE}]*(?:\u0007|${ESCAPE}\\\\)?|${ESCAPE}[()][AB0-2]`,
  'g',
)

/** Removes ECMA-48 escape sequences and control characters except line feed and tab. */
export const stripControlCharacters = (text: string): string =>
  text
    .replace(OTHER_SEQUENCES, '')
    .replace(/(?![\n\t])\p{Cc}\[[0-9;:?]*[ -/]*[@-~]/gu, '')
    .replace(/(?![\n\t])\p{Cc}/gu, '')
    .toWellFormed()

const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** At most `maxBytes` of UTF-8, including the ellipsis that marks a truncation. */
export const truncateUtf8 = (text: string, maxBytes: number): string => {
  if (text.length * 3 <= maxBytes) return text
  if (encoder.encodeInto(text, new Uint8Array(maxBytes)).read === text.length) return text
  return `${text.slice(0, encoder.encodeInto(text, new Uint8Array(maxBytes - 3)).read)}…`
}

const CUT = ' … '

/** At most `maxBytes` of UTF-8: the start and the end of a text that is longer. */
export const shortenUtf8 = (text: string, maxBytes: number): string => {
  const bytes = encoder.encode(text)
  if (bytes.length <= maxBytes) return text
  const room = maxBytes - encoder.encode(CUT).length
  const half = Math.floor(room / 2)
  const toText = (part: Uint8Array) => decoder.decode(part).replace(/^\ufffd+|\ufffd+$/g, '')
  return toText(bytes.subarray(0, half)) + CUT + toText(bytes.subarray(half - room))
}

export const toSingleLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

interface LineSplitter {
  push(chunk: string): void
  /** Emits the last line if no newline ended it. */
  end(): void
}

/**
 * Splits a stream into lines at LF or CRLF. A line longer than `maxLength` characters is truncated: its start is emitted
 * once the line ends, and the rest is not kept in memory.
 */
export const createLineSplitter = (
  maxLength: number,
  onLine: (line: string, isTruncated: boolean) => void,
): LineSplitter => {
  let buffer = ''
  let isTruncated = false
  const append = (text: string) => {
    const room = maxLength - buffer.length
    if (text.length > room) isTruncated = true
    buffer += text.length > room ? text.slice(0, room) : text
  }
  const emit = () => {
    const line = buffer.endsWith('\r') ? buffer.slice(0, -1) : buffer
    const wasTruncated = isTruncated
    buffer = ''
    isTruncated = false
    onLine(line, wasTruncated)
  }
  return {
    push: chunk => {
      for (const [index, text] of chunk.split('\n').entries()) {
        if (index > 0) emit()
        append(text)
      }
    },
    end: () => {
      if (buffer) emit()
    },
  }
}

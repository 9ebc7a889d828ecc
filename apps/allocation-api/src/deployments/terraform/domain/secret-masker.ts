import { redacted } from '@pool/contract'
import { stripControlCharacters } from '../../../lib/sanitize-text.ts'

const hex = (value: number, width: number): string => value.toString(16).padStart(width, '0')

const toJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Replaces each UTF-16 code unit that matches with `\uXXXX`. */
const escapeUnicode = (text: string, pattern: RegExp): string =>
  text.replace(pattern, unit => `\\u${hex(unit.charCodeAt(0), 4)}`)

/** RFC 8259 leaves some escapes to the encoder. Go's, and so Terraform's `jsonencode`, escapes <, > and &. */
const toJsonForms = (text: string): string[] => {
  const plain = toJson(text)
  const go = escapeUnicode(plain, /[<>&\u2028\u2029]/g)
  return [plain, go, escapeUnicode(plain, /[^ -~]/g), escapeUnicode(go, /[^ -~]/g), plain.replaceAll('/', '\\/')]
}

/** Characters that encoders leave: RFC 3986, encodeURIComponent, encodeURI, Python's quote, Go's PathEscape, HTML forms. */
const unescaped = [/[\w.~-]/, /[\w.~!*'()-]/, /[\w.~!*'();/?:@&=+$,#-]/, /[\w.~/-]/, /[\w.~$&+=:@-]/, /[\w.*-]/]

const toPercentForms = (text: string): string[] =>
  unescaped.flatMap(plain => {
    const bytes = [...Buffer.from(text)].map(byte => {
      const letter = String.fromCharCode(byte)
      return byte < 128 && plain.test(letter) ? letter : `%${hex(byte, 2)}`
    })
    const lower = bytes.join('')
    const upper = bytes.map(byte => (byte.length === 3 ? byte.toUpperCase() : byte)).join('')
    return [lower, upper, lower.replaceAll('%20', '+'), upper.replaceAll('%20', '+')]
  })

const toHtmlForms = (text: string): string[] =>
  ['&quot;', '&#34;', '&#x22;', '"'].flatMap(quote =>
    ['&#39;', '&#x27;', '&#039;', '&apos;', "'"].map(apostrophe =>
      text
        .replaceAll('&', '&amp;')
        .replaceAll('<', '&lt;')
        .replaceAll('>', '&gt;')
        .replaceAll('"', quote)
        .replaceAll("'", apostrophe),
    ),
  )

/** The template sequences of HCL's strings: https://developer.hashicorp.com/terraform/language/expressions/strings */
const toHclForms = (text: string): string[] => {
  const literal = text.replace(/[$%](?=\{)/g, '$&$&')
  return [literal, ...toJsonForms(literal)]
}

const toShellForms = (text: string): string[] => [
  text.replaceAll("'", "'\\''"),
  text.replaceAll("'", `'"'"'`),
  text.replace(/["$`\\]/g, '\\$&'),
  text.replace(/["$`\\!]/g, '\\$&'),
  text.replace(/[\\']/g, '\\$&'),
  text.replace(/[^\w.,:+/@%=-]/g, '\\$&'),
  text.replace(/[^\w.:+/@%=-]/g, '\\$&'),
]

/**
 * What the base64 encodings (RFC 4648, standard and URL-safe) of all texts with this substring have in common. It depends
 * on the offset of the substring modulo 3, and on whether the text ends with it.
 */
const toBase64Forms = (text: string): string[] => {
  const bytes = Buffer.from(text)
  const found = [0, 1, 2].flatMap(offset => {
    const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
    const inside = encoded.slice([0, 2, 3][offset])
    const open = encoded.slice([0, 2, 3][offset], Math.floor(((offset + bytes.length) * 4) / 3))
    return [open, inside.replace(/=+$/, ''), inside]
  })
  const safe = found.map(form => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [...found, ...safe, ...found.flatMap(toPercentForms)]
}

/** The forms of a text in the output of programs that quote, escape or encode it. */
export const toEncodedForms = (text: string): readonly string[] => [
  ...new Set([
    text,
    ...toJsonForms(text),
    ...toJsonForms(text).flatMap(toJsonForms),
    ...toPercentForms(text),
    ...toHtmlForms(text),
    ...toHclForms(text),
    ...toShellForms(text),
    ...toBase64Forms(text),
  ]),
]

/** Shorter values occur by chance in any output. In characters. */
const MIN_SECRET_LENGTH = 4
/** Of a secret that is wrapped over lines: the shortest fragment at the edge of a line that is masked. */
const MIN_FRAGMENT_LENGTH = 8

type Range = readonly [start: number, end: number]

/** The offsets of `needle` in `text`, overlapping matches included. */
const findAll = (text: string, needle: string): number[] => {
  const found: number[] = []
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) found.push(at)
  return found
}

/** A line that starts with the end of the needle, ends with its start, or lies entirely within it. */
const findFragments = (line: string, offset: number, needle: string): Range[] => {
  if (line.length < MIN_FRAGMENT_LENGTH || needle.length <= MIN_FRAGMENT_LENGTH) return []
  const head = findAll(needle, line.slice(0, MIN_FRAGMENT_LENGTH)).flatMap((at): Range[] => {
    if (needle.startsWith(line, at)) return [[offset, offset + line.length]]
    const rest = needle.slice(at)
    return line.startsWith(rest) ? [[offset, offset + rest.length]] : []
  })
  const tail = findAll(needle, line.slice(-MIN_FRAGMENT_LENGTH)).flatMap((at): Range[] => {
    const prefix = needle.slice(0, at + MIN_FRAGMENT_LENGTH)
    return line.endsWith(prefix) ? [[offset + line.length - prefix.length, offset + line.length]] : []
  })
  return [...head, ...tail]
}

const redact = (text: string, ranges: readonly Range[]): string => {
  let [clean, done, covered] = ['', 0, -1]
  for (const [start, end] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (start > covered) clean += text.slice(done, start) + redacted
    covered = Math.max(covered, end)
    done = covered
  }
  return clean + text.slice(done)
}

const splitLines = (text: string): { line: string; offset: number }[] =>
  [...text.matchAll(/[^\n]+/g)].map(({ 0: whole, index }) => {
    const line = whole.trim()
    return { line, offset: index + whole.indexOf(line) }
  })

/** `isCut`: the text was truncated, so its end may be the start of any secret and is masked entirely. */
export type Mask = (text: string, isCut?: boolean) => string

/**
 * Masks every secret of at least four characters in all its encoded forms. Not covered: other encodings, nested
 * encodings, and fragments of under eight characters of a secret that is wrapped over lines.
 */
export const createMask = (secrets: readonly string[]): Mask => {
  const values = secrets.flatMap(secret => [secret, stripControlCharacters(secret), ...secret.split(/[\r\n]+/)])
  const known = [...new Set(values)].filter(secret => secret.length >= MIN_SECRET_LENGTH)
  const needles = [...new Set(known.flatMap(toEncodedForms))].filter(needle => needle.length >= MIN_SECRET_LENGTH)
  const longest = Math.max(0, ...needles.map(needle => needle.length))
  return (text, isCut = false) => {
    const lines = splitLines(text)
    const ranges = needles.flatMap((needle): Range[] => [
      ...findAll(text, needle).map((at): Range => [at, at + needle.length]),
      ...lines.flatMap(({ line, offset }) => findFragments(line, offset, needle)),
    ])
    if (isCut && longest > 0) ranges.push([Math.max(0, text.length - longest), text.length])
    return redact(text, ranges)
  }
}

/** Masks every string in a JSON value. */
export const maskValue = (value: unknown, mask: Mask): unknown => {
  if (typeof value === 'string') return mask(value)
  if (Array.isArray(value)) return value.map(item => maskValue(item, mask))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [mask(name), maskValue(item, mask)]))
}

import { redacted } from '@pool/contract'
import { spellings } from './encodings.ts'
import { readable } from './sanitize.ts'

/** Shorter ones would turn up by chance everywhere, and protect nothing. In characters. */
const SHORTEST_SECRET = 4
/** Of a secret that was broken over two lines: the shortest piece at the edge of a line that is taken for one. */
const SHORTEST_PIECE = 8

type Range = readonly [start: number, end: number]

/** Wherever `needle` stands in `text`, overlapping itself too. */
const occurrences = (text: string, needle: string): number[] => {
  const found: number[] = []
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) found.push(at)
  return found
}

/** The end of the needle at the start of a line, its start at the end, or a whole line out of its middle. */
const pieces = (line: string, offset: number, needle: string): Range[] => {
  if (line.length < SHORTEST_PIECE || needle.length <= SHORTEST_PIECE) return []
  const head = occurrences(needle, line.slice(0, SHORTEST_PIECE)).flatMap((at): Range[] => {
    if (needle.startsWith(line, at)) return [[offset, offset + line.length]]
    const rest = needle.slice(at)
    return line.startsWith(rest) ? [[offset, offset + rest.length]] : []
  })
  const tail = occurrences(needle, line.slice(-SHORTEST_PIECE)).flatMap((at): Range[] => {
    const begun = needle.slice(0, at + SHORTEST_PIECE)
    return line.endsWith(begun) ? [[offset + line.length - begun.length, offset + line.length]] : []
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

const linesOf = (text: string): { line: string; offset: number }[] =>
  [...text.matchAll(/[^\n]+/g)].map(({ 0: whole, index }) => {
    const line = whole.trim()
    return { line, offset: index + whole.indexOf(line) }
  })

/** `isCut`: the text went on, so its end may be the beginning of a secret of any kind; the end is masked as a whole. */
export type Mask = (text: string, isCut?: boolean) => string

/**
 * Masks every secret of at least four characters, in any of its spellings. Not promised: an encoding that is not among
 * them, encodings within encodings, and pieces of under eight characters where somebody broke a secret over lines.
 */
export const createMask = (secrets: readonly string[]): Mask => {
  const parts = secrets.flatMap(secret => [secret, readable(secret), ...secret.split(/[\r\n]+/)])
  const known = [...new Set(parts)].filter(secret => secret.length >= SHORTEST_SECRET)
  const needles = [...new Set(known.flatMap(spellings))].filter(needle => needle.length >= SHORTEST_SECRET)
  const longest = Math.max(0, ...needles.map(needle => needle.length))
  return (text, isCut = false) => {
    const lines = linesOf(text)
    const ranges = needles.flatMap((needle): Range[] => [
      ...occurrences(text, needle).map((at): Range => [at, at + needle.length]),
      ...lines.flatMap(({ line, offset }) => pieces(line, offset, needle)),
    ])
    if (isCut && longest > 0) ranges.push([Math.max(0, text.length - longest), text.length])
    return redact(text, ranges)
  }
}

/** A value of JSON with every text in it masked. */
export const maskValue = (value: unknown, mask: Mask): unknown => {
  if (typeof value === 'string') return mask(value)
  if (Array.isArray(value)) return value.map(each => maskValue(each, mask))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [mask(name), maskValue(each, mask)]))
}

import type { DeploymentEvent } from '@pool/contract'
import { toVisibleText } from './text.ts'
import { formatUtc } from './time.ts'

/** The most lines that the page keeps. The service stores fewer for one run. */
export const MAX_LINES = 20_000
/** The longest line that the page keeps; the download has the same bound. */
export const MAX_LINE_LENGTH = 4_000

export type LogLevel = DeploymentEvent['level']

export interface LogLine {
  /** The number of the line in the stream, from 1. */
  readonly number: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly phase: string
  readonly level: LogLevel
  /** Without effective control characters. */
  readonly message: string
}

export interface LogBuffer {
  readonly lines: readonly LogLine[]
  /** Lines that were removed from the beginning. */
  readonly droppedCount: number
}

export const EMPTY_LOG: LogBuffer = { lines: [], droppedCount: 0 }

/** A line as the page keeps it: visible and bounded. */
export const toLogLine = (id: string, { time, phase, level, message }: DeploymentEvent): LogLine => {
  const text = toVisibleText(message.slice(0, MAX_LINE_LENGTH))
  const rest = message.length - MAX_LINE_LENGTH
  return {
    number: Number(id),
    at: Date.parse(time),
    phase,
    level,
    message: rest > 0 ? `${text} … (${rest} more characters)` : text,
  }
}

/** Adds lines at the end and drops the oldest ones above the maximum. A repeated line is ignored. */
export const appendLines = (buffer: LogBuffer, added: readonly LogLine[], maximum = MAX_LINES): LogBuffer => {
  const last = buffer.lines.at(-1)?.number ?? 0
  const fresh = added.filter(({ number }) => number > last)
  if (fresh.length === 0) return buffer
  const lines = [...buffer.lines, ...fresh]
  const excess = Math.max(0, lines.length - maximum)
  return { lines: excess > 0 ? lines.slice(excess) : lines, droppedCount: buffer.droppedCount + excess }
}

export interface LogFilter {
  readonly text: string
  /** The levels to show. */
  readonly levels: ReadonlySet<LogLevel>
}

/** The lines that have the text, in any case, and one of the levels. */
export const filterLines = (lines: readonly LogLine[], { text, levels }: LogFilter): readonly LogLine[] => {
  const needle = text.trim().toLowerCase()
  return lines.filter(
    ({ level, message, phase }) =>
      levels.has(level) && (needle === '' || message.toLowerCase().includes(needle) || phase.includes(needle)),
  )
}

/** A part of a line; `isMatch` marks what was searched for. */
export interface TextPart {
  readonly text: string
  readonly isMatch: boolean
}

/** Splits a text at every occurrence of what was searched for, in any case. */
export const markMatches = (text: string, search: string): readonly TextPart[] => {
  const needle = search.trim().toLowerCase()
  const haystack = text.toLowerCase()
  // Some letters have another length in lower case, and then positions do not correspond.
  if (needle === '' || haystack.length !== text.length) return [{ text, isMatch: false }]
  const parts: TextPart[] = []
  let from = 0
  for (let at = haystack.indexOf(needle); at >= 0; at = haystack.indexOf(needle, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), isMatch: false })
    parts.push({ text: text.slice(at, at + needle.length), isMatch: true })
    from = at + needle.length
  }
  if (from < text.length) parts.push({ text: text.slice(from), isMatch: false })
  return parts
}

/** The log as a text file: one line each, with the time in UTC. */
export const toLogFile = ({ lines, droppedCount }: LogBuffer): string => {
  const header = droppedCount > 0 ? [`(${droppedCount} earlier lines are not in this file)`] : []
  const rows = lines.map(
    ({ at, level, phase, message }) => `${formatUtc(at)} ${level.padEnd(5)} ${phase.padEnd(7)} ${message}`,
  )
  return `${[...header, ...rows].join('\n')}\n`
}

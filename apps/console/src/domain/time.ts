import { formatCount } from './text.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Keeps a number and its unit on one line. */
const NO_BREAK_SPACE = '\u00a0'

/** A duration in its two largest units: `3 min 5 s`. Negative durations are 0. */
export const formatDuration = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS))
  const units = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const
  const first = units.findIndex(([count]) => count > 0)
  if (first < 0) return `0${NO_BREAK_SPACE}s`
  return units
    .slice(first, first + 2)
    .filter(([count], index) => index === 0 || count > 0)
    .map(([count, unit]) => `${count}${NO_BREAK_SPACE}${unit}`)
    .join(' ')
}

/** The distance of a time from now: `3 minutes ago`, `in 2 hours`. */
export const formatRelative = (at: number, now: number): string => {
  const distance = Math.abs(at - now)
  const sizes = [
    [DAY_MS, 'day'],
    [HOUR_MS, 'hour'],
    [MINUTE_MS, 'minute'],
    [SECOND_MS, 'second'],
  ] as const
  const size = sizes.find(([ms]) => distance >= ms)
  if (size === undefined) return 'now'
  const text = formatCount(Math.floor(distance / size[0]), size[1])
  return at > now ? `in ${text}` : `${text} ago`
}

/** Date and time in a time zone, as `2026-01-31 12:00:00`. */
export const formatLocal = (at: number, timeZone?: string): string => {
  const parts = new Intl.DateTimeFormat('en-GB', {
    ...(timeZone === undefined ? {} : { timeZone }),
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
  }).formatToParts(at)
  const get = (type: Intl.DateTimeFormatPartTypes) => parts.find(part => part.type === type)?.value ?? ''
  return `${get('year')}-${get('month')}-${get('day')} ${get('hour')}:${get('minute')}:${get('second')}`
}

/** The same time in UTC, for the hint of a time in the viewer's zone: `2026-01-31 12:00:00.000 UTC`. */
export const formatUtc = (at: number): string => `${new Date(at).toISOString().replace('T', ' ').replace('Z', '')} UTC`

const DAY_SECONDS = DAY_MS / SECOND_MS

/** A time of an axis that covers `seconds`: the time of day, or the day and month if it covers more than one. */
export const formatAxisTime = (at: number, seconds: number, timeZone?: string): string => {
  const text = formatLocal(at, timeZone)
  return seconds > DAY_SECONDS ? text.slice(5, 10) : text.slice(11, 16)
}

/** The time within a day, for the lines of a log: `12:00:00`. */
export const formatClock = (at: number, timeZone?: string): string => formatLocal(at, timeZone).slice(11)

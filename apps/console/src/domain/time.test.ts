import { expect, test } from 'vitest'
import { formatAxisTime, formatClock, formatDuration, formatLocal, formatRelative, formatUtc } from './time.ts'

const at = Date.parse('2026-01-31T12:00:00.123Z')

test.each([
  [-5, '0 s'],
  [999, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [185_000, '3 min 5 s'],
  [3_600_000, '1 h'],
  [90_061_000, '1 d 1 h'],
])('a duration of %i ms is %s', (ms, text) => expect(formatDuration(ms)).toBe(text.replace(/(\d) /g, '$1\u00a0')))

test.each([
  [at, 'now'],
  [at - 1_000, '1 second ago'],
  [at - 120_000, '2 minutes ago'],
  [at + 7_200_000, 'in 2 hours'],
  [at - 3 * 86_400_000, '3 days ago'],
])('a time is relative to now', (time, text) => expect(formatRelative(time, at)).toBe(text))

test.each([
  ['Asia/Kolkata', '2026-01-31 17:30:00'],
  ['America/New_York', '2026-01-31 07:00:00'],
])('a time in %s', (zone, text) => expect(formatLocal(at, zone)).toBe(text))

test('a time in UTC, with milliseconds', () => expect(formatUtc(at)).toBe('2026-01-31 12:00:00.123 UTC'))
test('the times of an axis', () => {
  expect(formatAxisTime(at, 3_600, 'UTC')).toBe('12:00')
  expect(formatAxisTime(at, 604_800, 'UTC')).toBe('01-31')
})
test('the time of a log line', () => expect(formatClock(at, 'UTC')).toBe('12:00:00'))

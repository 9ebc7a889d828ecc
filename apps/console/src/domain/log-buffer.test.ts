import { describe, expect, test } from 'vitest'
import {
  appendLines,
  EMPTY_LOG,
  filterLines,
  type LogLevel,
  type LogLine,
  MAX_LINE_LENGTH,
  markMatches,
  toLogFile,
  toLogLine,
} from './log-buffer.ts'

const line = (number: number, message = `line ${number}`, level: LogLevel = 'info'): LogLine => ({
  number,
  at: Date.parse('2026-01-31T12:00:00.000Z') + number,
  phase: 'apply',
  level,
  message,
})

describe('toLogLine', () => {
  const event = { time: '2026-01-31T12:00:00.000Z', phase: 'apply', level: 'warn' } as const
  test('keeps escape sequences and markup as text', () =>
    expect(toLogLine('7', { ...event, message: '\u001b[2J<img src=x onerror=alert(1)>' })).toEqual({
      ...line(0),
      number: 7,
      level: 'warn',
      message: '<ESC>[2J<img src=x onerror=alert(1)>',
    }))
  test('bounds a line', () => {
    const { message } = toLogLine('1', { ...event, message: 'x'.repeat(1_000_000) })
    expect(message).toHaveLength(MAX_LINE_LENGTH + ' … (996000 more characters)'.length)
  })
})

describe('appendLines', () => {
  test('keeps the newest lines and counts the others', () => {
    const many = Array.from({ length: 25 }, (_, index) => line(index + 1))
    const buffer = appendLines(appendLines(EMPTY_LOG, many.slice(0, 8), 10), many.slice(8), 10)
    expect(buffer.droppedCount).toBe(15)
    expect(buffer.lines.map(({ number }) => number)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25])
  })
  test('ignores lines that a reconnected stream repeats', () => {
    const buffer = appendLines(EMPTY_LOG, [line(1), line(2)])
    expect(appendLines(buffer, [line(1), line(2)])).toBe(buffer)
    expect(appendLines(buffer, [line(2), line(3)]).lines).toHaveLength(3)
  })
})

test('a filter has a text and levels', () => {
  const lines = [line(1, 'Creating bucket'), line(2, 'creating Server', 'warn'), line(3, 'done', 'error')]
  const numbers = (text: string, levels: readonly LogLevel[]) =>
    filterLines(lines, { text, levels: new Set(levels) }).map(({ number }) => number)
  expect(numbers('', ['info', 'warn', 'error'])).toEqual([1, 2, 3])
  expect(numbers(' CREATING ', ['info', 'warn', 'error'])).toEqual([1, 2])
  expect(numbers('creating', ['error'])).toEqual([])
})

test.each([
  ['abcabc', 'B', ['a', '[b]', 'ca', '[b]', 'c']],
  ['abc', '', ['abc']],
  ['aaa', 'aa', ['[aa]', 'a']],
  ['İx', 'x', ['İx']],
])('marks what was searched for: %s, %s', (text, search, parts) =>
  expect(markMatches(text, search).map(part => (part.isMatch ? `[${part.text}]` : part.text))).toEqual(parts),
)

test('the file says how many lines are missing', () => {
  expect(toLogFile({ lines: [line(3)], droppedCount: 2 })).toBe(
    '(2 earlier lines are not in this file)\n2026-01-31 12:00:00.003 UTC info  apply   line 3\n',
  )
})

import { describe, expect, test } from 'vitest'
import { acceptsColour, createPaint, toJson, toPlainLine, toPlainText, truncate } from './text.ts'

describe('text of a service does not control the terminal', () => {
  test.each([
    ['an escape sequence', '\u001b[31mred', '\\x1b[31mred'],
    ['the C1 control sequence introducer', '\u009b31m', '\\x9b31m'],
    ['line breaks', 'a\r\nb\rc\n', 'a b c'],
    ['a bell', '\u0007', '\\x07'],
    ['an override of the direction', 'a\u202eb', 'a\\u202eb'],
    ['other scripts', 'café 東京', 'café 東京'],
  ])('%s', (_, text, plain) => expect(toPlainLine(text)).toBe(plain))

  test('text of several lines keeps its lines and tabs', () =>
    expect(toPlainText('a\r\n\tb\u001b[0m')).toBe('a\n\tb\\x1b[0m'))

  test('JSON has the same value and no control characters', () => {
    const value = { text: '\u001b[0m\u009b\u202e\u007f' }
    const json = toJson(value)
    expect(JSON.parse(json)).toEqual(value)
    expect(json).toMatch(/^[ -~]+$/)
  })
})

test.each([
  ['shorter text stays', 'abc', 3, 'abc'],
  ['an ellipsis is the last column', 'abcdef', 4, 'abc…'],
  ['a wide character has two columns', '東京都', 4, '東…'],
  ['a combined character stays whole', 'e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
  ['one column', 'abc', 1, '…'],
])('truncate: %s', (_, text, width, expected) => expect(truncate(text, width)).toBe(expected))

test.each([
  [{ isTerminal: true, env: {} }, true],
  [{ isTerminal: false, env: {} }, false],
  [{ isTerminal: true, env: { NO_COLOR: '1' } }, false],
  // https://no-color.org: an empty value does not count.
  [{ isTerminal: true, env: { NO_COLOR: '' } }, true],
  [{ isTerminal: true, env: { TERM: 'dumb' } }, false],
])('colour with %j: %s', (options, expected) => expect(acceptsColour(options)).toBe(expected))

test('paint adds codes only if there is colour', () => {
  expect(createPaint(true)('active', 'green')).toBe('\u001b[32mactive\u001b[39m')
  expect(createPaint(true)('active', undefined)).toBe('active')
  expect(createPaint(false)('active', 'green')).toBe('active')
})

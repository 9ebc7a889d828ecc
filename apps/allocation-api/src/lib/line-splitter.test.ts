import { expect, test } from 'vitest'
import { flat, readable, shortened } from '../deployments/terraform/domain/sanitize.ts'
import { createLines } from './line-splitter.ts'

const linesOf = (chunks: readonly string[], limit = 10) => {
  const given: (string | [string])[] = []
  const lines = createLines(limit, (line, isCut) => given.push(isCut ? [line] : line))
  for (const chunk of chunks) lines.push(chunk)
  lines.end()
  return given
}

test.each<readonly [string, readonly string[], readonly (string | [string])[]]>([
  ['several in a chunk', ['a\nb\n'], ['a', 'b']],
  ['one in several chunks', ['a', 'b', 'c\n'], ['abc']],
  ['with carriage returns', ['a\r\nb\r', '\n'], ['a', 'b']],
  ['blank ones', ['\n\n'], ['', '']],
  ['without an end', ['a\nb'], ['a', 'b']],
  ['none', ['', ''], []],
  ['as long as may be', ['0123456789\nx'], ['0123456789', 'x']],
  ['longer', ['0123456789a\nx'], [['0123456789'], 'x']],
  ['much longer, in chunks', ['01234', '56789', 'a', 'b'.repeat(100), '\nx'], [['0123456789'], 'x']],
  ['longer without an end', ['0123456789ab'], [['0123456789']]],
])('lines of a stream: %s', (_, chunks, lines) => {
  expect(linesOf(chunks)).toEqual(lines)
})

test('a text is readable, bounded, on one line', () => {
  expect(readable('\u001b[1;31mred\u001b[0m\u0000 \ud800 \t[x] \n\u009b1mb')).toBe('red \ufffd \t[x] \n1mb')
  expect(shortened('abc', 3)).toBe('abc')
  expect(shortened('äöü', 6)).toBe('äöü')
  expect(shortened('äöüx', 6)).toBe('ä…')
  expect(shortened('x\u{1f600}\u{1f600}', 8)).toBe('x\u{1f600}…')
  expect(shortened('x\u{1f600}\u{1f600}', 7)).toBe('x…')
  expect(Buffer.byteLength(shortened('é'.repeat(9_000), 8_192))).toBeLessThanOrEqual(8_192)
  expect(flat(' a\n  b\tc ')).toBe('a b c')
})

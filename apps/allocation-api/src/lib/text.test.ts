import { expect, test } from 'vitest'
import { createLineSplitter, shortenUtf8, stripControlCharacters, toSingleLine, truncateUtf8 } from './text.ts'

const split = (chunks: readonly string[], limit = 10) => {
  const emitted: (string | [string])[] = []
  const splitter = createLineSplitter(limit, (line, isTruncated) => emitted.push(isTruncated ? [line] : line))
  for (const chunk of chunks) splitter.push(chunk)
  splitter.end()
  return emitted
}

test.each<readonly [string, readonly string[], readonly (string | [string])[]]>([
  ['several lines in a chunk', ['a\nb\n'], ['a', 'b']],
  ['a line in several chunks', ['a', 'b', 'c\n'], ['abc']],
  ['CRLF', ['a\r\nb\r', '\n'], ['a', 'b']],
  ['empty lines', ['\n\n'], ['', '']],
  ['no newline at the end', ['a\nb'], ['a', 'b']],
  ['no line', ['', ''], []],
  ['the maximum length', ['0123456789\nx'], ['0123456789', 'x']],
  ['too long', ['0123456789a\nx'], [['0123456789'], 'x']],
  ['much too long, in chunks', ['01234', '56789', 'a', 'b'.repeat(100), '\nx'], [['0123456789'], 'x']],
  ['too long without a newline', ['0123456789ab'], [['0123456789']]],
])('splits a stream into lines: %s', (_, chunks, lines) => {
  expect(split(chunks)).toEqual(lines)
})

test('text is sanitized, truncated and flattened', () => {
  expect(stripControlCharacters('\u001b[1;31mred\u001b[0m\u0000 \ud800 \t[x] \n\u009b1mb')).toBe(
    'red \ufffd \t[x] \n1mb',
  )
  expect(
    stripControlCharacters('a\u001b(B b\u001b]8;;http://x\u001b\\link\u001b]8;;\u0007 \u001b]0;title\u0007c'),
  ).toBe('a blink c')
  expect(stripControlCharacters('\u001b]no end\nx')).toBe('\nx')
  expect([shortenUtf8('äöü', 6), shortenUtf8('aaaaaabbbbbb', 11)]).toEqual(['äöü', 'aaa … bbb'])
  expect(shortenUtf8('ä'.repeat(9), 12)).toBe('ä … ää')
  expect(truncateUtf8('abc', 3)).toBe('abc')
  expect(truncateUtf8('äöü', 6)).toBe('äöü')
  expect(truncateUtf8('äöüx', 6)).toBe('ä…')
  expect(truncateUtf8('x\u{1f600}\u{1f600}', 8)).toBe('x\u{1f600}…')
  expect(truncateUtf8('x\u{1f600}\u{1f600}', 7)).toBe('x…')
  expect(Buffer.byteLength(truncateUtf8('é'.repeat(9_000), 8_192))).toBeLessThanOrEqual(8_192)
  expect(toSingleLine(' a\n  b\tc ')).toBe('a b c')
})

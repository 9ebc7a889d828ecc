import { expect, test } from 'vitest'
import { sanitizeMessage } from './sanitize-error.ts'

test.each([
  ['unchanged', 'Record a.pool.test. IN A: Conflicts', [], 'Record a.pool.test. IN A: Conflicts'],
  ['empty', '', ['k3y'], ''],
  ['nothing printable', '\r\n\t\u0000', ['k3y'], ''],
  ['on one line, printable', ' one\r\n\ttwo\u001b[31m\u202eé ', [], 'one two [31m'],
  ['a secret', 'key k3y: no such k3y', ['k3y'], 'key <redacted>: no such <redacted>'],
  ['a secret within a word', 'Bearer:xk3yx', ['k3y'], 'Bearer:x<redacted>x'],
  ['an encoded secret', 'a%20b%2B or a+b%2B', ['a b+'], '<redacted> or <redacted>'],
  ['a secret over two lines', 'the a\nb', ['a\nb'], 'the <redacted>'],
  ['a secret within another', 'abcd ab', ['ab', 'abcd'], '<redacted> <redacted>'],
  ['a secret in another case', 'KEY K3Y', ['k3y'], 'KEY <redacted>'],
  ['a secret with regular expression characters', 'a.c (a?c) axc', ['a.c', '(a?c)'], '<redacted> <redacted> axc'],
  ['an empty secret', 'abc', [''], 'abc'],
  ['a URL with a query', 'GET https://api.example/x?key=abc&y=1 failed', [], 'GET <redacted> failed'],
  ['a query alone', 'not: a=1&key=abc', [], 'not: <redacted>'],
  ['a URL without a query', 'see https://api.example/x?', [], 'see https://api.example/x?'],
  ['text that only resembles a query', "TXT 'v=DKIM1; p=a' & why?", [], "TXT 'v=DKIM1; p=a' & why?"],
])('%s', (_, text, secrets, expected) => {
  expect(sanitizeMessage(text, secrets)).toBe(expected)
})

test('a long text is truncated after redaction, so no part of a secret remains', () => {
  const secret = 's3cret'.repeat(20)
  const message = sanitizeMessage(`${'x'.repeat(250)} ${secret} ${'y'.repeat(1_000)}`, [secret])
  expect(message).toHaveLength(300)
  expect(message).toContain('<redacted> y')
})

test('a very long word takes linear time', () => {
  const text = '?'.repeat(1_000_000)
  const before = performance.now()
  sanitizeMessage(text, ['k3y'])
  expect(performance.now() - before).toBeLessThan(4_000)
})

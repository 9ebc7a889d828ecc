import { expect, test } from 'vitest'
import { sanitizeMessage } from './sanitize-error.ts'

test.each([
  ['as it is', 'Record a.pool.test. IN A: Conflicts', [], 'Record a.pool.test. IN A: Conflicts'],
  ['nothing', '', ['k3y'], ''],
  ['nothing printable', '\r\n\t\u0000', ['k3y'], ''],
  ['on one line, printable', ' one\r\n\ttwo\u001b[31m\u202eé ', [], 'one two [31m'],
  ['a secret', 'key k3y: no such k3y', ['k3y'], 'key <redacted>: no such <redacted>'],
  ['within a word', 'Bearer:xk3yx', ['k3y'], 'Bearer:x<redacted>x'],
  ['encoded', 'a%20b%2B or a+b%2B', ['a b+'], '<redacted> or <redacted>'],
  ['over two lines', 'the a\nb', ['a\nb'], 'the <redacted>'],
  ['one in another', 'abcd ab', ['ab', 'abcd'], '<redacted> <redacted>'],
  ['in other letters', 'KEY K3Y', ['k3y'], 'KEY <redacted>'],
  ['made of signs', 'a.c (a?c) axc', ['a.c', '(a?c)'], '<redacted> <redacted> axc'],
  ['an empty secret', 'abc', [''], 'abc'],
  ['a URL with a query', 'GET https://api.example/x?key=abc&y=1 failed', [], 'GET <redacted> failed'],
  ['a query alone', 'not: a=1&key=abc', [], 'not: <redacted>'],
  ['a URL without', 'see https://api.example/x?', [], 'see https://api.example/x?'],
  ['what is no query', "TXT 'v=DKIM1; p=a' & why?", [], "TXT 'v=DKIM1; p=a' & why?"],
])('%s', (_, text, secrets, told) => {
  expect(sanitizeMessage(text, secrets)).toBe(told)
})

test('it is not without end, and what is cut off is never a part of a secret', () => {
  const secret = 's3cret'.repeat(20)
  const told = sanitizeMessage(`${'x'.repeat(250)} ${secret} ${'y'.repeat(1_000)}`, [secret])
  expect(told).toHaveLength(300)
  expect(told).toContain('<redacted> y')
})

test('a word without end takes no time', () => {
  const text = '?'.repeat(1_000_000)
  const before = performance.now()
  sanitizeMessage(text, ['k3y'])
  expect(performance.now() - before).toBeLessThan(1_000)
})

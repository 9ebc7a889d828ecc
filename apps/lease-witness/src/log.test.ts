import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { isLogged, log } from './log.ts'

const lines: string[] = []
beforeEach(() => {
  lines.length = 0
  vi.spyOn(console, 'log').mockImplementation(line => void lines.push(line))
})
afterEach(() => vi.restoreAllMocks())

describe('LOG_LEVEL', () => {
  test.each<readonly [level: string | undefined, error: boolean, info: boolean, debug: boolean]>([
    ['error', true, false, false],
    ['info', true, true, false],
    ['debug', true, true, true],
    [undefined, true, true, false],
    ['', true, true, false],
    ['verbose', true, true, false],
    [' Error ', true, false, false],
    ['DEBUG', true, true, true],
  ])('%s', (level, error, info, debug) => {
    const settings = level === undefined ? {} : { LOG_LEVEL: level }
    expect(['error', 'info', 'debug'].map(each => isLogged(settings, each as 'error'))).toEqual([error, info, debug])
  })

  test('lines below it are not written', () => {
    log({ LOG_LEVEL: 'error' }, 'info', { msg: 'x' })
    expect(lines).toEqual([])
  })
})

test('a line is one JSON object with level, time and service', () => {
  log({}, 'info', { msg: 'a\nb', slot: undefined })
  expect(lines).toHaveLength(1)
  expect(lines[0]).not.toContain('\n')
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    service: 'lease-witness',
    msg: 'a\nb',
  })
})

describe('no line contains a token of the allow-list', () => {
  test.each<readonly [rule: string, csv: string, text: string]>([
    ['alone', 'token-number-1', 'token-number-1'],
    ['in a longer string', 'token-number-1', 'slot/token-number-1/x'],
    ['more than once', 'token-number-1', 'token-number-1 token-number-1'],
    ['the second of the list', 'token-number-1, token-number-2', 'token-number-2'],
    ['with characters that JSON escapes', 'token"number\\1', 'token"number\\1'],
    ['with characters that are special in patterns', 'token.$&(1)*+', 'token.$&(1)*+'],
  ])('%s', (_, csv, text) => {
    log({ BEARER_TOKENS_CSV: csv }, 'info', { msg: 'x', slot: text, deep: { holder: [text] } })
    for (const token of csv.split(',')) {
      expect(lines.join()).not.toContain(token.trim())
      expect(lines.join()).not.toContain(JSON.stringify(token.trim()).slice(1, -1))
    }
    expect(lines.join()).toContain('<redacted>')
    expect(() => JSON.parse(lines[0] ?? '')).not.toThrow()
  })

  test('a token with another one as its prefix is redacted completely', () => {
    log({ BEARER_TOKENS_CSV: 'token-of-a,token-of-a-and-more' }, 'info', { slot: 'token-of-a-and-more' })
    expect(lines.join()).not.toContain('and-more')
  })
})

test.each<readonly [rule: string, secret: string, text: string]>([
  ['in a value', 'secret-of-a-request', 'ns/secret-of-a-request'],
  ['a part of an escape sequence', 't0000000', 'x\t0000000'],
  ['the beginning of a longer secret', 'token-of-a', 'token-of-a-and-more'],
])('a secret of the request is redacted, and the line stays JSON: %s', (_, secret, text) => {
  log({ BEARER_TOKENS_CSV: 'token-of-a-and-more' }, 'info', { slot: text, generation: 12_345_678 }, [
    secret,
    '12345678',
  ])
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    slot: expect.not.stringContaining(secret),
    generation: 12_345_678,
  })
  expect(lines.join()).not.toContain('and-more')
})

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { isLogged, log } from './log.ts'

const said: string[] = []
beforeEach(() => {
  said.length = 0
  vi.spyOn(console, 'log').mockImplementation(line => void said.push(line))
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

  test('what is below it is not said', () => {
    log({ LOG_LEVEL: 'error' }, 'info', { msg: 'x' })
    expect(said).toEqual([])
  })
})

test('a line is one object of JSON with its level, time and service', () => {
  log({}, 'info', { msg: 'a\nb', slot: undefined })
  expect(said).toHaveLength(1)
  expect(said[0]).not.toContain('\n')
  expect(JSON.parse(said[0] ?? '')).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    service: 'lease-witness',
    msg: 'a\nb',
  })
})

describe('no token of the allow-list is in a line', () => {
  test.each<readonly [rule: string, csv: string, text: string]>([
    ['alone', 'token-number-1', 'token-number-1'],
    ['within a text', 'token-number-1', 'slot/token-number-1/x'],
    ['more than once', 'token-number-1', 'token-number-1 token-number-1'],
    ['the second of the list', 'token-number-1, token-number-2', 'token-number-2'],
    ['with characters that JSON escapes', 'token"number\\1', 'token"number\\1'],
    ['with characters that a pattern would read', 'token.$&(1)*+', 'token.$&(1)*+'],
  ])('%s', (_, csv, text) => {
    log({ BEARER_TOKENS_CSV: csv }, 'info', { msg: 'x', slot: text, deep: { holder: [text] } })
    for (const token of csv.split(',')) {
      expect(said.join()).not.toContain(token.trim())
      expect(said.join()).not.toContain(JSON.stringify(token.trim()).slice(1, -1))
    }
    expect(said.join()).toContain('<redacted>')
    expect(() => JSON.parse(said[0] ?? '')).not.toThrow()
  })

  test('a token that begins with another one leaves nothing behind', () => {
    log({ BEARER_TOKENS_CSV: 'token-of-a,token-of-a-and-more' }, 'info', { slot: 'token-of-a-and-more' })
    expect(said.join()).not.toContain('and-more')
  })
})

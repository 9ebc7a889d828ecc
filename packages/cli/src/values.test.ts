import { describe, expect, test } from 'vitest'
import { UsageError } from './exit-codes.ts'
import { formatDuration, parseDuration, parsePoolName } from './values.ts'

const limits = { min: 1, max: 86_400_000 }

describe('durations', () => {
  test.each([
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['500ms', 500],
    ['1.5s', 1_500],
    ['1m1s', 61_000],
  ])('%s', (text, ms) => expect(parseDuration(text, '--timeout', limits)).toBe(ms))

  test.each(['', '30', 's', '-1s', '1d', '1s ', ' 1s', '1,5s', '30sec', '1e3s'])('rejects %j', text => {
    expect(() => parseDuration(text, '--timeout', limits)).toThrow(UsageError)
  })

  test.each([
    [500, '500ms'],
    [1_000, '1s'],
    [1_500, '1.5s'],
    [90_000, '1m30s'],
    [3_600_000, '1h'],
    [3_661_000, '1h1m1s'],
  ])('formats %d ms as %s, which has the same value', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
    expect(parseDuration(text, '--timeout', limits)).toBe(ms)
  })
})

test.each([
  [['acme', 'pool.example'], { subdomain: 'acme', pool: 'pool.example' }],
  [['acme.pool.example', undefined], { subdomain: 'acme', pool: 'pool.example' }],
  [[' ACME ', 'Pool.Example.'], { subdomain: 'acme', pool: 'pool.example' }],
] as const)('a name can be %j', ([name, pool], expected) => expect(parsePoolName(name, pool)).toEqual(expected))

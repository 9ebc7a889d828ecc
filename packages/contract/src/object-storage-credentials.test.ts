import { describe, expect, test } from 'vitest'
import { redacted } from './common.ts'
import {
  ACCESS_KEY,
  accessKeyError,
  isObjectStorageRegion,
  objectStorageRegions,
  secretKeyError,
} from './object-storage-credentials.ts'

test.each(objectStorageRegions)('%s is a region', region => {
  expect(isObjectStorageRegion(region)).toBe(true)
})
test.each(['', 'FSN1', 'fsn1 ', 'fsn', 'fsn2', 'constructor'])('%j is not a region', region => {
  expect(isObjectStorageRegion(region)).toBe(false)
})

test.each([',', '/'])(
  'an access key must not contain %j, which separates in the header of a signed request',
  separator => {
    const key = `${'k'.repeat(20)}${separator}`
    expect(accessKeyError(key)).toBe('The access key must not contain "," or "/": check that it is not the secret key.')
    expect(ACCESS_KEY.test(key)).toBe(false)
    expect(secretKeyError(key.repeat(2))).toBeNull()
  },
)

test('the pattern of an access key permits every other printable ASCII character', () => {
  const permitted = Array.from({ length: 0x80 }, (_, code) => String.fromCharCode(code)).filter(character =>
    ACCESS_KEY.test(`${'k'.repeat(8)}${character}${'k'.repeat(8)}`),
  )
  expect(permitted.join('')).toBe(
    '!"#$%&\'()*+-.0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~',
  )
})

describe.each([
  ['access key', accessKeyError, 16, 128],
  ['secret key', secretKeyError, 32, 256],
] as const)('the %s', (name, checkSecret, min, max) => {
  test.each<readonly [rule: string, key: string]>([
    ['the shortest', 'k'.repeat(min)],
    ['the longest', 'k'.repeat(max)],
    ['any printable ASCII', '!~+-.="'.repeat(8)],
    ['a redacted value in it', `${redacted}${'k'.repeat(min)}`],
  ])('good: %s', (_, key) => {
    expect(checkSecret(key)).toBeNull()
  })

  test.each<readonly [rule: string, key: string, expected: RegExp]>([
    ['empty', '', /is required/],
    ['redacted', redacted, /<redacted>: stored records contain no secrets/],
    ['one character too few', 'k'.repeat(min - 1), new RegExp(`at least ${min} `)],
    ['one character too many', 'k'.repeat(max + 1), new RegExp(`at most ${max} `)],
    ['a space inside', `k k${'k'.repeat(min)}`, /without a space/],
    ['a line break inside', `k\nk${'k'.repeat(min)}`, /without a space/],
    ['NUL', `k\0k${'k'.repeat(min)}`, /printable ASCII/],
    ['DEL', `k\x7fk${'k'.repeat(min)}`, /printable ASCII/],
    ['beyond ASCII', `\u212a${'k'.repeat(min)}`, /printable ASCII/],
  ])('rejects: %s', (_, key, expected) => {
    expect(checkSecret(key)).toMatch(expected)
    expect(checkSecret(key)).toMatch(new RegExp(`^The ${name} .*\\.$`))
    expect(checkSecret(key)).not.toContain('kk')
  })
})

import { describe, expect, test } from 'vitest'
import { redacted } from './common.ts'
import {
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

describe.each([
  ['access key', accessKeyError, 16, 128],
  ['secret key', secretKeyError, 32, 256],
] as const)('the %s', (name, checkSecret, min, max) => {
  test.each<readonly [rule: string, key: string]>([
    ['the shortest', 'k'.repeat(min)],
    ['the longest', 'k'.repeat(max)],
    ['any printable ASCII', '!~+/="'.repeat(8)],
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

import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import {
  generation,
  holder,
  lease,
  leaseHistory,
  leaseList,
  leaseListQuery,
  leaseStatusList,
  leaseTransition,
  putLeaseRequest,
  renewLeasesResponse,
  slot,
} from './lease.ts'
import { firstLeaseViolation } from './lease-problem.ts'

const validate = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error && firstLeaseViolation(error).code
}

describe('slot: 1 to 506 bytes of UTF-8', () => {
  test.each<readonly [rule: string, value: unknown, good: boolean]>([
    ['one byte', 'a', true],
    ['506 bytes', 'a'.repeat(506), true],
    ['507 bytes', 'a'.repeat(507), false],
    ['506 bytes in 253 characters', 'ä'.repeat(253), true],
    ['507 bytes in 254 characters', `${'ä'.repeat(253)}a`, false],
    ['empty', '', false],
    ['white space', ' ', true],
    ['any character', '/\0\n?#%\\..', true],
    ['half of a surrogate pair', 'a\uD800', false],
    ['not a string', 5, false],
    ['absent', undefined, false],
  ])('%s', (_, value, good) => {
    expect(slot.safeParse(value).success).toBe(good)
  })
})

describe('holder: 1 to 253 printable ASCII characters without a space at either end', () => {
  test.each<readonly [rule: string, value: unknown, good: boolean]>([
    ['one character', 'a', true],
    ['253 characters', 'a'.repeat(253), true],
    ['254 characters', 'a'.repeat(254), false],
    ['every printable character', Array.from({ length: 93 }, (_, i) => String.fromCharCode(33 + i)).join(''), true],
    ['spaces within', 'region a  controller 0', true],
    ['253 characters with a space within', `a${' '.repeat(251)}b`, true],
    ['254 characters with a space within', `a${' '.repeat(252)}b`, false],
    ['empty', '', false],
    ['a space', ' ', false],
    ['a space in front', ' a', false],
    ['a space behind', 'a ', false],
    ['a tab', 'a\tb', false],
    ['a line break within', 'a\nb', false],
    ['a line break behind', 'a\n', false],
    ['NUL', 'a\0', false],
    ['DEL', 'a\u007F', false],
    ['a letter outside ASCII', 'ä', false],
    ['no-break space', 'a\u00A0b', false],
    ['a number', 5, false],
    ['null', null, false],
    ['absent', undefined, false],
  ])('%s', (_, value, good) => {
    expect(validate(holder, value)).toBe(good ? undefined : 'invalid-holder')
  })
})

describe('generation: a whole number from 0 to 2^53-1', () => {
  test.each<readonly [value: unknown, good: boolean]>([
    [0, true],
    [2 ** 53 - 1, true],
    [2 ** 53, false],
    [-1, false],
    [1.5, false],
    ['1', false],
    [Number.NaN, false],
  ])('%s', (value, good) => {
    expect(generation.safeParse(value).success).toBe(good)
  })
})

describe('the body of a PUT', () => {
  test('every field may be absent', () => {
    expect(putLeaseRequest.parse({})).toEqual({ ttlSeconds: 30, op: 'acquire' })
  })

  test('unknown fields are ignored', () => {
    expect(putLeaseRequest.parse({ holder: 'a', ttlSeconds: 5, op: 'renew', leaseDurationSeconds: 9 })).toEqual({
      holder: 'a',
      ttlSeconds: 5,
      op: 'renew',
    })
  })

  test.each<readonly [rule: string, value: unknown, code: string | undefined]>([
    ['not an object: null', null, 'invalid-json'],
    ['not an object: an array', [], 'invalid-json'],
    ['not an object: a number', 5, 'invalid-json'],
    ['not an object: a text', 'a', 'invalid-json'],
    ['not an object: a boolean', true, 'invalid-json'],
    ['an empty holder', { holder: '' }, 'invalid-holder'],
    ['a holder of null', { holder: null }, 'invalid-holder'],
    ['ttlSeconds 1', { ttlSeconds: 1 }, undefined],
    ['ttlSeconds 86400', { ttlSeconds: 86_400 }, undefined],
    ['ttlSeconds, a fraction', { ttlSeconds: 1.0005 }, undefined],
    ['ttlSeconds below 1', { ttlSeconds: 0.999 }, 'invalid-ttl'],
    ['ttlSeconds 0', { ttlSeconds: 0 }, 'invalid-ttl'],
    ['ttlSeconds below 0', { ttlSeconds: -30 }, 'invalid-ttl'],
    ['ttlSeconds above 86400', { ttlSeconds: 86_400.001 }, 'invalid-ttl'],
    ['ttlSeconds beyond every number', { ttlSeconds: Number.POSITIVE_INFINITY }, 'invalid-ttl'],
    ['ttlSeconds as text', { ttlSeconds: '30' }, 'invalid-ttl'],
    ['ttlSeconds of null', { ttlSeconds: null }, 'invalid-ttl'],
    ['op acquire', { op: 'acquire' }, undefined],
    ['op renew', { op: 'renew' }, undefined],
    ['op release has its own method', { op: 'release' }, 'invalid-op'],
    ['op in capitals', { op: 'ACQUIRE' }, 'invalid-op'],
    ['op empty', { op: '' }, 'invalid-op'],
    ['op of null', { op: null }, 'invalid-op'],
    ['several violations: the holder is reported first', { op: 1, ttlSeconds: 0, holder: 5 }, 'invalid-holder'],
    ['several violations: then the ttl', { op: 1, ttlSeconds: 0 }, 'invalid-ttl'],
  ])('%s', (_, value, code) => {
    expect(validate(putLeaseRequest, value)).toBe(code)
  })
})

const response = {
  holder: 'a',
  acquiredAt: '2026-01-31T12:00:00.000Z',
  expiresAt: '2026-01-31T12:00:30.000Z',
  generation: 1,
}

describe('a lease in a response', () => {
  test.each<readonly [rule: string, value: unknown, good: boolean]>([
    ['held', response, true],
    ['released', { holder: '', acquiredAt: '', expiresAt: '', generation: 2 }, true],
    ['times without milliseconds', { ...response, acquiredAt: '2026-01-31T12:00:00Z' }, false],
    ['times with an offset', { ...response, expiresAt: '2026-01-31T13:00:30.000+01:00' }, false],
    ['without a holder', { ...response, holder: undefined }, false],
    ['without a generation', { ...response, generation: undefined }, false],
  ])('%s', (_, value, good) => {
    expect(lease.safeParse(value).success).toBe(good)
  })
})

describe('the query of a list', () => {
  test('every part may be absent', () => {
    expect(leaseListQuery.parse({})).toEqual({ prefix: '', limit: 1_000 })
  })

  test.each<readonly [rule: string, value: unknown, code: string | undefined]>([
    ['limit 1', { limit: '1' }, undefined],
    ['limit 1000', { limit: '1000' }, undefined],
    ['limit with leading zeros', { limit: '0001' }, undefined],
    ['limit 0', { limit: '0' }, 'invalid-limit'],
    ['limit 1001', { limit: '1001' }, 'invalid-limit'],
    ['limit below 0', { limit: '-1' }, 'invalid-limit'],
    ['limit, a fraction', { limit: '1.5' }, 'invalid-limit'],
    ['limit empty', { limit: '' }, 'invalid-limit'],
    ['limit, a word', { limit: 'all' }, 'invalid-limit'],
    ['limit, a great number', { limit: '9'.repeat(400) }, 'invalid-limit'],
    ['limit in other digits', { limit: '٧' }, 'invalid-limit'],
    ['limit, exponent', { limit: '1e2' }, 'invalid-limit'],
    ['prefix of 506 bytes', { prefix: 'a'.repeat(506) }, undefined],
    ['prefix of 507 bytes', { prefix: 'a'.repeat(507) }, 'invalid-prefix'],
    ['prefix of 507 bytes in 254 characters', { prefix: `${'ä'.repeat(253)}a` }, 'invalid-prefix'],
    ['prefix with half of a surrogate pair', { prefix: '\uD800' }, 'invalid-prefix'],
    ['prefix empty', { prefix: '' }, undefined],
    ['cursor', { cursor: 'AAAA-_=' }, undefined],
    ['cursor of 2,048 characters', { cursor: 'a'.repeat(2_048) }, undefined],
    ['cursor of 2,049 characters', { cursor: 'a'.repeat(2_049) }, 'invalid-cursor'],
    ['cursor empty', { cursor: '' }, 'invalid-cursor'],
    ['cursor with a space', { cursor: 'a b' }, 'invalid-cursor'],
    ['cursor outside ASCII', { cursor: 'ä' }, 'invalid-cursor'],
    [
      'several violations: the prefix is reported first',
      { prefix: 'a'.repeat(507), limit: '0', cursor: '' },
      'invalid-prefix',
    ],
    ['several violations: then the limit', { limit: '0', cursor: '' }, 'invalid-limit'],
  ])('%s', (_, value, code) => {
    expect(validate(leaseListQuery, value)).toBe(code)
  })
})

test('a list is marked as eventually consistent, and every page but the last has a cursor', () => {
  const list = { consistency: 'eventual', detail: 'Late.', leases: [{ ...response, slot: 'a/b' }] }
  expect(leaseList.parse(list)).toEqual(list)
  expect(leaseList.parse({ ...list, nextCursor: 'x' })).toEqual({ ...list, nextCursor: 'x' })
  expect(leaseList.safeParse({ ...list, consistency: 'strong' }).success).toBe(false)
  expect(leaseList.safeParse({ ...list, leases: [response] }).success).toBe(false)
})

test('an exact list has a lease with its waiters, or an error, for each slot', () => {
  const leases = [
    { ...response, slot: 'a/b', remainingMs: 5, waiters: 2 },
    { slot: 'b', error: 'lease-unavailable' },
  ]
  expect(leaseStatusList.parse({ consistency: 'exact', leases })).toEqual({ consistency: 'exact', leases })
  expect(leaseStatusList.safeParse({ consistency: 'exact', leases: [{ ...response, slot: 'a' }] }).success).toBe(false)
  expect(leaseStatusList.safeParse({ consistency: 'eventual', leases }).success).toBe(false)
})

describe('a result of a renewal', () => {
  test.each<readonly [rule: string, value: unknown, good: boolean]>([
    ['renewed', { slot: 'a', status: 200, lease: response, remainingMs: 30_000 }, true],
    ['renewed, without its time', { slot: 'a', status: 200, lease: response }, false],
    ['lost', { slot: 'a', status: 412, conflict: 'held', lease: response, remainingMs: 5 }, true],
    ['released', { slot: 'a', status: 412, conflict: 'generation', lease: response }, true],
    ['lost, without a reason', { slot: 'a', status: 412, lease: response }, false],
    ['unavailable', { slot: 'a', status: 503, error: 'overloaded' }, true],
    ['rejected by a policy', { slot: 'a', status: 403, error: 'unauthorized' }, true],
    ['a bug', { slot: 'a', status: 500, error: 'internal-error' }, true],
    ['another status', { slot: 'a', status: 404, error: 'not-found' }, false],
  ])('%s', (_, value, good) => {
    expect(renewLeasesResponse.safeParse({ results: [value] }).success).toBe(good)
  })
})

describe('a transition', () => {
  const acquired = { generation: 1, at: response.acquiredAt, event: 'acquired', by: 'a', from: '', to: 'a', token: 'x' }
  test.each<readonly [rule: string, value: unknown, good: boolean]>([
    ['acquired', acquired, true],
    ['released', { ...acquired, event: 'released', from: 'a', to: '' }, true],
    ['adopted, without a client', { ...acquired, event: 'adopted', by: '' }, true],
    ['renewed is not a transition', { ...acquired, event: 'renewed' }, false],
    ['without a time', { ...acquired, at: '' }, false],
  ])('%s', (_, value, good) => {
    expect(leaseTransition.safeParse(value).success).toBe(good)
    expect(leaseHistory.safeParse({ slot: 'a/b', transitions: [value] }).success).toBe(good)
  })
})

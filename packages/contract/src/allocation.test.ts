import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import {
  allocation,
  createCommitRequest,
  createUpdateRequest,
  encodeCursor,
  historyQuery,
  limit,
  listQuery,
  releaseRequest,
  reserveRequest,
} from './allocation.ts'
import { firstViolation } from './allocation-problem.ts'

const commitRequest = createCommitRequest({ acceptsLoopback: false })

const validate = (schema: z.ZodType, value: unknown): string => {
  const result = schema.safeParse(value)
  return result.success ? 'good' : firstViolation(result.error).code
}
const parseCreatedBy = (createdBy: unknown): unknown => {
  const result = reserveRequest.safeParse({ subdomain: 'acme', createdBy })
  return result.success ? result.data.createdBy : firstViolation(result.error).code
}

describe('createdBy', () => {
  test.each<readonly [rule: string, given: unknown, expected: string]>([
    ['missing is empty', undefined, ''],
    ['null is empty', null, ''],
    ['empty', '', ''],
    ['text is unchanged, including white space and case', ' Team A ', ' Team A '],
    ['253 characters', 'a'.repeat(253), 'a'.repeat(253)],
    ['253 characters of two code units each', '\u{1f600}'.repeat(253), '\u{1f600}'.repeat(253)],
    ['NBSP', 'a\u00a0b', 'a\u00a0b'],
    ['any script', 'Žofie 山田', 'Žofie 山田'],
  ])('good: %s', (_, given, expected) => {
    expect(parseCreatedBy(given)).toBe(expected)
  })

  test.each<readonly [rule: string, given: unknown]>([
    ['254 characters', 'a'.repeat(254)],
    ['254 characters of two code units each', '\u{1f600}'.repeat(254)],
    ['NUL', 'a\u0000'],
    ['a line break', 'a\nb'],
    ['a tab', 'a\tb'],
    ['DEL', 'a\u007f'],
    ['a C1 control character', 'a\u009b'],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udc00a'],
    ['surrogates in the wrong order', '\ude00\ud83d'],
    ['a number', 5],
    ['false', false],
    ['a list', []],
    ['an object', {}],
  ])('invalid-format: %s', (_, given) => {
    expect(parseCreatedBy(given)).toBe('invalid-format')
  })
})

describe('limit', () => {
  test.each([
    ['1', 1],
    ['007', 7],
    ['1000', 1_000],
    ['1001', 1_000],
    ['2147483647', 1_000],
  ])('good: %s', (given, number) => {
    expect(limit.parse(given)).toBe(number)
  })

  test.each<readonly [given: unknown]>([
    [''],
    ['0'],
    ['00'],
    ['-1'],
    ['+1'],
    ['1.0'],
    ['1e3'],
    ['0x10'],
    [' 1'],
    ['1\n'],
    ['1_000'],
    ['\u0661'],
    ['all'],
    ['NaN'],
    ['Infinity'],
    ['2147483648'],
    ['99999999999'],
  ])('invalid-limit: %j', given => {
    expect(validate(limit, given)).toBe('invalid-limit')
  })
})

describe('cursor', () => {
  test.each(['a', 'ab', 'abc', 'abcd', 'a-9', 'z'.repeat(63), 'a--b---c', 'q0-'.repeat(20)])(
    'of a list encodes its subdomain with letters and digits: %s',
    position => {
      const cursor = encodeCursor(position)
      expect(cursor).toMatch(/^[A-Za-z0-9]+$/)
      expect(listQuery.parse({ cursor })).toEqual({ cursor: position })
    },
  )

  test.each(['1', '12', '123', '9007199254740991'])('of a history encodes its entry: %s', position => {
    expect(historyQuery.parse({ cursor: encodeCursor(position) })).toEqual({ cursor: position })
  })

  test.each([
    ['empty', ''],
    ['one character', 'a'],
    ['not base64', '!!!!'],
    ['with padding', 'YQ=='],
    ['white space', 'YW Jj'],
    ['five characters', 'YWJjZ'],
    ['beyond ASCII', 'YWJ\u212a'],
  ])('invalid-cursor: %s', (_, cursor) => {
    expect(validate(listQuery, { cursor })).toBe('invalid-cursor')
    expect(validate(historyQuery, { cursor })).toBe('invalid-cursor')
  })

  test.each([
    ['of a history', '12'],
    ['of no label', 'A'],
    ['of a name that is too long', 'a'.repeat(64)],
    ['of SQL', "a' or 'a'='a"],
    ['of NUL', 'a\u0000'],
    ['of a line break', 'a\n'],
  ])('invalid-cursor for a list: one %s', (_, position) => {
    expect(validate(listQuery, { cursor: encodeCursor(position) })).toBe('invalid-cursor')
  })

  test.each([
    ['of a list', 'acme'],
    ['of zero', '0'],
    ['of a negative number', '-1'],
    ['of more than the database counts', '1'.repeat(17)],
    ['of a fraction', '1.5'],
  ])('invalid-cursor for a history: one %s', (_, position) => {
    expect(validate(historyQuery, { cursor: encodeCursor(position) })).toBe('invalid-cursor')
  })
})

describe('state', () => {
  test.each(['reserved', 'active'])('good: %s', state => {
    expect(listQuery.parse({ state })).toEqual({ state })
  })
  test.each(['', 'none', 'Reserved', 'active '])('invalid-state: %j', state => {
    expect(validate(listQuery, { state })).toBe('invalid-state')
  })
})

describe('the violations of a commit are reported in the order of the contract', () => {
  const good = { subdomain: 'acme', reservationToken: 'x', loadBalancerIP: '10.0.0.1', sovereignFQDN: 'a.example' }
  test.each<readonly [code: string, body: unknown]>([
    ['invalid-format', undefined],
    ['invalid-format', []],
    ['invalid-format', {}],
    ['invalid-format', { ...good, subdomain: '-', reservationToken: '', loadBalancerIP: '', sovereignFQDN: '' }],
    ['missing-token', { ...good, reservationToken: '', loadBalancerIP: '', sovereignFQDN: '' }],
    ['missing-token', { ...good, reservationToken: null }],
    ['missing-lb-ip', { ...good, loadBalancerIP: undefined, sovereignFQDN: '' }],
    ['missing-lb-ip', { ...good, loadBalancerIP: null }],
    ['invalid-lb-ip', { ...good, loadBalancerIP: 'x', sovereignFQDN: '' }],
    ['invalid-fqdn', { ...good, sovereignFQDN: '' }],
    ['good', { ...good, unknown: {} }],
  ])('%s for %j', (code, body) => {
    expect(validate(commitRequest, body)).toBe(code)
  })
})

test('a release accepts any text as a token and treats null as absent', () => {
  const read = (reservationToken: unknown) => releaseRequest.safeParse({ subdomain: 'acme', reservationToken })
  expect(read('no uuid').data).toEqual({ subdomain: 'acme', reservationToken: 'no uuid' })
  expect(read(null).data?.reservationToken).toBeUndefined()
  expect(validate(releaseRequest, { subdomain: 'acme', reservationToken: 5 })).toBe('token-mismatch')
})

test('the former token of a reservation is any text, or absent', () => {
  const read = (reservationToken: unknown) => reserveRequest.safeParse({ subdomain: 'acme', reservationToken })
  expect(read('no uuid').data?.reservationToken).toBe('no uuid')
  expect(read(null).data?.reservationToken).toBeUndefined()
  expect(validate(reserveRequest, { subdomain: 'acme', reservationToken: 5 })).toBe('invalid-format')
})

describe('updateRequest, in the order of its rules', () => {
  const update = createUpdateRequest({ acceptsLoopback: false }, false)
  const byOperator = createUpdateRequest({ acceptsLoopback: false }, true)
  const good = {
    subdomain: 'acme',
    reservationToken: 't',
    loadBalancerIP: '203.0.113.10',
    sovereignFQDN: 'acme.pool.test',
  }
  const bad = { subdomain: '-', reservationToken: undefined, loadBalancerIP: '169.254.1.1', sovereignFQDN: '-' }
  test.each<readonly [code: string, body: unknown]>([
    ['good', good],
    ['good', { subdomain: 'acme', reservationToken: 't' }],
    ['good', { ...good, loadBalancerIP: null, sovereignFQDN: null }],
    ['invalid-format', null],
    ['invalid-format', { ...bad }],
    ['missing-token', { ...bad, subdomain: 'acme' }],
    ['missing-token', { ...good, reservationToken: null }],
    ['invalid-lb-ip', { ...bad, subdomain: 'acme', reservationToken: 't' }],
    ['invalid-lb-ip', { ...good, loadBalancerIP: '127.0.0.1' }],
    ['invalid-fqdn', { ...bad, subdomain: 'acme', reservationToken: 't', loadBalancerIP: '203.0.113.10' }],
  ])('%s for %j', (code, body) => {
    expect(validate(update, body)).toBe(code)
  })

  test('an operator may omit the token', () => {
    expect(validate(byOperator, { ...good, reservationToken: undefined })).toBe('good')
    expect(validate(byOperator, { ...good, reservationToken: null })).toBe('good')
    expect(validate(byOperator, { ...good, reservationToken: '' })).toBe('missing-token')
  })
})

describe('an allocation in a response', () => {
  const common = { poolDomain: 'pool.test', subdomain: 'acme', reservedAt: '2026-01-31T12:00:00.000Z', createdBy: '' }
  const reserved = { ...common, state: 'reserved', expiresAt: '2026-01-31T12:10:00.000Z' }
  const active = {
    ...common,
    state: 'active',
    sovereignFQDN: 'acme.pool.test',
    loadBalancerIP: '10.0.0.1',
    committedAt: '2026-01-31T12:05:00.000Z',
    dns: { status: 'published' },
  }
  test.each<readonly [rule: string, good: boolean, value: unknown]>([
    ['reserved', true, reserved],
    ['active', true, active],
    ['a reservation has an expiry', false, { ...reserved, expiresAt: undefined }],
    ['an active name has the status of its records', false, { ...active, dns: undefined }],
    ['the state of records is one of three', false, { ...active, dns: { status: 'unknown' } }],
    ['a time is in UTC', false, { ...reserved, expiresAt: '2026-01-31T12:10:00.000+01:00' }],
    ['a time has milliseconds', false, { ...reserved, expiresAt: '2026-01-31T12:10:00Z' }],
    ['other states are rejected', false, { ...reserved, state: 'expired' }],
  ])('%s', (_, good, value) => {
    expect(allocation.safeParse(value).success).toBe(good)
  })

  test('it never contains a token', () => {
    expect(allocation.parse({ ...reserved, reservationToken: 'x' })).toEqual(reserved)
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  canActAs,
  canList,
  canRead,
  canWrite,
  findPolicy,
  type Grant,
  isExpired,
  parseTokenPolicies,
  type TokenPolicy,
  toFingerprint,
} from './token-policies.ts'

const DIGEST = 'a1b2c3d4'.repeat(8)
const OTHER_DIGEST = '00ff'.repeat(16)
const minimal = { name: 'region-a', token: `sha256:${DIGEST}`, access: 'write' }
const policy: TokenPolicy = {
  name: 'region-a',
  digest: DIGEST,
  access: 'write',
  slots: undefined,
  holders: undefined,
  expiresAt: undefined,
  maxRequestsPerMinute: undefined,
}

describe('TOKEN_POLICIES', () => {
  test.each([undefined, '', ' \n'])('%j: no policies', text => {
    expect(parseTokenPolicies(text)).toEqual({ policies: [], errors: [] })
  })

  test.each<readonly [rule: string, entry: object, parsed: Partial<TokenPolicy>]>([
    ['only the required fields', {}, {}],
    ['read access', { access: 'read' }, { access: 'read' }],
    ['slot prefixes', { slots: ['eu/', 'é'] }, { slots: ['eu/', 'é'] }],
    ['holders', { holders: ['region-a/0', 'b*', '*'] }, { holders: ['region-a/0', 'b*', '*'] }],
    ['an expiry in UTC', { expiresAt: '2027-01-31T00:00:00Z' }, { expiresAt: Date.UTC(2027, 0, 31) }],
    [
      'an expiry with an offset',
      { expiresAt: '2027-01-31t02:00:00.5+02:00' },
      { expiresAt: Date.UTC(2027, 0, 31) + 500 },
    ],
    ['a request limit', { maxRequestsPerMinute: 600 }, { maxRequestsPerMinute: 600 }],
  ])('%s', (_, entry, parsed) => {
    const text = JSON.stringify([{ ...minimal, ...entry }])
    expect(parseTokenPolicies(text)).toEqual({ policies: [{ ...policy, ...parsed }], errors: [] })
  })

  test.each<readonly [rule: string, entry: unknown, error: string]>([
    ['no name', { ...minimal, name: undefined }, 'name must be'],
    ['a name like a fingerprint', { ...minimal, name: 'sha256:a1b2c3d4' }, 'name must be'],
    ['no token', { ...minimal, token: undefined }, 'token must be'],
    ['a token in plain text', { ...minimal, token: 'plain-text-token' }, 'token must be'],
    ['a digest in upper case', { ...minimal, token: `sha256:${DIGEST.toUpperCase()}` }, 'token must be'],
    ['no access', { ...minimal, access: undefined }, 'access must be'],
    ['another access', { ...minimal, access: 'admin' }, 'access must be'],
    ['no slots', { ...minimal, slots: [] }, 'slots must be'],
    ['an empty prefix', { ...minimal, slots: [''] }, 'slots must be'],
    ['a prefix longer than a slot', { ...minimal, slots: ['x'.repeat(507)] }, 'slots must be'],
    ['null for all slots', { ...minimal, slots: null }, 'slots must be'],
    ['no holders', { ...minimal, holders: [] }, 'holders must be'],
    ['a holder that cannot exist', { ...minimal, holders: [' a'] }, 'holders must be'],
    ['an expiry without an offset', { ...minimal, expiresAt: '2027-01-31T00:00:00' }, 'expiresAt must be'],
    ['an impossible expiry', { ...minimal, expiresAt: '2027-13-01T00:00:00Z' }, 'expiresAt must be'],
    ['a limit of 0', { ...minimal, maxRequestsPerMinute: 0 }, 'maxRequestsPerMinute must be'],
    ['a misspelled field', { ...minimal, slot: ['eu/'] }, 'it has an unknown field'],
    ['a string', 'region-a', 'it must be an object'],
    ['a list', [], 'it must be an object'],
  ])('%s: an error, and no rights', (_, entry, error) => {
    const other = { ...minimal, name: 'other', token: `sha256:${OTHER_DIGEST}` }
    const { policies, errors } = parseTokenPolicies(JSON.stringify([other, entry]))
    expect(policies.map(({ name }) => name)).toEqual(['other'])
    expect(errors.length).toBeGreaterThan(0)
    expect(errors[0]).toContain(`policy 2: ${error}`)
    expect(errors.join()).not.toContain('plain-text-token')
  })

  test.each(['{}', 'null', '"x"', '[', 'plain-text-token'])('%s is not a list of policies', text => {
    expect(parseTokenPolicies(text)).toEqual({
      policies: [],
      errors: ['must be a JSON array of policies'],
    })
  })

  test('of two policies with one name or one token, the first is valid', () => {
    const sameName = { ...minimal, token: `sha256:${OTHER_DIGEST}` }
    const sameToken = { ...minimal, name: 'other' }
    const { policies, errors } = parseTokenPolicies(JSON.stringify([minimal, sameName, sameToken]))
    expect(policies).toEqual([policy])
    expect(errors).toEqual([
      'policy 2: it has the name of an earlier policy',
      'policy 3: it has the token of an earlier policy',
    ])
  })
})

describe('the policy of a token', () => {
  const policies = [policy, { ...policy, name: 'other', digest: OTHER_DIGEST }]

  test.each([
    [DIGEST, 'region-a'],
    [OTHER_DIGEST, 'other'],
    [`${DIGEST.slice(0, 63)}0`, undefined],
    [DIGEST.slice(0, 63), undefined],
    [`${DIGEST}0`, undefined],
    ['', undefined],
  ])('%s', (digest, name) => {
    expect(findPolicy(policies, digest)?.name).toBe(name)
  })

  test('expires with its first millisecond', () => {
    const expiring = { ...policy, expiresAt: 1_000 }
    expect([999, 1_000, 1_001].map(now => isExpired(expiring, now))).toEqual([false, true, true])
    expect(isExpired(policy, Number.MAX_SAFE_INTEGER)).toBe(false)
  })

  test('a fingerprint has 32 bits of the digest', () => {
    expect(toFingerprint(DIGEST)).toBe('sha256:a1b2c3d4')
  })
})

describe('what a token may do', () => {
  const readEu: Grant = { ...policy, access: 'read', slots: ['eu/'] }
  const writeEu: Grant = { ...policy, slots: ['eu/', 'us/west'] }

  test.each<readonly [slot: string, isInside: boolean]>([
    ['eu/a', true],
    ['eu/', true],
    ['eu/../us/a', true],
    ['us/west', true],
    ['eu', false],
    ['EU/a', false],
    ['/eu/a', false],
    ['eu%2Fa', false],
    ['ｅu/a', false],
    ['', false],
  ])('slot %j with the prefixes eu/ and us/west: %j', (slot, isInside) => {
    expect(canRead(writeEu, slot)).toBe(isInside)
    expect(canWrite(writeEu, slot)).toBe(isInside)
    expect(canList(writeEu, slot)).toBe(isInside)
    expect(canRead(readEu, slot)).toBe(isInside && slot.startsWith('eu/'))
    expect(canWrite(readEu, slot)).toBe(false)
    expect([canRead(policy, slot), canWrite(policy, slot), canRead('full', slot), canWrite('full', slot)]).toEqual(
      Array(4).fill(true),
    )
  })

  test.each<readonly [holders: readonly string[] | undefined, holder: string, isAllowed: boolean]>([
    [undefined, 'region-a', true],
    [['region-a'], 'region-a', true],
    [['region-a'], 'region-a/0', false],
    [['region-a'], 'region-b', false],
    [['region-a'], 'Region-a', false],
    [['region-a/*'], 'region-a/0', true],
    [['region-a/*'], 'region-a', false],
    [['region-a/*'], 'region-b/region-a/0', false],
    [['*'], 'region-a', true],
    [['re*ion'], 'region', false],
    [['re*ion'], 're*ion', true],
  ])('as one of %j: %s %j', (holders, holder, isAllowed) => {
    expect(canActAs({ ...policy, holders }, holder)).toBe(isAllowed)
    expect(canActAs('full', holder)).toBe(true)
  })

  test('a token that may list a prefix may read every slot in it', () => {
    const text = fc.string({ maxLength: 6, unit: fc.constantFrom('a', '/', '%', '2', 'F') })
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), text, text, (slots, prefix, rest) => {
        const grant = { ...policy, slots }
        expect(!canList(grant, prefix) || canRead(grant, prefix + rest)).toBe(true)
      }),
    )
  })
})

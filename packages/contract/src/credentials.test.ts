import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { firstViolation } from './allocation-problem.ts'
import { validateKeysRequest, validateTokenRequest, validationProblem } from './credentials.ts'

const access = 'AKIA0123456789AB'
const secret = '0123456789abcdefghijABCDEFGHIJ+/'
const good = { region: 'fsn1', accessKey: access, secretKey: secret }
const keys = validateKeysRequest('hetzner')
const tokens = validateTokenRequest(['hetzner', 'other'])

const validate = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error ? firstViolation(error) : null
}

type Row = readonly [rule: string, value: unknown, code: string, detail: RegExp]

describe('valid keys', () => {
  test.each<readonly [rule: string, value: object, expected: object]>([
    ['as they are', good, good],
    [
      'white space around each',
      { region: ' nbg1\n', accessKey: `\t${access} `, secretKey: `\u00a0${secret}\r\n` },
      { region: 'nbg1', accessKey: access, secretKey: secret },
    ],
    ['the shortest', { ...good, region: 'hel1' }, { ...good, region: 'hel1' }],
    [
      'the longest',
      { ...good, accessKey: 'a'.repeat(128), secretKey: 'b'.repeat(256) },
      { ...good, accessKey: 'a'.repeat(128), secretKey: 'b'.repeat(256) },
    ],
    ['the provider', { ...good, provider: ' Hetzner' }, { ...good, provider: 'hetzner' }],
    ['a provider that is null', { ...good, provider: null }, { ...good, provider: undefined }],
    ['an unknown field', { ...good, bucket: 'x' }, good],
  ])('%s', (_, value, expected) => expect(keys.parse(value)).toEqual(expected))
})

describe('invalid keys: the violation that is reported first', () => {
  test.each<Row>([
    ['not an object', null, 'missing-region', /region/],
    ['a list', [good], 'missing-region', /region/],
    ['nothing', {}, 'missing-region', /region/],
    ['no region', { ...good, region: undefined }, 'missing-region', /region.*fsn1, nbg1, hel1/],
    ['a region that is null', { ...good, region: null }, 'missing-region', /region/],
    ['a blank region', { ...good, region: ' ' }, 'missing-region', /region/],
    ['region comes before keys', { accessKey: 'x', secretKey: 'x', region: 'x' }, 'invalid-region', /fsn1, nbg1, hel1/],
    ['a region in capitals', { ...good, region: 'FSN1' }, 'invalid-region', /fsn1, nbg1, hel1/],
    ['a region that is a number', { ...good, region: 5 }, 'invalid-region', /fsn1/],
    ['a region that is a list', { ...good, region: ['fsn1'] }, 'invalid-region', /fsn1/],
    ['a region followed by a host', { ...good, region: 'fsn1.evil.test/' }, 'invalid-region', /fsn1/],
    ['a region as a user', { ...good, region: 'fsn1@x' }, 'invalid-region', /fsn1/],
    ['a region with a port', { ...good, region: 'fsn1:80' }, 'invalid-region', /fsn1/],
    ['a region with a query', { ...good, region: 'fsn1?' }, 'invalid-region', /fsn1/],
    ['a region in full-width letters', { ...good, region: '\uff46sn1' }, 'invalid-region', /fsn1/],
    ['a region with a zero-width space', { ...good, region: 'fsn1\u200b' }, 'invalid-region', /fsn1/],
    ['a region that is a property of every object', { ...good, region: '__proto__' }, 'invalid-region', /fsn1/],
    ['no access key', { ...good, accessKey: undefined, secretKey: 'x' }, 'invalid-access-key', /access key/],
    ['an empty access key', { ...good, accessKey: ' ' }, 'invalid-access-key', /access key.*required/],
    ['15 characters', { ...good, accessKey: ` ${access.slice(1)} ` }, 'invalid-access-key', /access key.*16/],
    ['129 characters', { ...good, accessKey: 'a'.repeat(129) }, 'invalid-access-key', /access key.*128/],
    ['a space in the access key', { ...good, accessKey: `${access} b` }, 'invalid-access-key', /access key.*ASCII/],
    ['a line break in it', { ...good, accessKey: `${access}\r\nX: y` }, 'invalid-access-key', /access key.*ASCII/],
    ['a letter that is not ASCII', { ...good, accessKey: `${access}é` }, 'invalid-access-key', /access key.*ASCII/],
    [
      'a slash, as in many secret keys',
      { ...good, accessKey: `${access}/b` },
      'invalid-access-key',
      /access key.*"\/"/,
    ],
    ['a comma in it', { ...good, accessKey: `${access},b` }, 'invalid-access-key', /access key.*","/],
    ['an access key that is a number', { ...good, accessKey: 1e20 }, 'invalid-access-key', /access key/],
    ['a redacted access key', { ...good, accessKey: ' <redacted> ' }, 'invalid-access-key', /access key.*<redacted>/],
    ['no secret key', { ...good, secretKey: undefined }, 'invalid-secret-key', /secret key/],
    ['31 characters', { ...good, secretKey: secret.slice(1) }, 'invalid-secret-key', /secret key.*32/],
    ['257 characters', { ...good, secretKey: 'a'.repeat(257) }, 'invalid-secret-key', /secret key.*256/],
    ['NUL in the secret key', { ...good, secretKey: `${secret}\0` }, 'invalid-secret-key', /secret key.*ASCII/],
    ['a redacted secret key', { ...good, secretKey: '<redacted>' }, 'invalid-secret-key', /secret key.*<redacted>/],
    ['another provider', { ...good, provider: 'aws' }, 'unsupported-provider', /hetzner/],
    ['a provider that is a number', { ...good, provider: 1 }, 'unsupported-provider', /hetzner/],
    ['KELVIN SIGN is not k', { ...good, provider: '\u212a' }, 'unsupported-provider', /hetzner/],
  ])('%s', (_, value, code, detail) => {
    const violation = validate(keys, value)
    expect(violation).toEqual({ code, detail: expect.stringMatching(detail) })
    expect(violation?.detail).toMatch(/^[A-Za-z].*\.$/)
  })
})

test('no violation quotes the request', () => {
  const sent = { region: 'mark1', accessKey: 'mark2 x'.repeat(5), secretKey: 'mark3 x'.repeat(9), provider: 'mark4' }
  const values = [
    sent,
    { ...sent, region: 'fsn1' },
    { ...sent, ...good, secretKey: sent.secretKey },
    { ...good, provider: 'mark4' },
  ]
  const violations = values.map(value => validate(keys, value))
  expect(violations.map(violation => violation?.code)).toEqual([
    'invalid-region',
    'invalid-access-key',
    'invalid-secret-key',
    'unsupported-provider',
  ])
  expect(JSON.stringify([...violations, validate(tokens, { provider: 'other', token: 'mark x' })])).not.toContain(
    'mark',
  )
})

describe('a token', () => {
  test('is trimmed, and its provider is lower-cased', () => {
    expect(tokens.parse({ provider: ' OTHER ', token: ' t0ken~\n' })).toEqual({ provider: 'other', token: 't0ken~' })
  })

  test.each<Row>([
    ['not an object', 'x', 'unsupported-provider', /provider and token/],
    ['no provider', { token: 't' }, 'unsupported-provider', /hetzner, other/],
    ['an unknown provider', { provider: 'aws', token: 't' }, 'unsupported-provider', /hetzner, other/],
    ['provider comes before token', { provider: 'aws' }, 'unsupported-provider', /hetzner, other/],
    [
      'a provider that is a property of every object',
      { provider: 'constructor', token: 't' },
      'unsupported-provider',
      /hetzner/,
    ],
    ['no token', { provider: 'other' }, 'invalid-token', /token is required/],
    ['a blank token', { provider: 'other', token: ' ' }, 'invalid-token', /token is required/],
    ['a token of two words', { provider: 'other', token: 'a b' }, 'invalid-token', /ASCII/],
    ['a redacted token', { provider: 'other', token: '<redacted>' }, 'invalid-token', /<redacted>/],
    ['4097 characters', { provider: 'other', token: 'a'.repeat(4_097) }, 'invalid-token', /4096/],
  ])('%s', (_, value, code, detail) => {
    expect(validate(tokens, value)).toEqual({ code, detail: expect.stringMatching(detail) })
  })
})

test.each([
  ['both shapes', true, { error: 'invalid-region', detail: 'D.', valid: false, message: 'D.' }],
  ['valid', false, { error: 'invalid-region', detail: 'D.', valid: true, message: 'D.' }],
  ['without valid and message', false, { error: 'invalid-region', detail: 'D.' }],
  ['without error and detail', false, { valid: false, message: 'D.' }],
])('an error body of a check: %s', (_, isGood, body) => {
  expect(validationProblem.safeParse(body).success).toBe(isGood)
})

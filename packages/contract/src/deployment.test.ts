import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { deploymentProblem, firstViolation } from './allocation-problem.ts'
import {
  canonicalSshKey,
  deploymentCommon,
  deploymentDomain,
  deploymentRequest,
  deploymentStorage,
  firstFaultPerField,
  lastEventId,
  sshKeyError,
  toFieldFaults,
} from './deployment.ts'

const ed25519 = 'AAAAC3NzaC1lZDI1NTE5AAAAINwTop1nq0vv8Z/QQjBQ7vXrsRwYA/bTkh9KFLQaYWKx'
const rsa1024 =
  'AAAAB3NzaC1yc2EAAAADAQABAAAAgQDGZe/i7XdI5imwTXzRTX1rJreBWeKHVOYT3xfrXEQ5YBrKAGc2ul0KeJXJpGZoyzl3Jub+CPT8j2gmam0CwjhJN3PwTE8u4rmRxvuzBz9FjejtWGVapYvcRwz0WE71CQ4vQBD/rEGdm/yVqNGHjwxq+0FhKVGq066/bl7bZTibXQ=='

type Octets = readonly number[]
const octets = (text: string): Octets => [...text].map(letter => letter.charCodeAt(0))
const many = (length: number, value = 7): Octets => Array.from({ length }, () => value)
/** The wire form of fields, in base64. */
const wire = (...fields: readonly (string | Octets)[]): string => {
  const all = fields.map(field => (typeof field === 'string' ? octets(field) : field))
  const framed = all.flatMap(field => [0, 0, field.length >> 8, field.length & 255, ...field])
  return btoa(String.fromCharCode(...framed))
}
const line = (type: string, ...fields: readonly (string | Octets)[]) => `${type} ${wire(type, ...fields)}`
const point = (length: number, form = 4): Octets => [form, ...many(length - 1)]
const exponent = [1, 0, 1]
const modulus = (bytes: number, first = 0xc1): Octets => [0, first, ...many(bytes - 1)]

describe('accepts keys that ssh-keygen created', () => {
  test.each([
    ['Ed25519', `ssh-ed25519 ${ed25519} ops@acme.example`],
    [
      'ECDSA P-256',
      'ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKk070sQreCzORMUa3+WlUX1cxIUBEExbT0XrS6+on/mCvciLqfkSzLZcCnx7kZRL5aa30tXqgNrKFpsKSg9ht8=',
    ],
    [
      'ECDSA P-384',
      'ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBCH1Dm/YCY5qU6rmL8JULtje7+dqgLbJ3FxkOYt+77kN/v5odyWASrZZQ//XpvdugDh5N5g7PPG1xrTcieAWYqGK6iK49wyB0SRklMkXxoVkJywqdfX91xiAZMwDnaevHg==',
    ],
    [
      'ECDSA P-521',
      'ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAC2sz5Yy9KHSQsSDMOmSu3xYXeoLQgq37HvuDjAvlYymOMS4iPb07EgCOvPzjq0Jcw/cA+3PG36kT6hlMQwFvRL6AFKLhlJ07tnJuYoCzPaRHBey6mmHWQ62+7tew6pPGl+o/0wVNFir+SvUbEeg645Lm2TbqGuVJxh7xpwmRkYG1tnHQ==',
    ],
    [
      'RSA 2048',
      'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDrF88STy7NBIeOn1F53i/k5wXPHmj5LqbftplQLO9lew5/2NZk92KP3zAWdce/5AgC/BX6xxAHvaWrG4Zuk68IVear3G+gWnY0//VnT3qI3c1vvg7vooSkJCvBaoPwCQgA+KccW5O7aMNPHpp8WI2Kq6b2UqjX187G7io+y7dTwhzNAi8rIj9XSdsTNoxvfjXf44EmL2zu+Rn1EIGOjrfjCSgZFa5aKL8u1QDR4bNykz50XYIuV0u8i86sajjrwGJKHjE34PByis1OUHwldLfx9izdPDHWvASyOn+kIF06eL3snERytq0EhiRk/RCQzOsuWUklrNe2srHPq/5MC581',
    ],
  ])('%s', (_, key) => {
    expect(sshKeyError(key)).toBeNull()
    expect(canonicalSshKey(key)).toBe(key)
  })
})

describe('accepts other valid keys', () => {
  test.each<readonly [rule: string, key: string]>([
    ['security key, Ed25519', line('sk-ssh-ed25519@openssh.com', many(32), 'ssh:')],
    ['security key, ECDSA', line('sk-ecdsa-sha2-nistp256@openssh.com', 'nistp256', point(65), 'ssh:')],
    ['RSA of 2048 bits, the minimum', line('ssh-rsa', exponent, modulus(256, 0x80))],
    ['RSA of 16384 bits, the maximum', line('ssh-rsa', exponent, modulus(2_048))],
    ['a modulus whose first octet needs no zero before it', line('ssh-rsa', exponent, [0x7f, ...many(256)])],
    ['a comment with spaces and any script', `ssh-ed25519 ${ed25519} Žofie  at 山田`],
  ])('%s', (_, key) => {
    expect(sshKeyError(key)).toBeNull()
  })
})

test.each([
  ['space and line break around it', ` ssh-ed25519 ${ed25519}\n`, `ssh-ed25519 ${ed25519}`],
  ['several spaces and tabs between', `ssh-ed25519\t  ${ed25519} \t a  b `, `ssh-ed25519 ${ed25519} a  b`],
  ['not a key', ' hello ', 'hello'],
])('canonical form on one line: %s', (_, given, expected) => {
  expect(canonicalSshKey(given)).toBe(expected)
})

describe('rejects invalid keys with a reason', () => {
  test.each<readonly [rule: string, key: string, expected: RegExp]>([
    ['nothing', '', /is required/],
    ['one word', 'ssh-ed25519', /is required/],
    ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n', /private key/],
    ['DSA', line('ssh-dss', many(9)), /DSA/],
    ['an unknown type', line('ssh-rot13', many(32)), /must begin with its type/],
    ['a certificate', line('ssh-ed25519-cert-v01@openssh.com', many(32)), /must begin with its type/],
    ['options before the type', `command="x" ssh-ed25519 ${ed25519}`, /must begin with its type/],
    ['a type in capitals', `SSH-ED25519 ${ed25519}`, /must begin with its type/],
    ['two keys', `ssh-ed25519 ${ed25519}\nssh-ed25519 ${ed25519}`, /is required/],
    ['two keys with comments', `ssh-ed25519 ${ed25519} a\nssh-ed25519 ${ed25519} b`, /one line/],
    ['a base64 over two lines', `ssh-ed25519 ${ed25519.slice(0, 20)}\n${ed25519.slice(20)}`, /is required/],
    ['another type inside', `ssh-rsa ${ed25519}`, /damaged.*ssh-rsa/],
    ['not base64', 'ssh-ed25519 !!!!', /damaged/],
    ['base64 of another alphabet', `ssh-ed25519 ${ed25519.replaceAll('/', '_')}`, /damaged/],
    ['base64 that is cut off', `ssh-ed25519 ${ed25519.slice(0, -4)}`, /damaged/],
    ['base64 without its padding', `ssh-rsa ${rsa1024.slice(0, -2)}`, /damaged/],
    ['bits left over in the last letter', `ssh-rsa ${rsa1024.replace('XQ==', 'XR==')}`, /damaged/],
    ['an octet behind it', `ssh-ed25519 ${btoa(`${atob(ed25519)}\0`)}`, /damaged/],
    ['a field behind it', line('ssh-ed25519', many(32), many(1)), /damaged/],
    ['Ed25519 of 31 octets', line('ssh-ed25519', many(31)), /damaged/],
    ['Ed25519 of none', line('ssh-ed25519'), /damaged/],
    ['a length beyond the end', `ssh-ed25519 ${btoa('\xff\xff\xff\xffssh')}`, /damaged/],
    ['a length that is cut off', `ssh-ed25519 ${btoa('\0\0\0')}`, /damaged/],
    [
      'a last field that is cut off',
      `sk-ssh-ed25519@openssh.com ${btoa(atob(wire('sk-ssh-ed25519@openssh.com', many(32), 'ssh:')).slice(0, -1))}`,
      /damaged/,
    ],
    ['another curve', line('ecdsa-sha2-nistp256', 'nistp384', point(65)), /damaged/],
    ['a point of another length', line('ecdsa-sha2-nistp256', 'nistp256', point(97)), /damaged/],
    ['a compressed point', line('ecdsa-sha2-nistp256', 'nistp256', point(65, 2)), /damaged/],
    ['a security key without application', line('sk-ssh-ed25519@openssh.com', many(32)), /damaged/],
    ['a security key with an empty application', line('sk-ssh-ed25519@openssh.com', many(32), ''), /damaged/],
    ['RSA of 1024 bits', `ssh-rsa ${rsa1024}`, /RSA key of 1024 bits/],
    ['RSA of 2047 bits', line('ssh-rsa', exponent, [0x7f, ...many(255)]), /RSA key of 2047 bits/],
    ['RSA of more than 16384 bits', line('ssh-rsa', exponent, modulus(2_049, 1)), /damaged/],
    ['a negative modulus', line('ssh-rsa', exponent, [0xc1, ...many(255)]), /damaged/],
    ['a modulus with a zero too many', line('ssh-rsa', exponent, [0, 0x7f, ...many(256)]), /damaged/],
    ['an even modulus', line('ssh-rsa', exponent, [...modulus(255), 6]), /damaged/],
    ['an exponent of one', line('ssh-rsa', [1], modulus(256)), /damaged/],
    ['an even exponent', line('ssh-rsa', [4], modulus(256)), /damaged/],
    ['an exponent of nothing', line('ssh-rsa', [], modulus(256)), /damaged/],
    ['more than 8 KiB', `ssh-ed25519 ${ed25519} ${'é'.repeat(4_096)}`, /8 KiB/],
    ['NUL in the comment', `ssh-ed25519 ${ed25519} a\0b`, /control characters/],
    ['a carriage return in the comment', `ssh-ed25519 ${ed25519} a\rb`, /control characters/],
    ['a line separator in the comment', `ssh-ed25519 ${ed25519} a\u2028b`, /control characters/],
    ['a lone surrogate in the comment', `ssh-ed25519 ${ed25519} a\ud800b`, /control characters/],
  ])('%s', (_, key, expected) => {
    expect(sshKeyError(canonicalSshKey(key))).toMatch(expected)
    expect(sshKeyError(canonicalSshKey(key))).toMatch(/^sshPublicKey .*\.$/)
  })
})

const key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINwTop1nq0vv8Z/QQjBQ7vXrsRwYA/bTkh9KFLQaYWKx ops'
const common = {
  orgName: 'Acme',
  orgEmail: 'ops@acme.example',
  providers: ['hetzner'],
  region: 'fsn1',
  sshPublicKey: key,
}
const pool = { sovereignDomainMode: 'pool', sovereignPoolDomain: 'pool.test', sovereignSubdomain: 'acme' }
const byo = { sovereignDomainMode: 'byo', sovereignFQDN: 'cloud.acme.example' }
const storage = {
  objectStorageRegion: 'fsn1',
  objectStorageAccessKey: 'a'.repeat(16),
  objectStorageSecretKey: 's'.repeat(32),
}

const findFaults = (schema: z.ZodType, value: unknown) => {
  const { error } = schema.safeParse(value)
  return error ? firstFaultPerField(toFieldFaults(error)) : []
}
const findFaultyFields = (schema: z.ZodType, value: unknown) => findFaults(schema, value).map(({ field }) => field)

type Row = readonly [
  rule: string,
  given: Readonly<Record<string, unknown>>,
  expected: Readonly<Record<string, unknown>>,
]
const goodRows = (schema: z.ZodType, base: object, rows: readonly Row[]) =>
  test.each(rows)('accepts %s', (_, given, expected) => {
    expect(schema.parse({ ...base, ...given })).toMatchObject(expected)
  })

const badRows = (
  schema: z.ZodType,
  base: object,
  rows: readonly (readonly [field: string, values: readonly unknown[]])[],
) =>
  test.each(rows.flatMap(([field, values]) => values.map(value => [field, value] as const)))(
    'rejects %s: %j',
    (field, value) => {
      const faults = findFaults(schema, { ...base, [field]: value })
      expect(faults.map(fault => fault.field)).toEqual([field])
      expect(faults[0]?.detail).toMatch(/^[A-Za-z].*\.$/)
      expect(faults[0]?.detail).not.toMatch(/documented shape|invalid-/)
    },
  )

const nothing = [undefined, null, '', ' ', 5, true, {}, []]

describe('common fields', () => {
  goodRows(deploymentCommon, common, [
    ['a name of 100 characters', { orgName: '\u{1f600}'.repeat(100) }, { orgName: '\u{1f600}'.repeat(100) }],
    ['any script, including joiners', { orgName: ' Žofie 山田 نامه\u200cها ' }, { orgName: 'Žofie 山田 نامه\u200cها' }],
    [
      'an e-mail address, of which only the domain is lower-cased',
      { orgEmail: ' Ops+A@ACME.example ' },
      { orgEmail: 'Ops+A@acme.example' },
    ],
    [
      'an e-mail address with every allowed special character',
      { orgEmail: "a.!#$%&'*+/=?^_`{|}~-z@a.b" },
      { orgEmail: "a.!#$%&'*+/=?^_`{|}~-z@a.b" },
    ],
    ['64 characters before the @', { orgEmail: `${'a'.repeat(64)}@a.example` }, {}],
    ['upper-case providers', { providers: [' Hetzner ', 'aws'] }, { providers: ['hetzner', 'aws'] }],
    ['twenty providers', { providers: Array.from({ length: 20 }, (_, at) => `p${at}`) }, {}],
    ['a region with hyphens and digits', { region: ' eu-west-1a ' }, { region: 'eu-west-1a' }],
    ['a key with space around it', { sshPublicKey: `\n${key}\n` }, { sshPublicKey: key }],
  ])

  badRows(deploymentCommon, common, [
    ['orgName', [...nothing, 'a'.repeat(101), 'a\nb', 'a\0', 'a\u2028b', '\ud800', '\u202eemca', '\u2066a', '\u200d']],
    ['orgName', ['\u3164', '\uffa0\u115f\u1160', '\u2800', '\u{e0041}']],
    [
      'orgEmail',
      [
        ...nothing,
        'acme.example',
        '@acme.example',
        'ops@',
        'ops@acme',
        'ops@acme..example',
        'o ps@acme.example',
        '.ops@acme.example',
        'ops.@acme.example',
        'o..ps@acme.example',
        '"o ps"@acme.example',
        'ops@[203.0.113.10]',
        'ops@203.0.113.10',
        'a@b@acme.example',
        'öps@acme.example',
        'ops@acme.example\nBcc: x@acme.example',
        `${'a'.repeat(65)}@a.example`,
        `a@${'a.'.repeat(125)}example`,
      ],
    ],
    [
      'providers',
      [
        ...nothing,
        'hetzner',
        [''],
        [5],
        [null],
        ['hetzner', {}],
        ['a b'],
        ['-a'],
        ['a-'],
        ['a.b'],
        ['a'.repeat(64)],
        ['hetzner', 'hetzner'],
        ['hetzner', ' HETZNER'],
        Array.from({ length: 21 }, (_, at) => `p${at}`),
      ],
    ],
    ['region', [...nothing, 'FSN1', 'a b', '-a', 'a.b', 'a'.repeat(64), 'fsn1\nx']],
    ['sshPublicKey', [...nothing, 'ssh-ed25519', `${key}\n${key}`]],
  ])
})

describe('domain fields', () => {
  goodRows(deploymentDomain, {}, [
    ['pool, and no FQDN', pool, { sovereignPoolDomain: 'pool.test', sovereignSubdomain: 'acme' }],
    ['pool in capitals and space', { ...pool, sovereignPoolDomain: ' Pool.TEST ', sovereignSubdomain: ' ACME ' }, pool],
    ['pool, the same FQDN', { ...pool, sovereignFQDN: ' Acme.Pool.Test. ' }, { sovereignFQDN: 'acme.pool.test' }],
    ['pool, the FQDN null', { ...pool, sovereignFQDN: null }, pool],
    ['pool, the FQDN empty', { ...pool, sovereignFQDN: ' ' }, pool],
    ['byo', { ...byo, sovereignFQDN: ' Cloud.ACME.example. ' }, byo],
    ['byo, the pool ignored', { ...byo, sovereignPoolDomain: 5, sovereignSubdomain: '-' }, byo],
  ])

  badRows(deploymentDomain, pool, [
    ['sovereignDomainMode', [...nothing, 'Pool', 'own', 'constructor']],
    ['sovereignPoolDomain', nothing],
    ['sovereignSubdomain', [...nothing, 'a.b', '-a', 'a-', '1a', 'xn--a', 'a'.repeat(64), '\u212a']],
    ['sovereignFQDN', ['acme', 'other.pool.test', 'acme.pool.testing', 'x y.test', 5, {}]],
  ])
  badRows(deploymentDomain, byo, [['sovereignFQDN', [...nothing, 'acme', 'a b.example', '1.2.3.4', 'a..b']]])

  test('every fault is reported, except for an FQDN that cannot be compared', () => {
    const broken = { ...pool, sovereignPoolDomain: '', sovereignSubdomain: '-', sovereignFQDN: 'a.b' }
    expect(findFaultyFields(deploymentDomain, broken)).toEqual(['sovereignPoolDomain', 'sovereignSubdomain'])
  })
})

describe('object storage', () => {
  goodRows(deploymentStorage, storage, [
    [
      'space around a value',
      { objectStorageAccessKey: ` ${'a'.repeat(16)}\n`, objectStorageRegion: ' fsn1 ' },
      storage,
    ],
  ])
  badRows(deploymentStorage, storage, [
    ['objectStorageRegion', [...nothing, 'FSN1', 'fsn2']],
    ['objectStorageAccessKey', [...nothing, '<redacted>', ' <redacted> ', 'a'.repeat(15), 'a'.repeat(129)]],
    ['objectStorageSecretKey', [...nothing, '<redacted>', 's'.repeat(31), 's'.repeat(257), `s s${'s'.repeat(32)}`]],
  ])
})

test('faults are in the order of the request, one per field', () => {
  const faults = ['sshPublicKey', 'region', 'providers', 'orgName', 'region'].map((field, at) => ({
    field,
    detail: `${at}`,
  }))
  expect(firstFaultPerField(faults).map(({ field, detail }) => field + detail)).toEqual([
    'orgName3',
    'providers2',
    'region1',
    'sshPublicKey0',
  ])
})

test('the described request combines the three sections in the order of the contract', () => {
  expect(deploymentRequest.parse({ ...common, ...pool, ...storage, more: 1 })).toEqual({
    ...common,
    ...pool,
    ...storage,
  })
  expect(Object.keys(deploymentRequest.shape)).toEqual([
    'orgName',
    'orgEmail',
    'sovereignFQDN',
    'sovereignDomainMode',
    'sovereignPoolDomain',
    'sovereignSubdomain',
    'providers',
    'region',
    'objectStorageRegion',
    'objectStorageAccessKey',
    'objectStorageSecretKey',
    'adoptBucket',
    'sshPublicKey',
  ])
})

test.each<readonly [given: string, after: number | 'invalid-cursor']>([
  ['', 0],
  ['0', 0],
  ['7', 7],
  ['2147483647', 2_147_483_647],
  ['2147483648', 'invalid-cursor'],
  ['99999999999', 'invalid-cursor'],
  ['07', 'invalid-cursor'],
  ['-1', 'invalid-cursor'],
  ['1.5', 'invalid-cursor'],
  ['1e3', 'invalid-cursor'],
  ['abc', 'invalid-cursor'],
  ['1, 2', 'invalid-cursor'],
])('Last-Event-ID %j -> %s', (given, after) => {
  const { data, error } = lastEventId.safeParse(given)
  expect(error ? firstViolation(error).code : data).toBe(after)
})

test.each<readonly [rule: string, good: boolean, more: object]>([
  ['neither field nor faults', true, {}],
  ['both', true, { field: 'region', faults: [{ field: 'region', detail: 'x' }] }],
  ['no fault in the list', false, { field: 'region', faults: [] }],
  ['a fault without a sentence', false, { field: 'region', faults: [{ field: 'region' }] }],
])('the body of an error: %s', (_, good, more) => {
  expect(deploymentProblem.safeParse({ error: 'invalid-deployment', detail: 'x', ...more }).success).toBe(good)
})

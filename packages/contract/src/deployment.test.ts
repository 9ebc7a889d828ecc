import { describe, expect, test } from 'vitest'
import type * as z from 'zod'
import { deploymentProblem, firstViolation } from './allocation-problem.ts'
import {
  deploymentCommon,
  deploymentDomain,
  deploymentRequest,
  deploymentStorage,
  firstFaultPerField,
  lastEventId,
  toFieldFaults,
} from './deployment.ts'

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

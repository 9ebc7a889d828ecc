import { describe, expect, test } from 'vitest'
import { type BucketNameResult, createPools } from '../../naming/naming.ts'
import {
  fromRecord,
  parseCredentials,
  parseDeploymentChange,
  parseDeploymentSpec,
  type SpecRules,
  toRecord,
} from './spec.ts'
import type { DeploymentSpec } from './types.ts'

const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINwTop1nq0vv8Z/QQjBQ7vXrsRwYA/bTkh9KFLQaYWKx ops'
const storage = {
  objectStorageRegion: 'fsn1',
  objectStorageAccessKey: 'a'.repeat(16),
  objectStorageSecretKey: 's'.repeat(32),
}
const base = { orgName: 'Acme', orgEmail: 'ops@acme.example', providers: ['hetzner'], region: 'fsn1', sshPublicKey }
const pool = { ...base, sovereignDomainMode: 'pool', sovereignPoolDomain: 'pool.test', sovereignSubdomain: 'acme' }
const byo = { ...base, sovereignDomainMode: 'byo', sovereignFQDN: 'cloud.acme.example' }

const toBucketName = (fqdn: string): BucketNameResult =>
  fqdn.length > 20
    ? { kind: 'invalid', reason: `A bucket has at most 20 characters; this one has ${fqdn.length}.` }
    : { kind: 'bucket', name: `b-${fqdn.replaceAll('.', '-')}` }
const rules: SpecRules = {
  storageProvider: 'hetzner',
  knownProviders: ['local', 'hetzner', 'aws'],
  toBucketName,
  pools: createPools(['pool.test', 'eu.pool.test', 'x.pool.test'], { draining: ['old.test'] }),
}
const getFaultFields = (body: unknown) => {
  const outcome = parseDeploymentSpec(body, rules)
  return outcome.kind === 'valid' ? [] : outcome.faults.map(({ field }) => field)
}
const getFaultDetails = (body: unknown) => {
  const outcome = parseDeploymentSpec(body, rules)
  return outcome.kind === 'valid' ? '' : outcome.faults.map(({ detail }) => detail).join(' ')
}

const common = { orgName: 'Acme', orgEmail: 'ops@acme.example', region: 'fsn1', sshPublicKey }
const credentials = { accessKey: 'a'.repeat(16), secretKey: 's'.repeat(32) }
const name = { poolDomain: 'pool.test', subdomain: 'acme' }

describe('the body of an older client', () => {
  test.each(['byo-manual', 'byo-api'])('%s means byo, in a creation and in an apply', mode => {
    const expected = parseDeploymentSpec({ ...byo, ...storage }, rules)
    expect(parseDeploymentSpec({ ...byo, ...storage, sovereignDomainMode: mode }, rules)).toEqual(expected)
    if (expected.kind !== 'valid') throw new Error('the body is invalid')
    const change = { ...storage, sovereignDomainMode: mode, sovereignSubdomain: 'ignored' }
    expect(parseDeploymentChange(change, { spec: expected.spec, hasBucket: true }, rules)).toEqual(expected)
  })

  test.each([undefined, null])('providers %s: the only one besides local, which brings its storage', providers => {
    const one = { ...rules, knownProviders: ['local', 'hetzner'] }
    expect(parseDeploymentSpec({ ...pool, ...storage, providers }, one)).toEqual(
      parseDeploymentSpec({ ...pool, ...storage }, one),
    )
    expect(getFaultFields({ ...pool, ...storage, providers })).toEqual(['providers'])
  })
})

describe('a spec in canonical form, with its credentials apart', () => {
  test('of a pool, with storage', () => {
    expect(
      parseDeploymentSpec(
        { ...pool, ...storage, providers: [' HETZNER ', 'aws'], sovereignSubdomain: ' Acme ' },
        rules,
      ),
    ).toEqual({
      kind: 'valid',
      spec: {
        ...common,
        providers: ['hetzner', 'aws'],
        sovereignFQDN: 'acme.pool.test',
        name,
        storage: { region: 'fsn1', bucket: 'b-acme-pool-test' },
      },
      credentials,
    })
  })

  test("a customer's domain without the storage provider: the storage fields are ignored", () => {
    const garbage = { objectStorageRegion: 5, objectStorageAccessKey: '<redacted>', objectStorageSecretKey: [] }
    const sovereignFQDN = `${'a'.repeat(30)}.example`
    expect(
      parseDeploymentSpec({ ...byo, ...garbage, sovereignFQDN, providers: ['aws'], consoleLoadBalancerIP: 1 }, rules),
    ).toEqual({
      kind: 'valid',
      spec: { ...common, providers: ['aws'], sovereignFQDN, name: null, storage: null },
      credentials: null,
    })
  })
})

describe('all invalid fields are reported, in documented order', () => {
  test.each<readonly [rule: string, body: unknown, fields: readonly string[]]>([
    ['not an object: text', 'x', ['']],
    ['not an object: null', null, ['']],
    ['not an object: a list', [pool], ['']],
    ['an empty object', {}, ['orgName', 'orgEmail', 'sovereignDomainMode', 'providers', 'region', 'sshPublicKey']],
    [
      'all sections',
      { ...pool, sshPublicKey: '', sovereignSubdomain: '-', orgEmail: '', objectStorageRegion: 'FSN1' },
      [
        'orgEmail',
        'sovereignSubdomain',
        'objectStorageRegion',
        'objectStorageAccessKey',
        'objectStorageSecretKey',
        'sshPublicKey',
      ],
    ],
    [
      'storage fields with an invalid list of providers',
      { ...pool, providers: ['hetzner', 'hetzner', 5] },
      ['providers', 'objectStorageRegion', 'objectStorageAccessKey', 'objectStorageSecretKey'],
    ],
    ['an unsupported pool', { ...pool, ...storage, sovereignPoolDomain: 'other.test' }, ['sovereignPoolDomain']],
    [
      'an unsupported pool and an invalid label',
      { ...pool, ...storage, sovereignPoolDomain: 'other.test', sovereignSubdomain: '-' },
      ['sovereignPoolDomain', 'sovereignSubdomain'],
    ],
    ['an invalid label in a valid pool', { ...pool, ...storage, sovereignSubdomain: '-' }, ['sovereignSubdomain']],
    ['a reserved label', { ...pool, ...storage, sovereignSubdomain: 'WWW' }, ['sovereignSubdomain']],
    ['a label that covers a pool', { ...pool, ...storage, sovereignSubdomain: 'eu' }, ['sovereignSubdomain']],
    ['another FQDN', { ...pool, ...storage, sovereignFQDN: 'b.pool.test' }, ['sovereignFQDN']],
    ['a customer domain that is a pool', { ...byo, ...storage, sovereignFQDN: 'pool.test' }, ['sovereignFQDN']],
    ['a customer domain in a pool', { ...byo, ...storage, sovereignFQDN: 'a.b.pool.test' }, ['sovereignFQDN']],
    [
      'a bucket name that is too long, in a pool',
      { ...pool, ...storage, sovereignSubdomain: 'a'.repeat(12) },
      ['sovereignSubdomain'],
    ],
    [
      'a bucket name that is too long, with a customer domain',
      { ...byo, ...storage, sovereignFQDN: `${'a'.repeat(20)}.b` },
      ['sovereignFQDN'],
    ],
    [
      'a bucket name that is too long and a key that is too short',
      { ...pool, ...storage, sovereignSubdomain: 'a'.repeat(12), objectStorageAccessKey: 'short' },
      ['sovereignSubdomain', 'objectStorageAccessKey'],
    ],
  ])('%s', (_, body, fields) => {
    expect(getFaultFields(body)).toEqual(fields)
    expect(getFaultDetails(body)).toMatch(/^["A-Za-z].*\.$/)
  })

  test.each<readonly [rule: string, body: object, expected: RegExp]>([
    ['the managed pools', { ...pool, ...storage, sovereignPoolDomain: 'other.test' }, /pool\.test, eu\.pool\.test/],
    ['a reserved label', { ...pool, ...storage, sovereignSubdomain: 'www' }, /"www" is reserved/],
    ["the pool of the customer's domain", { ...byo, sovereignFQDN: 'a.eu.pool.test' }, /in the pool eu\.pool\.test/],
    [
      'the limit and the length of the bucket name',
      { ...pool, ...storage, sovereignSubdomain: 'a'.repeat(12) },
      /at most 20 .* has 22/,
    ],
  ])('the details have %s', (_, body, expected) => {
    expect(getFaultDetails(body)).toMatch(expected)
  })

  test('the details contain no credentials', () => {
    const marked = {
      objectStorageAccessKey: 'MARKED',
      objectStorageSecretKey: 'MARKED too',
      objectStorageRegion: 'MARKED',
    }
    const body = { ...pool, ...marked, sshPublicKey: 'MARKED MARKED', orgEmail: 'MARKED' }
    expect(getFaultFields(body)).toHaveLength(5)
    expect(JSON.stringify(parseDeploymentSpec(body, rules))).not.toContain('MARKED')
  })
})

describe('a stored record', () => {
  const parsed = parseDeploymentSpec({ ...pool, ...storage }, rules)
  if (parsed.kind !== 'valid') throw new Error('the spec is valid')
  const { spec } = parsed

  test.each([
    ['two keys', credentials, '<redacted>', '<redacted>'],
    ['no keys', null, '', ''],
    ['empty keys', { accessKey: '', secretKey: '' }, '', ''],
    ['one key', { accessKey: 'a', secretKey: '' }, '<redacted>', ''],
    ['the other key', { accessKey: '', secretKey: 's' }, '', '<redacted>'],
  ])('holds <redacted> in place of each key that is not empty: %s', (_, given, access, secret) => {
    const record = JSON.parse(JSON.stringify(toRecord(spec, given)))
    expect(record).toEqual({ ...spec, objectStorageAccessKey: access, objectStorageSecretKey: secret })
    expect(fromRecord(record)).toEqual(spec)
  })

  test('keeps region and bucket in plain text', () => {
    expect(toRecord(spec, credentials).storage).toEqual({ region: 'fsn1', bucket: 'b-acme-pool-test' })
  })

  test.each([
    ['unchanged', (value: string) => value],
    ['with space around it', (value: string) => ` ${value}\n`],
  ])('is not usable as a credential: %s', (_, as) => {
    const { objectStorageAccessKey, objectStorageSecretKey } = toRecord(spec, credentials)
    const again = {
      ...pool,
      ...storage,
      objectStorageAccessKey: as(objectStorageAccessKey),
      objectStorageSecretKey: as(objectStorageSecretKey),
    }
    expect(getFaultFields(again)).toEqual(['objectStorageAccessKey', 'objectStorageSecretKey'])
    expect(getFaultDetails(again)).toMatch(/access key reads <redacted>.*secret key reads <redacted>/)
  })
})

test.each([
  [['heztner'], 'Unknown provider "heztner"; did you mean "hetzner"? Use one of: local, hetzner, aws.'],
  [[' AWS ', 'LOCA'], 'Unknown provider "loca"; did you mean "local"? Use one of: local, hetzner, aws.'],
])('an unknown provider is a fault of the field: %j', (providers, detail) => {
  const faults = [{ field: 'providers', detail }]
  expect(parseDeploymentSpec({ ...pool, ...storage, providers }, rules)).toEqual({ kind: 'invalid-deployment', faults })
})

test('an unknown provider is reported with the other faults, and after the form of the list', () => {
  expect(getFaultFields({ ...pool, orgName: '', providers: ['heztner'] })).toEqual(['orgName', 'providers'])
  expect(getFaultDetails({ ...pool, providers: ['heztner', 'heztner'] })).toBe(
    'providers must not list a provider twice.',
  )
})

test('a draining pool gives no name, and no tenant can bring a name in it', () => {
  const outcome = parseDeploymentSpec({ ...pool, ...storage, sovereignPoolDomain: 'old.test' }, rules)
  expect(outcome).toMatchObject({
    kind: 'invalid-deployment',
    faults: [{ field: 'sovereignPoolDomain', detail: expect.stringContaining('no new names') }],
  })
  expect(getFaultFields({ ...byo, ...storage, sovereignFQDN: 'acme.old.test' })).toEqual(['sovereignFQDN'])
})

describe('new input of a deployment that exists', () => {
  const parse = (body: object): DeploymentSpec => {
    const outcome = parseDeploymentSpec(body, rules)
    if (outcome.kind !== 'valid') throw new Error(outcome.kind)
    return outcome.spec
  }
  const plain = parse({ ...pool, providers: ['local'] })
  const stored = parse({ ...pool, ...storage })
  const ownDomain = parse({ ...byo, providers: ['local'] })
  const { objectStorageRegion: _, ...keys } = storage
  const change = (spec: DeploymentSpec, body: unknown, hasBucket = true) =>
    parseDeploymentChange(body, { spec, hasBucket }, rules)

  test.each([
    ['orgName', ' Beta ', 'Beta', '', /printable/],
    ['orgEmail', 'Ops@Beta.Example', 'Ops@beta.example', 'ops', /mail address/],
    ['region', 'hel1', 'hel1', 'Hel 1', /region/],
    ['providers', [' AWS ', 'local'], ['aws', 'local'], ['awz'], /did you mean "aws"/],
    ['sshPublicKey', `${sshPublicKey}-2`, `${sshPublicKey}-2`, 'ssh-rsa', /SSH|key/i],
  ] as const)('%s: replaces the stored value, by the rule of create', (field, sent, canonical, invalid, detail) => {
    const spec = { ...plain, [field]: canonical }
    expect(change(plain, { [field]: sent })).toEqual({ kind: 'valid', spec, credentials: null })
    for (const value of [invalid, null, 5]) {
      const outcome = change(plain, { [field]: value })
      const created = parseDeploymentSpec({ ...pool, providers: ['local'], [field]: value }, rules)
      expect(outcome).toEqual(created)
    }
    expect(change(plain, { [field]: invalid })).toMatchObject({
      faults: [{ field, detail: expect.stringMatching(detail) }],
    })
  })

  test('an absent field keeps its stored value, whether it is valid today or not', () => {
    for (const body of [undefined, {}, { consoleLoadBalancerIP: 1, objectStorageRegion: 5 }]) {
      expect(change(plain, body)).toEqual({ kind: 'valid', spec: plain, credentials: null })
    }
    const outdated = {
      ...plain,
      providers: ['gone'],
      sshPublicKey: 'ssh-dss',
      name: { ...name, poolDomain: 'gone.test' },
    }
    expect(change(outdated, { region: 'hel1' })).toMatchObject({ spec: { ...outdated, region: 'hel1' } })
    expect(change(stored, keys)).toEqual({ kind: 'valid', spec: stored, credentials })
  })

  test.each([null, [], 'AAA', 1, 0, false])('the body %j is rejected, also by a call that needs no input', body => {
    const faults = [{ field: '', detail: 'The body must be a JSON object, or absent.' }]
    expect(change(plain, body)).toEqual({ kind: 'invalid-deployment', faults })
    expect(parseCredentials(body, plain)).toEqual({ kind: 'invalid-deployment', faults })
  })

  test('the whole body of the creation changes nothing', () => {
    const poolBody = { ...pool, ...storage, sovereignFQDN: '', sovereignSubdomain: ' ACME ' }
    expect(change(stored, poolBody)).toEqual({ kind: 'valid', spec: stored, credentials })
    const byoBody = { ...byo, providers: ['local'], sovereignFQDN: 'Cloud.Acme.Example.', sovereignPoolDomain: '' }
    expect(change(ownDomain, byoBody)).toEqual({ kind: 'valid', spec: ownDomain, credentials: null })
  })

  test.each<[string, DeploymentSpec, object]>([
    ['sovereignFQDN', plain, { sovereignFQDN: 'other.pool.test' }],
    ['sovereignFQDN', plain, { sovereignFQDN: 5 }],
    ['sovereignFQDN', ownDomain, { sovereignFQDN: 'www.acme.example' }],
    ['sovereignDomainMode', plain, { sovereignDomainMode: 'byo' }],
    ['sovereignDomainMode', ownDomain, { sovereignDomainMode: 'pool' }],
    ['sovereignPoolDomain', plain, { sovereignPoolDomain: 'eu.pool.test' }],
    ['sovereignPoolDomain', ownDomain, { sovereignPoolDomain: 'pool.test' }],
    ['sovereignSubdomain', plain, { sovereignSubdomain: 'beta' }],
    ['sovereignSubdomain', ownDomain, { sovereignSubdomain: 'acme' }],
    ['objectStorageRegion', stored, { ...storage, objectStorageRegion: 'hel1' }],
  ])('%s identifies the deployment and cannot change', (field, spec, body) => {
    const outcome = change(spec, body)
    expect(outcome).toMatchObject({ faults: [{ field, detail: expect.stringMatching(/cannot .*; omit it/) }] })
  })

  test('the region of a bucket that never existed can change', () => {
    const body = { ...storage, objectStorageRegion: 'hel1' }
    expect(change(stored, body, false)).toMatchObject({ spec: { ...stored, storage: { region: 'hel1' } } })
  })

  test('object storage can be added, with the bucket of the name, and not removed', () => {
    const added = change(plain, { ...storage, providers: ['local', 'hetzner'] }, false)
    expect(added).toEqual({
      kind: 'valid',
      spec: { ...plain, providers: ['local', 'hetzner'], storage: { region: 'fsn1', bucket: 'b-acme-pool-test' } },
      credentials,
    })
    const faults = [{ field: 'providers', detail: expect.stringContaining('providers must list "hetzner"') }]
    for (const hasBucket of [true, false]) {
      expect(change(stored, { ...keys, providers: ['local'] }, hasBucket)).toMatchObject({ faults })
    }
    const long = { ...plain, sovereignFQDN: `${'a'.repeat(20)}.pool.test` }
    expect(change(long, { ...storage, providers: ['hetzner'] }, false)).toMatchObject({
      faults: [{ field: 'providers', detail: expect.stringContaining('at most 20') }],
    })
  })

  test('all faults at once, in the documented order, without the values of keys', () => {
    const body = {
      orgName: '',
      sovereignSubdomain: 'beta',
      providers: ['hetzner', 'hetzner'],
      region: null,
      objectStorageRegion: 'mars',
      objectStorageAccessKey: 'MARKED',
      sshPublicKey: 'x',
    }
    const outcome = change(stored, body)
    expect(outcome.kind === 'valid' ? [] : outcome.faults.map(({ field }) => field)).toEqual([
      'orgName',
      'sovereignSubdomain',
      'providers',
      'region',
      'objectStorageRegion',
      'objectStorageAccessKey',
      'objectStorageSecretKey',
      'sshPublicKey',
    ])
    expect(JSON.stringify(outcome)).not.toContain('MARKED')
    const missing = change(plain, { providers: ['hetzner'] })
    expect(missing.kind === 'valid' ? [] : missing.faults.map(({ field }) => field)).toEqual([
      'objectStorageRegion',
      'objectStorageAccessKey',
      'objectStorageSecretKey',
    ])
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createPools, toBucketName, toCoveringNames, toFqdn, validateName, validatePool } from './naming.ts'

const managed = createPools(['pool.test', 'eu.pool.test', 'a.b.other.test', 'other.test'])
const validate = (poolDomain: string, subdomain: string) =>
  validateName(poolDomain, subdomain, managed)?.kind ?? 'valid'

describe('a pool that is not in the configuration of this process', () => {
  const pools = createPools(['pool.test'], { draining: ['old.test', 'd.pool.test'], registered: ['x.r.pool.test'] })
  const toKind = (poolDomain: string, subdomain: string) => validateName(poolDomain, subdomain, pools)?.kind ?? 'valid'

  test('with names or records: every operation except reserve', () => {
    expect(validatePool('old.test', pools)).toBeNull()
    expect(toKind('old.test', 'acme')).toBe('pool-draining')
    expect(toKind('old.test', 'www'), 'before the label is looked at').toBe('pool-draining')
  })

  test('of another replica only: no operation', () => {
    expect(validatePool('x.r.pool.test', pools)?.kind).toBe('unsupported-pool')
  })

  test.each([['d'], ['r']])('the label %s that would cover it is reserved', label => {
    expect(toKind('pool.test', label)).toBe('reserved')
  })
})

test('every name that covers a pool', () => {
  expect(toCoveringNames('a.b.test').map(({ subdomain, poolDomain }) => [subdomain, poolDomain])).toEqual([
    ['a', 'b.test'],
    ['b', 'test'],
  ])
  expect(toCoveringNames('test')).toEqual([])
})

test('the FQDN is the label and the pool domain', () => {
  expect(toFqdn('pool.test', 'acme')).toBe('acme.pool.test')
})

describe('validatePool', () => {
  test.each([
    ['pool.test', true],
    ['eu.pool.test', true],
    ['test', false],
    ['a.pool.test', false],
    ['Pool.test', false],
    ['pool.test.', false],
    ['', false],
    ['__proto__', false],
  ])('%j', (domain, isManaged) => {
    expect(validatePool(domain, managed)).toEqual(
      isManaged ? null : { kind: 'unsupported-pool', detail: expect.stringContaining('eu.pool.test') },
    )
  })
})

describe('validateName', () => {
  test.each([
    ['an ordinary label', 'pool.test', 'acme', 'valid'],
    ['a reserved label', 'pool.test', 'www', 'reserved'],
    ['an unmanaged pool', 'x.test', 'acme', 'unsupported-pool'],
    ['a reserved label in an unmanaged pool', 'x.test', 'www', 'unsupported-pool'],
    ['a label that is another managed pool', 'pool.test', 'eu', 'reserved'],
    ['a label whose name would be above another managed pool', 'other.test', 'b', 'reserved'],
    ['a label that is only a text suffix of a pool', 'pool.test', 'u', 'valid'],
    ['a label that only starts like a pool', 'pool.test', 'eur', 'valid'],
    ['the same label in a pool where it covers nothing', 'other.test', 'eu', 'valid'],
    ['a label below the deeper pool', 'eu.pool.test', 'eu', 'valid'],
    ['a reserved label below the deeper pool', 'eu.pool.test', 'api', 'reserved'],
  ])('%s', (_, poolDomain, subdomain, kind) => {
    expect(validate(poolDomain, subdomain)).toBe(kind)
  })
})

const toName = (prefix: string, fqdn: string) => {
  const bucket = toBucketName(prefix, fqdn)
  return bucket.kind === 'bucket' ? bucket.name : null
}
const toReason = (prefix: string, fqdn: string) => {
  const bucket = toBucketName(prefix, fqdn)
  return bucket.kind === 'invalid' ? bucket.reason : ''
}

describe('a valid bucket name', () => {
  test.each([
    ['catalyst', 'acme.pool.test', 'catalyst-acme-pool-test'],
    ['catalyst', 'ACME.Pool.test', 'catalyst-acme-pool-test'],
    ['catalyst', 'a-b.c.io', 'catalyst-a-b-c-io'],
    ['catalyst', 'a.b.c.io', 'catalyst-a-b-c-io'],
    ['p', 'a', 'p-a'],
    ['1', '2.3', '1-2-3'],
    ['catalyst', 'xn--bcher-kva.test', 'catalyst-xn--bcher-kva-test'],
    ['x', 'n--a.io', 'x-n--a-io'],
    ['my', 's3alias.io', 'my-s3alias-io'],
    ['catalyst', `${'a'.repeat(51)}.io`, `catalyst-${'a'.repeat(51)}-io`],
  ])('%s and %s give %s', (prefix, fqdn, name) => expect(toName(prefix, fqdn)).toBe(name))
})

describe('an invalid bucket name and its reason', () => {
  test.each<readonly [rule: string, prefix: string, fqdn: string, reason: RegExp]>([
    ['64 characters', 'catalyst', `${'a'.repeat(52)}.io`, /have 64 characters; 3 to 63 .* shorter by 1\.$/],
    ['many more', 'catalyst', 'a.'.repeat(100), /have 209 characters; 3 to 63 .* shorter by 146\.$/],
    ['two characters', '', 'a', /have 2 characters; 3 to 63 are allowed\.$/],
    ['a capital in the prefix', 'Catalyst', 'a.io', /only a-z/],
    ['an underscore', 'catalyst', 'a_b.io', /only a-z/],
    ['KELVIN SIGN, not k', 'catalyst', '\u212aa.io', /only a-z/],
    ['a dot in the prefix', 'a.b', 'c.io', /only a-z/],
    ['a line break at the end', 'catalyst', 'a.io\n', /only a-z/],
    ['a hyphen first', '-a', 'a.io', /both ends/],
    ['no prefix', '', 'acme.io', /both ends/],
    ['a dot last', 'catalyst', 'a.io.', /both ends/],
    ['xn-- first', 'xn-', 'a.io', /S3 reserves "xn--"/],
    ['sthree- first', 'sthree', 'a.io', /S3 reserves "sthree-"/],
    ['amzn-s3-demo- first', 'amzn-s3-demo', 'a.io', /S3 reserves "amzn-s3-demo-"/],
    ['-s3alias last', 'catalyst', 'a.s3alias', /S3 reserves "-s3alias"/],
    ['--ol-s3 last', 'catalyst', 'a.io--ol-s3', /S3 reserves "--ol-s3"/],
    ['--x-s3 last', 'catalyst', 'a.io--x-s3', /S3 reserves "--x-s3"/],
    ['--table-s3 last', 'catalyst', 'a.io--table-s3', /S3 reserves "--table-s3"/],
  ])('%s', (_, prefix, fqdn, reason) => {
    expect(toReason(prefix, fqdn)).toMatch(reason)
    expect(toReason(prefix, fqdn)).toContain(fqdn)
  })
})

/** S3's rules again, character by character, independent of the module under test. */
const isLegal = (name: string): boolean => {
  const isOneOf = (letters: string) => (char: string | undefined) => char !== undefined && letters.includes(char)
  const isAlphanumeric = isOneOf('abcdefghijklmnopqrstuvwxyz0123456789')
  const isAny = isOneOf('abcdefghijklmnopqrstuvwxyz0123456789-')
  const banned = [/^xn--/, /^sthree-/, /^amzn-s3-demo-/, /-s3alias$/, /--ol-s3$/, /\.mrap$/, /--x-s3$/, /--table-s3$/]
  return (
    name.length > 2 &&
    name.length < 64 &&
    [...name].every(isAny) &&
    isAlphanumeric(name[0]) &&
    isAlphanumeric(name.at(-1)) &&
    banned.every(pattern => !pattern.test(name))
  )
}

const odd = fc.constantFrom(
  'xn-',
  'sthree',
  's3alias',
  'io--ol-s3',
  'io--x-s3',
  'io--table-s3',
  'amzn-s3-demo',
  'a_b',
  'ä',
)
const label = fc.oneof(
  { weight: 5, arbitrary: fc.stringMatching(/^[a-zA-Z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/) },
  { weight: 1, arbitrary: odd },
)
const fqdn = fc.array(label, { minLength: 1, maxLength: 6 }).map(labels => labels.join('.'))
const prefix = fc.oneof(fc.constant('catalyst'), label, fc.string({ maxLength: 5 }))

test('any prefix and FQDN give a legal bucket name, or the name would be illegal and the reason is a sentence', () => {
  fc.assert(
    fc.property(prefix, fc.oneof({ weight: 5, arbitrary: fqdn }, fc.string()), (prefix, fqdn) => {
      const bucket = toBucketName(prefix, fqdn)
      if (bucket.kind === 'bucket') return isLegal(bucket.name)
      const lower = fqdn.replace(/[A-Z]/g, letter => letter.toLowerCase())
      return (
        !isLegal(`${prefix}-${lower.split('.').join('-')}`) && /^The bucket name for [\s\S]*\.$/.test(bucket.reason)
      )
    }),
    { numRuns: 1_000 },
  )
})

test('two FQDNs have the same bucket name only if they differ only in dots, hyphens and case', () => {
  /** Two names that are often equal except for their separators. */
  const pair = fc
    .array(
      fc.tuple(
        fc.stringMatching(/^[a-cA-C]{1,3}$/),
        fc.constantFrom('.', '-'),
        fc.constantFrom('.', '-'),
        fc.boolean(),
      ),
      {
        minLength: 1,
        maxLength: 5,
      },
    )
    .map(parts => [
      parts.map(([text, between]) => text + between).join(''),
      parts.map(([text, , between, isOther]) => (isOther ? `${text}d` : text) + between).join(''),
    ])
    .map(([one = '', other = '']) => [`${one}io`, `${other}io`] as const)
  const without = (name: string) => name.toLowerCase().replace(/[.-]/g, '')
  let equal = 0
  fc.assert(
    fc.property(pair, ([one, other]) => {
      const [first, second] = [toName('p', one), toName('p', other)]
      if (first !== second || first === null) return true
      equal += 1
      return without(one) === without(other)
    }),
    { numRuns: 1_000 },
  )
  expect(equal).toBeGreaterThan(50)
})

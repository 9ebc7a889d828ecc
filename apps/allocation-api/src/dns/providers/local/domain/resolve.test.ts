import { describe, expect, test } from 'vitest'
import type { RecordSet } from '../../../domain/rrset.ts'
import type { Resolution } from './resolve.ts'
import { resolve } from './resolve.ts'

const zone = 'pool.test'
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 60, values })

const records = [
  set('acme.pool.test', 'A', '192.0.2.1', '192.0.2.2'),
  set('acme.pool.test', 'TXT', '"acme"'),
  set('*.acme.pool.test', 'A', '192.0.2.3'),
  set('www.acme.pool.test', 'TXT', '"www"'),
  set('a.b.deep.pool.test', 'A', '192.0.2.4'),
  set('*.star.pool.test', 'TXT', '"star"'),
  set('sub.*.nested.pool.test', 'A', '192.0.2.5'),
  set('alias.pool.test', 'CNAME', 'Acme.Pool.Test.'),
  set('out.pool.test', 'CNAME', 'example.org'),
  set('dead.pool.test', 'CNAME', 'nobody.pool.test.'),
  set('*.many.pool.test', 'CNAME', 'acme.pool.test.'),
  set('_tcp.srv.pool.test', 'A', '192.0.2.6'),
]
const apexWildcard = set('*.pool.test', 'A', '192.0.2.99')
const apexText = set(zone, 'TXT', '"apex"')

/** The RCODE, then the answers, the authority section and the alias. */
const describeResolution = (resolution: Resolution): string =>
  [
    resolution.rcode,
    ...resolution.answers.map(({ name, type, values }) => `${name} ${type} ${values.join(' ')}`),
    ...resolution.authority.map(({ name, type }) => `authority ${name} ${type}`),
    ...(resolution.alias === undefined ? [] : [`alias ${resolution.alias}`]),
  ].join(' | ')

const nodata = 'NOERROR | authority pool.test SOA'
const nxdomain = 'NXDOMAIN | authority pool.test SOA'
const apexSoa = 'NOERROR | pool.test SOA localhost. nobody.invalid. 7 3600 1200 604800 5'

describe('without a wildcard at the apex', () => {
  test.each([
    // The name exists.
    ['acme.pool.test', 'A', 'NOERROR | acme.pool.test A 192.0.2.1 192.0.2.2'],
    ['acme.pool.test', 'TXT', 'NOERROR | acme.pool.test TXT "acme"'],
    ['ACME.Pool.TEST', 'A', 'NOERROR | acme.pool.test A 192.0.2.1 192.0.2.2'],
    ['acme.pool.test', 'AAAA', nodata],
    ['acme.pool.test', 'UNKNOWN_65', nodata],
    // The name does not exist, and no wildcard covers it.
    ['nobody.pool.test', 'A', nxdomain],
    ['x.nobody.pool.test', 'A', nxdomain],
    ['xacme.pool.test', 'A', nxdomain],
    // A wildcard, at any depth, for names that do not exist.
    ['x.acme.pool.test', 'A', 'NOERROR | x.acme.pool.test A 192.0.2.3'],
    ['y.x.acme.pool.test', 'A', 'NOERROR | y.x.acme.pool.test A 192.0.2.3'],
    ['X.acme.pool.test', 'A', 'NOERROR | x.acme.pool.test A 192.0.2.3'],
    ['x.acme.pool.test', 'TXT', nodata],
    ['a\\046b.acme.pool.test', 'A', 'NOERROR | a\\046b.acme.pool.test A 192.0.2.3'],
    // A wildcard does not cover a name that exists, with any type, nor the names below it.
    ['www.acme.pool.test', 'A', nodata],
    ['x.www.acme.pool.test', 'A', nxdomain],
    // Queried by its own name, a wildcard is an ordinary name; it does not cover the names below itself.
    ['*.acme.pool.test', 'A', 'NOERROR | *.acme.pool.test A 192.0.2.3'],
    ['x.*.acme.pool.test', 'A', nxdomain],
    // Empty non-terminals exist: NODATA, and no wildcard.
    ['deep.pool.test', 'A', nodata],
    ['b.deep.pool.test', 'A', nodata],
    ['a.b.deep.pool.test', 'A', 'NOERROR | a.b.deep.pool.test A 192.0.2.4'],
    ['x.b.deep.pool.test', 'A', nxdomain],
    ['star.pool.test', 'TXT', nodata],
    ['x.star.pool.test', 'TXT', 'NOERROR | x.star.pool.test TXT "star"'],
    // A wildcard that is itself an empty non-terminal matches, and has no data.
    ['x.nested.pool.test', 'A', nodata],
    ['sub.*.nested.pool.test', 'A', 'NOERROR | sub.*.nested.pool.test A 192.0.2.5'],
    ['srv.pool.test', 'A', nodata],
    // Aliases.
    ['alias.pool.test', 'A', 'NOERROR | alias.pool.test CNAME Acme.Pool.Test. | alias acme.pool.test'],
    ['alias.pool.test', 'CNAME', 'NOERROR | alias.pool.test CNAME Acme.Pool.Test.'],
    ['alias.pool.test', 'ANY', 'NOERROR | alias.pool.test CNAME Acme.Pool.Test.'],
    ['out.pool.test', 'A', 'NOERROR | out.pool.test CNAME example.org'],
    ['dead.pool.test', 'A', 'NOERROR | dead.pool.test CNAME nobody.pool.test. | alias nobody.pool.test'],
    ['x.many.pool.test', 'A', 'NOERROR | x.many.pool.test CNAME acme.pool.test. | alias acme.pool.test'],
    // ANY is one record set.
    ['acme.pool.test', 'ANY', 'NOERROR | acme.pool.test A 192.0.2.1 192.0.2.2'],
    ['x.acme.pool.test', 'ANY', 'NOERROR | x.acme.pool.test A 192.0.2.3'],
    ['deep.pool.test', 'ANY', nodata],
    ['nobody.pool.test', 'ANY', nxdomain],
    // The apex always exists.
    ['pool.test', 'SOA', apexSoa],
    ['pool.test', 'NS', 'NOERROR | pool.test NS localhost.'],
    ['pool.test', 'A', nodata],
    ['pool.test', 'TXT', 'NOERROR | pool.test TXT "apex"'],
    ['acme.pool.test', 'SOA', nodata],
    ['acme.pool.test', 'NS', nodata],
    // Outside the zone.
    ['test', 'A', 'REFUSED'],
    ['example.org', 'A', 'REFUSED'],
    ['xpool.test', 'A', 'REFUSED'],
    ['', 'NS', 'REFUSED'],
  ])('%s %s', (name, type, expected) => {
    expect(describeResolution(resolve(zone, { serial: 7, records: [...records, apexText] }, { name, type }))).toBe(
      expected,
    )
  })
})

describe('with a wildcard at the apex', () => {
  test.each([
    ['nobody.pool.test', 'A', 'NOERROR | nobody.pool.test A 192.0.2.99'],
    ['x.y.nobody.pool.test', 'A', 'NOERROR | x.y.nobody.pool.test A 192.0.2.99'],
    ['nobody.pool.test', 'AAAA', nodata],
    ['deep.pool.test', 'A', nodata],
    ['x.deep.pool.test', 'A', nxdomain],
    ['x.www.acme.pool.test', 'A', nxdomain],
    ['pool.test', 'A', nodata],
  ])('%s %s', (name, type, expected) => {
    expect(describeResolution(resolve(zone, { serial: 7, records: [...records, apexWildcard] }, { name, type }))).toBe(
      expected,
    )
  })
})

test('an empty zone has only its apex', () => {
  const empty = { serial: 0, records: [] }
  expect(describeResolution(resolve(zone, empty, { name: zone, type: 'NS' }))).toBe('NOERROR | pool.test NS localhost.')
  expect(describeResolution(resolve(zone, empty, { name: 'a.pool.test', type: 'A' }))).toBe(nxdomain)
})

test('stored NS and SOA records at the apex do not replace the generated ones', () => {
  const stored = { serial: 7, records: [set(zone, 'NS', 'ns.example.'), set(zone, 'SOA', 'a. b. 1 2 3 4 5')] }
  expect(describeResolution(resolve(zone, stored, { name: zone, type: 'SOA' }))).toBe(apexSoa)
  expect(describeResolution(resolve(zone, stored, { name: zone, type: 'NS' }))).toBe(
    'NOERROR | pool.test NS localhost.',
  )
})

test('the TTL of the SOA in a negative answer is its minimum', () => {
  const [soa] = resolve(zone, { serial: 7, records }, { name: 'nobody.pool.test', type: 'A' }).authority
  expect(soa?.ttl).toBe(5)
})

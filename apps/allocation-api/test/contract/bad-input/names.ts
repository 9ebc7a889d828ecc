import { poolPath } from '../../support/service.ts'
import { type BadRow, describeValue, remove, reserve, row } from './row.ts'

const format = [422, 'invalid-format'] as const
const unsupported = [422, 'unsupported-pool'] as const

const notLabels: readonly (readonly [rule: string, subdomain: unknown])[] = [
  ['a label is not empty', ''],
  ['a label is not blank', ' \t '],
  ['a label begins with a letter, not a hyphen', '-a'],
  ['a label begins with a letter, not a digit', '1a'],
  ['a label does not end in a hyphen', 'a-'],
  ['a lone hyphen is not a label', '-'],
  ['a label is at most 63 characters', 'a'.repeat(64)],
  ['a very long label', 'a'.repeat(20_000)],
  ['one label, not two', 'a.b'],
  ['a label has no trailing dot', 'acme.'],
  ['a label has no leading dot', '.acme'],
  ['a dot is not a label', '.'],
  ['a label has no space inside', 'a b'],
  ['a label has no no-break space inside', 'a\u00a0b'],
  ['a label has no line break inside', 'a\nb'],
  ['a label has no NUL', 'a\u0000'],
  ['a label has no underscore', 'a_b'],
  ['a label has no slash', 'a/b'],
  ['a label has no percent-encoding', 'a%62'],
  ['a wildcard is not a label', '*'],
  ['the apex is not a label', '@'],
  ['a label has no quote or semicolon', "a'; drop table pool_allocations --"],
  ['an A-label is rejected', 'xn--bcher-kva'],
  ['"--" in positions 3 and 4 is rejected', 'ab--c'],
  ['"--" in positions 3 and 4 is rejected in upper case', 'AB--C'],
  ['a label is ASCII: no umlaut', 'b\u00fccher'],
  ['a label is ASCII: KELVIN SIGN is not lower-cased into k', '\u212ael'],
  ['a label is ASCII: LATIN SMALL LETTER LONG S is not s', 'a\u017f'],
  ['a label is ASCII: a full-width letter is not its narrow form', '\uff41cme'],
  ['a label is ASCII: Cyrillic a is not a', '\u0430cme'],
  ['a label has no zero-width joiner', 'ac\u200dme'],
  ['a label has no right-to-left override', 'ac\u202eme'],
  ['a label has no emoji', 'a\u{1f600}'],
  ['a label has no lone surrogate', 'a\ud800'],
]

const notPools: readonly (readonly [rule: string, segment: string])[] = [
  ['a pool that is not managed', 'other.test'],
  ['a name below a managed pool is not the pool', 'a.pool.test'],
  ['a name above a managed pool is not the pool', 'test'],
  ['a pool with a trailing dot is another text', 'pool.test.'],
  ['a pool with NUL', 'pool.test%00'],
  ['a pool with an incomplete percent-encoding', 'pool.test%'],
  ['a pool that is not UTF-8', '%ff%fe'],
  ['a pool with truncated UTF-8', '%E0%A4'],
  ['a pool that is encoded twice', '%2570ool.test'],
  ['a pool with an encoded slash', 'pool.test%2Fx'],
  ['a pool that is too long for a name', 'a'.repeat(2_000)],
  ['a pool with KELVIN SIGN', '%E2%84%AAool.test'],
  ['a pool with a quote', "pool.test'%20or%20'1'='1"],
  ['a prototype property is not a pool', '__proto__'],
  ['a blank pool', '%20'],
]

const reservedLabels = ['www', 'ADMIN', ' api ', '\tconsole\n', 'mta-sts', 'autodiscover', 'wpad', 'localhost', 'ns1']

export const nameRows: readonly BadRow[] = [
  ...notLabels.map(([rule, subdomain]) =>
    row(`reserve: ${rule}: ${describeValue(subdomain)}`, format, reserve({ subdomain })),
  ),
  row('release: a label in the body is validated in the same way', format, remove({ subdomain: 'a_b' })),
  row('release: a label in ?sub= is validated in the same way', format, {
    method: 'DELETE',
    path: `${poolPath}/release?sub=a_b`,
  }),
  row('release: an empty ?sub= is not a label', format, { method: 'DELETE', path: `${poolPath}/release?sub=` }),
  row('release: of two ?sub= parameters, the first counts', format, {
    method: 'DELETE',
    path: `${poolPath}/release?sub=-a&sub=held`,
  }),
  row('release: a body that names a bad label takes precedence over ?sub=', format, {
    ...remove({ subdomain: '-a' }),
    path: `${poolPath}/release?sub=held`,
  }),
  row('get: a label in the path is validated in the same way', format, { path: `${poolPath}/allocations/a_b` }),
  row('get: a label in the path that is not UTF-8', format, { path: `${poolPath}/allocations/%ff` }),
  row('get: a label in the path with NUL', format, { path: `${poolPath}/allocations/%00` }),
  row('get: a label in the path with an encoded slash', format, { path: `${poolPath}/allocations/a%2Fb` }),
  row('history: a label in ?sub= is validated in the same way', format, { path: `${poolPath}/history?sub=a_b` }),
  ...notPools.map(([rule, segment]) =>
    row(`reserve: ${rule}: ${describeValue(segment)}`, unsupported, {
      ...reserve({ subdomain: 'acme' }),
      path: `/api/v1/pool/${segment}/reserve`,
    }),
  ),
  row('release: a pool that is not managed', unsupported, {
    method: 'DELETE',
    path: '/api/v1/pool/other.test/release?sub=acme',
  }),
  row('list: a pool that is not managed', unsupported, { path: '/api/v1/pool/other.test/list' }),
  row('history: a pool that is not managed', unsupported, { path: '/api/v1/pool/other.test/history' }),
  row('get: a pool that is not managed', unsupported, { path: '/api/v1/pool/other.test/allocations/acme' }),
  ...reservedLabels.map(subdomain =>
    row(
      `reserve: a reserved label is rejected, case and space aside: ${describeValue(subdomain)}`,
      [422, 'reserved'],
      reserve({ subdomain }),
    ),
  ),
]

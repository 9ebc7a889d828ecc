import { gzipSync } from 'node:zlib'
import { poolPath, unknownToken } from '../../support/service.ts'
import { type BadRow, commitWith, describeValue, post, remove, reserve, row } from './row.ts'

// Each rule of a field has its table beside the rule, in packages/contract. Here each field has what could fail between the
// bytes of a request and its rule: other types, and characters that a parser, a path or the database could treat specially.

const json = [400, 'invalid-json'] as const
const format = [422, 'invalid-format'] as const
const tooLarge = [413, 'body-too-large'] as const
const unsupported = [422, 'unsupported-pool'] as const
const noToken = [422, 'missing-token'] as const
const mismatch = [403, 'token-mismatch'] as const

export const LIMIT_BYTES = 64 * 1_024
const good = JSON.stringify({ subdomain: 'acme' })

const notJson: readonly (readonly [rule: string, body: string | Uint8Array])[] = [
  ['no body', ''],
  ['white space', ' \r\n'],
  ['an unclosed object', '{"subdomain":"acme"'],
  ['an unclosed string', '{"subdomain":"acme'],
  ['single quotes', "{'subdomain':'acme'}"],
  ['a key without quotes', '{subdomain:"acme"}'],
  ['a trailing comma', '{"subdomain":"acme",}'],
  ['a comment', '{"subdomain":"acme"}//'],
  ['two values', `${good}${good}`],
  ['NaN', '{"subdomain":NaN}'],
  ['undefined', 'undefined'],
  ['a raw line break in a string', '{"subdomain":"ac\nme"}'],
  ['a raw NUL in a string', '{"subdomain":"ac\u0000me"}'],
  ['a trailing NUL', `${good}\u0000`],
  ['an unknown escape', '{"subdomain":"\\x61cme"}'],
  ['a form', 'subdomain=acme'],
  ['XML', '<subdomain>acme</subdomain>'],
  ['invalid UTF-8', Buffer.from('{"subdomain":"ac\xffme"}', 'latin1')],
  ['truncated UTF-8', Buffer.concat([Buffer.from('{"subdomain":"acme"}'), Buffer.from([0xe2, 0x84])])],
  ['a surrogate in UTF-8', Buffer.from('{"subdomain":"\xed\xa0\x80"}', 'latin1')],
  ['an overlong slash in UTF-8', Buffer.from('{"subdomain":"\xc0\xaf"}', 'latin1')],
  ['UTF-16', Buffer.from(`\ufeff${good}`, 'utf16le')],
  ['only a byte order mark', '\ufeff'],
  ['two byte order marks', `\ufeff\ufeff${good}`],
  ['gzip', gzipSync(good)],
  ['60,000 brackets that are not closed', '['.repeat(60_000)],
  ['12,000 nested objects that are not closed', '{"a":'.repeat(12_000)],
]

/** JSON, but not an object with the required fields. */
const notRequestObjects: readonly string[] = [
  'null',
  'true',
  '1',
  '1e999',
  '"acme"',
  '[]',
  '["acme"]',
  '[{"subdomain":"acme"}]',
  '{}',
  '{"Subdomain":"acme"}',
  '{"subdomain ":"acme"}',
  '{"subdomain":{"subdomain":"acme"}}',
  '{"__proto__":{"subdomain":"acme"}}',
  '{"constructor":{"prototype":{"subdomain":"acme"}}}',
  '{"subdomain":"acme","subdomain":"-"}',
  `${'['.repeat(30_000)}${']'.repeat(30_000)}`,
]

const notPools: readonly (readonly [rule: string, segment: string])[] = [
  ['a pool that is not managed', 'other.test'],
  ['a name below a managed pool is not the pool', 'a.pool.test'],
  ['a name above a managed pool is not the pool', 'test'],
  ['a pool with two final dots', 'pool.test..'],
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

/** Values of every JSON type except string. */
const notText: readonly unknown[] = [5, true, [], {}, ['held']]

const notLabels: readonly unknown[] = [
  '',
  'a.b',
  '.acme',
  '*',
  '@',
  'a/b',
  'a%62',
  'a\u0000',
  "a'; drop table pool_allocations --",
  'xn--bcher-kva',
  '\u212ael',
  'ac\u200dme',
  'ac\u202eme',
  'a\ud800',
  'a'.repeat(20_000),
]

const strangeTokens: readonly unknown[] = [
  'not-a-uuid',
  unknownToken,
  `{${unknownToken}}`,
  unknownToken.replaceAll('-', ''),
  `${unknownToken}\u0000`,
  '\ud800',
  "' or true --",
  'a'.repeat(60_000),
]

/** The fields of a commit that are also in other requests, or in none: the invalid values, and the error of each. */
const commitFields: readonly (readonly [field: string, error: BadRow['code'], values: readonly unknown[]])[] = [
  ['subdomain', 'invalid-format', [undefined, null, ...notText]],
  ['reservationToken', 'missing-token', [undefined, null, '', ...notText]],
  ['loadBalancerIP', 'missing-lb-ip', [undefined, null, '']],
  [
    'loadBalancerIP',
    'invalid-lb-ip',
    [
      ...notText,
      'lb.pool.test',
      ' 203.0.113.10',
      '203.0.113.10\u0000',
      '\uff12\uff10\uff13.0.113.10',
      '2001:db8::1',
      '0.0.0.0',
    ],
  ],
  [
    'sovereignFQDN',
    'invalid-fqdn',
    [
      undefined,
      null,
      ...notText,
      'held',
      'held.pool.test/x',
      '\u212aeld.pool.test',
      'held.pool.test\u0000',
      'held\ud800.pool.test',
    ],
  ],
]

const createdBys: readonly unknown[] = [
  ...notText,
  'a'.repeat(254),
  'team\u0000',
  'team\nb',
  'team\u001b[31m',
  'team\ud800',
]

export const poolRows: readonly BadRow[] = [
  ...notJson.map(([rule, body]) => row(`reserve: a body must be JSON in UTF-8: ${rule}`, json, reserve(body))),
  row('reserve: no body and no Content-Length', json, { method: 'POST', path: `${poolPath}/reserve` }),
  ...notRequestObjects.map(body =>
    row(`reserve: a body must be an object with subdomain: ${describeValue(body)}`, format, reserve(body)),
  ),
  ...['commit', 'renew'].map(verb => row(`${verb}: a body must be an object`, format, post(verb, '[]'))),
  row('release: a body must be an object with subdomain without ?sub=', format, remove('[]')),
  row('release: neither body nor ?sub=', format, remove(undefined)),
  ...[LIMIT_BYTES + 1, 1_024 * 1_024].flatMap(bytes =>
    [false, true].map(chunked =>
      row(`reserve: a body of ${bytes} bytes${chunked ? ', chunked' : ''}`, tooLarge, {
        ...reserve(good.padEnd(bytes)),
        chunked,
      }),
    ),
  ),
  row('a body above 64 KiB is rejected before it is read as JSON', tooLarge, reserve('['.repeat(LIMIT_BYTES + 1))),
  row('release: a body above 64 KiB is rejected although ?sub= is present', tooLarge, {
    method: 'DELETE',
    path: `${poolPath}/release?sub=held`,
    body: good.padEnd(LIMIT_BYTES + 1),
  }),

  ...[undefined, null, ...notText, ...notLabels].map(subdomain =>
    row(`reserve: subdomain is a label: ${describeValue(subdomain)}`, format, reserve({ subdomain })),
  ),
  ...[undefined, null, ...notText, 'a_b'].flatMap(subdomain => [
    row(`release: subdomain is a label if there is a body: ${describeValue(subdomain)}`, format, remove({ subdomain })),
    row(`renew: subdomain is a label: ${describeValue(subdomain)}`, format, ({ token }) =>
      post('renew', { subdomain, reservationToken: token }),
    ),
  ]),
  ...['a_b', '', '-a&sub=held'].map(query =>
    row(`release: the first ?sub= is a label: ${describeValue(query)}`, format, {
      method: 'DELETE',
      path: `${poolPath}/release?sub=${query}`,
    }),
  ),
  row('release: a body that names a bad label takes precedence over ?sub=', format, {
    ...remove({ subdomain: '-a' }),
    path: `${poolPath}/release?sub=held`,
  }),
  ...['allocations/a_b', 'allocations/%ff', 'allocations/%00', 'allocations/a%2Fb', 'history?sub=a_b'].map(path =>
    row(`a label in a path or query is validated in the same way: ${path}`, format, { path: `${poolPath}/${path}` }),
  ),
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
  ...['list', 'history', 'allocations/acme'].map(path =>
    row(`${path}: a pool that is not managed`, unsupported, { path: `/api/v1/pool/other.test/${path}` }),
  ),
  ...[' api ', '\tconsole\n'].map(subdomain =>
    row(
      `reserve: a reserved label is rejected, space aside: ${describeValue(subdomain)}`,
      [422, 'reserved'],
      reserve({ subdomain }),
    ),
  ),
  ...createdBys.map(createdBy =>
    row(
      `reserve: createdBy is text of at most 253 characters that can be stored: ${describeValue(createdBy)}`,
      format,
      reserve({ subdomain: 'acme', createdBy }),
    ),
  ),

  ...commitFields.flatMap(([field, code, values]) =>
    values.map(value => row(`commit: ${field}: ${describeValue(value)}`, [422, code], commitWith({ [field]: value }))),
  ),
  ...[undefined, null, '', ...notText].map(reservationToken =>
    row(
      `renew: reservationToken: ${describeValue(reservationToken)}`,
      noToken,
      post('renew', { subdomain: 'held', reservationToken }),
    ),
  ),
  ...strangeTokens.flatMap(reservationToken => {
    const rule = `a token that does not match, UUID or not: ${describeValue(reservationToken)}`
    const body = { subdomain: 'held', reservationToken }
    return [
      row(`commit: ${rule}`, mismatch, commitWith({ reservationToken })),
      row(`renew: ${rule}`, mismatch, post('renew', body)),
      row(`release: ${rule}`, mismatch, remove(body)),
    ]
  }),
  ...['', 5, {}].map(reservationToken =>
    row(
      `release: an optional token must match: ${describeValue(reservationToken)}`,
      mismatch,
      remove({ subdomain: 'held', reservationToken }),
    ),
  ),
]

import { unknownToken } from '../../support/service.ts'
import { type BadRow, commitWith, describeValue, post, remove, reserve, row } from './row.ts'

const format = [422, 'invalid-format'] as const
const noToken = [422, 'missing-token'] as const
const mismatch = [403, 'token-mismatch'] as const
const noAddress = [422, 'missing-lb-ip'] as const
const badAddress = [422, 'invalid-lb-ip'] as const
const badName = [422, 'invalid-fqdn'] as const

/** Values of every JSON type except string. */
const notText: readonly unknown[] = [5, true, [], {}, ['held']]

const strangeTokens: readonly unknown[] = [
  'not-a-uuid',
  unknownToken,
  '00000000-0000-0000-0000-000000000000',
  `{${unknownToken}}`,
  unknownToken.replaceAll('-', ''),
  `urn:uuid:${unknownToken}`,
  `${unknownToken}\u0000`,
  '\ud800',
  "' or true --",
  'a'.repeat(60_000),
]

const notAddresses: readonly (readonly [rule: string, loadBalancerIP: unknown])[] = [
  ['a name is not an address', 'lb.pool.test'],
  ['three octets', '203.0.113'],
  ['five octets', '203.0.113.10.1'],
  ['an octet above 255', '203.0.113.256'],
  ['a missing octet', '203.0..10'],
  ['a trailing dot', '203.0.113.10.'],
  ['a leading zero, which some parsers read as octal', '203.0.113.010'],
  ['octal', '0313.0.0161.012'],
  ['hexadecimal', '0xcb.0.0x71.0xa'],
  ['one number', '3405803786'],
  ['a sign', '203.0.113.-1'],
  ['a prefix length', '203.0.113.10/32'],
  ['a port', '203.0.113.10:443'],
  ['a leading space', ' 203.0.113.10'],
  ['a trailing line break', '203.0.113.10\n'],
  ['a trailing NUL', '203.0.113.10\u0000'],
  ['full-width digits', '\uff12\uff10\uff13.0.113.10'],
  ['two addresses', '203.0.113.10,203.0.113.11'],
  ['IPv6', '2001:db8::1'],
  ['IPv4 mapped into IPv6', '::ffff:203.0.113.10'],
  ['0.0.0.0', '0.0.0.0'],
  ['multicast', '224.0.0.1'],
  ['broadcast', '255.255.255.255'],
]

const notNames: readonly (readonly [rule: string, sovereignFQDN: unknown])[] = [
  ['absent', undefined],
  ['null is equivalent to an absent field', null],
  ['empty', ''],
  ['one label', 'held'],
  ['the root', '.'],
  ['an empty label', 'held..pool.test'],
  ['a leading dot', '.held.pool.test'],
  ['two trailing dots', 'held.pool.test..'],
  ['a label that begins with a hyphen', '-held.pool.test'],
  ['a label that ends in a hyphen', 'held-.pool.test'],
  ['a label of 64 characters', `${'a'.repeat(64)}.pool.test`],
  ['254 characters', `${'a.'.repeat(122)}pool.test1`],
  ['an address', '203.0.113.10'],
  ['a last label of digits only', 'held.pool.1'],
  ['a wildcard', '*.held.pool.test'],
  ['an underscore', '_held.pool.test'],
  ['a space', 'held pool.test'],
  ['a scheme', 'https://held.pool.test'],
  ['a path', 'held.pool.test/x'],
  ['a port', 'held.pool.test:443'],
  ['an umlaut', 'h\u00e4ld.pool.test'],
  ['KELVIN SIGN', '\u212aeld.pool.test'],
  ['NUL', 'held.pool.test\u0000'],
  ['a lone surrogate', 'held\ud800.pool.test'],
]

const createdBys: readonly (readonly [rule: string, createdBy: unknown])[] = [
  ['254 characters', 'a'.repeat(254)],
  ['NUL', 'team\u0000'],
  ['a line break', 'team\nb'],
  ['a terminal escape', 'team\u001b[31m'],
  ['a C1 control character', 'team\u0085'],
  ['a lone surrogate', 'team\ud800'],
]

export const fieldRows: readonly BadRow[] = [
  ...[undefined, null, ...notText].flatMap(subdomain => [
    row(`reserve: subdomain is a required string: ${describeValue(subdomain)}`, format, reserve({ subdomain })),
    row(`commit: subdomain is a required string: ${describeValue(subdomain)}`, format, commitWith({ subdomain })),
    row(
      `release: subdomain is a required string if there is a body: ${describeValue(subdomain)}`,
      format,
      remove({ subdomain }),
    ),
    row(`renew: subdomain is a required string: ${describeValue(subdomain)}`, format, ({ token }) =>
      post('renew', { subdomain, reservationToken: token }),
    ),
  ]),
  ...notText.map(createdBy =>
    row(
      `reserve: createdBy is a string: ${describeValue(createdBy)}`,
      format,
      reserve({ subdomain: 'acme', createdBy }),
    ),
  ),
  ...createdBys.map(([rule, createdBy]) =>
    row(
      `reserve: createdBy is at most 253 characters that can be stored: ${rule}`,
      format,
      reserve({ subdomain: 'acme', createdBy }),
    ),
  ),

  ...[undefined, null, '', ...notText].flatMap(reservationToken => [
    row(
      `commit: reservationToken is required: ${describeValue(reservationToken)}`,
      noToken,
      commitWith({ reservationToken }),
    ),
    row(
      `renew: reservationToken is required: ${describeValue(reservationToken)}`,
      noToken,
      post('renew', { subdomain: 'held', reservationToken }),
    ),
  ]),
  ...strangeTokens.flatMap(reservationToken => [
    row(
      `commit: a token that does not match, UUID or not: ${describeValue(reservationToken)}`,
      mismatch,
      commitWith({ reservationToken }),
    ),
    row(
      `renew: a token that does not match, UUID or not: ${describeValue(reservationToken)}`,
      mismatch,
      post('renew', { subdomain: 'held', reservationToken }),
    ),
    row(
      `release: a token that does not match, UUID or not: ${describeValue(reservationToken)}`,
      mismatch,
      remove({ subdomain: 'held', reservationToken }),
    ),
  ]),
  ...['', 5, {}].map(reservationToken =>
    row(
      `release: an optional token must match: ${describeValue(reservationToken)}`,
      mismatch,
      remove({ subdomain: 'held', reservationToken }),
    ),
  ),

  ...[undefined, null, ''].map(loadBalancerIP =>
    row(
      `commit: loadBalancerIP is required: ${describeValue(loadBalancerIP)}`,
      noAddress,
      commitWith({ loadBalancerIP }),
    ),
  ),
  ...notText.map(loadBalancerIP =>
    row(
      `commit: loadBalancerIP is a string: ${describeValue(loadBalancerIP)}`,
      badAddress,
      commitWith({ loadBalancerIP }),
    ),
  ),
  ...notAddresses.map(([rule, loadBalancerIP]) =>
    row(`commit: loadBalancerIP is a unicast IPv4 address: ${rule}`, badAddress, commitWith({ loadBalancerIP })),
  ),

  ...notText.map(sovereignFQDN =>
    row(`commit: sovereignFQDN is a string: ${describeValue(sovereignFQDN)}`, badName, commitWith({ sovereignFQDN })),
  ),
  ...notNames.map(([rule, sovereignFQDN]) =>
    row(`commit: sovereignFQDN is a fully qualified domain name: ${rule}`, badName, commitWith({ sovereignFQDN })),
  ),
]

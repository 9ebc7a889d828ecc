import { expect, test } from 'vitest'
import { createCommitRequest, createUpdateRequest } from './allocation.ts'
import { firstViolation } from './allocation-problem.ts'
import { formatTarget, splitTarget, type Target } from './target.ts'

const commit = createCommitRequest({ acceptsLoopback: false })
const update = createUpdateRequest({ acceptsLoopback: false }, false)
const base = { subdomain: 'acme', reservationToken: 't', sovereignFQDN: 'acme.pool.test' }
const read = (schema: typeof commit | typeof update, fields: object) => {
  const result = schema.safeParse({ ...base, ...fields })
  return result.success ? splitTarget(result.data).target : firstViolation(result.error).code
}

const ip = '203.0.113.10'
const digest = 'ab'.repeat(32)
const key = { keyTag: 1, algorithm: 13, digestType: 2, digest }
const names = (count: number) => Array.from({ length: count }, (_, i) => `ns${i}.example.com`)

test.each<[fields: object, expected: Target | string]>([
  [{ loadBalancerIP: ip }, { loadBalancerIP: ip }],
  [{ loadBalancerIPv6: '2001:DB8:0:0::1' }, { loadBalancerIPv6: '2001:db8::1' }],
  [{ loadBalancerIP: ip, loadBalancerIPv6: null, loadBalancerHostname: null }, { loadBalancerIP: ip }],
  [
    { loadBalancerIPv6: '64:ff9b::192.0.2.1', consoleLoadBalancerIP: ip },
    { loadBalancerIPv6: '64:ff9b::c000:201', consoleLoadBalancerIP: ip },
  ],
  [{ loadBalancerHostname: ' LB.Example.COM. ' }, { loadBalancerHostname: 'lb.example.com' }],
  [
    {
      nameservers: ['b.example.com', 'A.example.com.', 'b.example.com'],
      ds: [key, { ...key, digest: digest.toUpperCase() }],
    },
    { nameservers: ['a.example.com', 'b.example.com'], ds: [{ ...key, digest: digest.toUpperCase() }] },
  ],
  [{}, 'missing-lb-ip'],
  [{ sovereignFQDN: 'x' }, 'missing-lb-ip'],
  [{ reservationToken: '' }, 'missing-token'],
  [{ loadBalancerIP: '' }, 'missing-lb-ip'],
  [{ loadBalancerIP: '', loadBalancerHostname: 'lb.example.com' }, 'missing-lb-ip'],
  [{ loadBalancerIPv6: '' }, 'invalid-lb-ip'],
  ...[
    '::',
    '::1',
    '::2',
    '::1.2.3.4',
    'fe80::1',
    'febf::1',
    'ff02::1',
    '::ffff:192.0.2.1',
    '::ffff:0:0',
    ip,
    'fe80::1%eth0',
    '1::2::3',
    '2001:db8::/64',
    5,
    {},
  ].map((address): [object, string] => [{ loadBalancerIPv6: address }, 'invalid-lb-ip']),
  [{ loadBalancerIP: ip, consoleLoadBalancerIP: '2001:db8::1' }, 'invalid-lb-ip'],
  [{ loadBalancerIP: ip, consoleLoadBalancerIP: '' }, 'invalid-lb-ip'],
  [{ consoleLoadBalancerIP: ip }, 'invalid-target'],
  ...['lb', ip, 'a_b.example.com', 'x'.repeat(64).concat('.com'), '', 5].map((name): [object, string] => [
    { loadBalancerHostname: name },
    'invalid-lb-hostname',
  ]),
  ...[
    [],
    names(1),
    names(9),
    ['a.example.com', 'A.example.com.'],
    ['a.example.com', 'b'],
    ['a.example.com', 5],
    'a.example.com',
  ].map((nameservers): [object, string] => [{ nameservers }, 'invalid-nameservers']),
  [{ ds: [key] }, 'invalid-nameservers'],
  ...[
    [],
    [{ ...key, digest: 'AB' }],
    [{ ...key, digest: 'xy' }],
    [{ ...key, keyTag: 65_536 }],
    [{ ...key, algorithm: 0 }],
    [{}],
    Array(9).fill(key),
    key,
  ].map((ds): [object, string] => [{ nameservers: names(2), ds }, 'invalid-ds']),
  [{ loadBalancerIP: ip, loadBalancerHostname: 'lb.example.com' }, 'invalid-target'],
  [{ loadBalancerHostname: 'lb.example.com', nameservers: names(2) }, 'invalid-target'],
  [{ loadBalancerIP: ip, ds: [key], sovereignFQDN: 'x' }, 'invalid-target'],
  [{ loadBalancerIP: ip, sovereignFQDN: 'x' }, 'invalid-fqdn'],
])('commit with %j: %j', (fields, expected) => {
  expect(read(commit, fields)).toEqual(expected)
})

test.each<[fields: object, expected: object | string]>([
  [{}, {}],
  [{ loadBalancerIPv6: null }, { loadBalancerIPv6: null }],
  [{ consoleLoadBalancerIP: ip }, { consoleLoadBalancerIP: ip }],
  [
    { loadBalancerIP: null, loadBalancerHostname: 'lb.example.com' },
    { loadBalancerIP: null, loadBalancerHostname: 'lb.example.com' },
  ],
  [{ loadBalancerHostname: null, nameservers: null, ds: null }, {}],
  [{ ds: [key] }, 'invalid-nameservers'],
  [{ loadBalancerIP: ip, nameservers: names(2) }, 'invalid-target'],
])('update with %j: %j', (fields, expected) => {
  expect(read(update, fields)).toEqual(expected)
})

test('a target in one line', () => {
  expect(
    formatTarget({ loadBalancerIP: ip, loadBalancerIPv6: '2001:db8::1', consoleLoadBalancerIP: '192.0.2.1' }),
  ).toBe('203.0.113.10, 2001:db8::1, console 192.0.2.1')
  expect(formatTarget({ nameservers: names(2), ds: [{ ...key, digest: 'AB' }] })).toBe(
    'ns0.example.com, ns1.example.com, DS 1 13 2 AB',
  )
  expect(formatTarget({})).toBe('')
})

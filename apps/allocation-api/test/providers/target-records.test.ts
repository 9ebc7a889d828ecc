import type { Target, TargetChange } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import { createRecords, findTarget, planTarget, toTargetColumns } from '../../src/dns/domain/target.ts'
import { validateCloudflareChange } from '../../src/dns/providers/cloudflare/write.ts'
import { validateRecordSet } from '../../src/dns/providers/dynadot/record.ts'
import { validateChange } from '../../src/dns/providers/local/provider.ts'
import { validatePowerdnsChange } from '../../src/dns/providers/powerdns/rrset.ts'
import { buildUpdates } from '../../src/dns/providers/rfc2136/update.ts'

const fqdn = 'acme.pool.test'
const toText = ({ name, type, values }: RecordSet) =>
  `${name.slice(0, -fqdn.length).replace(/\.$/, '') || '@'} ${type} ${values.join(' ')}`

const digest = 'AB'.repeat(32)
const key = { keyTag: 12_345, algorithm: 13, digestType: 2, digest }
const nameservers = ['ns1.cloud.example', 'ns2.cloud.example']
const all = ['cloudflare', 'dynadot', 'local', 'powerdns', 'rfc2136']
const withNs = all.filter(provider => provider !== 'dynadot')

const isAccepted: Readonly<Record<string, (set: RecordSet) => boolean>> = {
  cloudflare: set => validateCloudflareChange('pool.test', { kind: 'upsert', set }) === undefined,
  dynadot: set => validateRecordSet(set, 'pool.test') === undefined,
  local: set => validateChange('pool.test', { kind: 'upsert', set }) === undefined,
  powerdns: set => validatePowerdnsChange('pool.test', { kind: 'upsert', set }) === undefined,
  rfc2136: set =>
    buildUpdates('pool.test', [{ kind: 'upsert', set }], { present: undefined, limit: 60_000 }).rejected.size === 0,
}

const forms: readonly [target: Target, names: string[], records: string[], providers: string[]][] = [
  [{ loadBalancerIP: '192.0.2.1' }, ['@', '*'], ['@ A 192.0.2.1', '* A 192.0.2.1'], all],
  [{ loadBalancerIP: '192.0.2.1' }, ['console'], ['console A 192.0.2.1'], all],
  [
    { loadBalancerIP: '192.0.2.1', loadBalancerIPv6: '2001:db8::1' },
    ['@', 'api'],
    ['@ A 192.0.2.1', '@ AAAA 2001:db8::1', 'api A 192.0.2.1', 'api AAAA 2001:db8::1'],
    all,
  ],
  [{ loadBalancerIPv6: '2001:db8::1' }, ['@', '*'], ['@ AAAA 2001:db8::1', '* AAAA 2001:db8::1'], all],
  [
    { loadBalancerIP: '192.0.2.1', consoleLoadBalancerIP: '192.0.2.9' },
    ['@', '*', 'console', 'api', 'gitea'],
    ['@ A 192.0.2.1', '* A 192.0.2.1', 'console A 192.0.2.9', 'api A 192.0.2.9', 'gitea A 192.0.2.1'],
    all,
  ],
  [
    { loadBalancerIPv6: '2001:db8::1', consoleLoadBalancerIP: '192.0.2.9' },
    ['@', 'console'],
    ['@ AAAA 2001:db8::1', 'console A 192.0.2.9', 'console AAAA 2001:db8::1'],
    all,
  ],
  [
    { loadBalancerHostname: 'lb.cloud.example' },
    ['@', '*', 'console'],
    [
      '@ CNAME lb.cloud.example.',
      '* CNAME lb.cloud.example.',
      'console CNAME lb.cloud.example.',
      '_acme-challenge TXT ""',
    ],
    all,
  ],
  [
    { loadBalancerHostname: 'lb.cloud.example' },
    ['@', '_acme-challenge'],
    ['@ CNAME lb.cloud.example.', '_acme-challenge CNAME lb.cloud.example.'],
    all,
  ],
  [{ nameservers }, ['@', '*'], ['@ NS ns1.cloud.example. ns2.cloud.example.'], withNs],
  [
    { nameservers, ds: [key] },
    ['console'],
    ['@ NS ns1.cloud.example. ns2.cloud.example.', `@ DS 12345 13 2 ${digest}`],
    withNs,
  ],
]

describe.each(forms)('%j at %j', (target, names, records, providers) => {
  const template = { names, ttl: 300 }
  const sets = createRecords(fqdn, target, template)

  test('has its records, and providers accept them', () => {
    expect(sets.map(toText)).toEqual(records)
    expect(new Set(sets.map(({ ttl }) => ttl))).toEqual(new Set([300]))
    expect(all.filter(provider => sets.every(set => isAccepted[provider]?.(set)))).toEqual(providers)
  })

  test('is the target of its records, with another TTL and beside others, and of nothing less', () => {
    const other = { name: `x.y.${fqdn}`, type: 'A', ttl: 60, values: ['192.0.2.77'] }
    const found = [...sets.map(set => ({ ...set, ttl: 60 })), other]
    expect(findTarget(fqdn, found, template)?.target).toEqual(target)
    expect(findTarget(fqdn, found, template)?.records.map(recordKey)).toEqual(sets.map(recordKey))
    for (const missing of sets) {
      const rest = found.filter(set => recordKey(set) !== recordKey(missing))
      expect(findTarget(fqdn, rest, template)?.target).not.toEqual(target)
    }
  })
})

test('a name with other records at a name of the target has the target without them', () => {
  const sets = createRecords(fqdn, { loadBalancerIP: '192.0.2.1' }, { names: ['@', '*'], ttl: 60 })
  const stray = { name: fqdn, type: 'AAAA', ttl: 60, values: ['2001:db8::9'] }
  const found = findTarget(fqdn, [...sets, stray], { names: ['@', '*'], ttl: 60 })
  expect(found).toEqual({ target: { loadBalancerIP: '192.0.2.1' }, records: sets })
})

const both = { loadBalancerIP: '192.0.2.1', loadBalancerIPv6: '2001:db8::1' }
const hostname = { loadBalancerHostname: 'lb.cloud.example' }
test.each<[string, Target, TargetChange, Target | null]>([
  ['an address keeps the others', both, { loadBalancerIP: '192.0.2.2' }, { ...both, loadBalancerIP: '192.0.2.2' }],
  ['null removes an address', both, { loadBalancerIP: null }, { loadBalancerIPv6: '2001:db8::1' }],
  ['one address stays', { loadBalancerIP: '192.0.2.1' }, { loadBalancerIP: null }, null],
  [
    'that of the console is not enough',
    both,
    { loadBalancerIP: null, loadBalancerIPv6: null, consoleLoadBalancerIP: '192.0.2.9' },
    null,
  ],
  ['another form replaces the target', both, hostname, hostname],
  ['null beside another form', both, { loadBalancerIP: null, ...hostname }, hostname],
  [
    'addresses replace another form',
    hostname,
    { loadBalancerIPv6: '2001:db8::1' },
    { loadBalancerIPv6: '2001:db8::1' },
  ],
  ['only null for another form', hostname, { loadBalancerIPv6: null }, null],
  ['name servers without DS', { nameservers, ds: [key] }, { nameservers }, { nameservers }],
])('a change of a target: %s', (_, current, change, expected) => {
  const { target, kept, replaced } = planTarget(current, change)
  expect(target).toEqual(expected)
  const fields = Object.entries(current).filter(([field]) => !replaced.includes(field))
  expect(kept).toEqual(Object.fromEntries(fields))
})

test.each([
  [{ loadBalancerIP: '192.0.2.1' }, '192.0.2.1', null],
  [both, '192.0.2.1', both],
  [hostname, null, hostname],
  [null, null, null],
])('the columns of %j', (target, load_balancer_ip, column) => {
  expect(toTargetColumns(target)).toEqual({ load_balancer_ip, target: column })
})

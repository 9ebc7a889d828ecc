import type { Target } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { recordKey } from '../../src/dns/domain/rrset.ts'
import { createRecords } from '../../src/dns/domain/target.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { poolDomain, template, useDnsFixture } from '../support/dns-fixture.ts'

const caller: Caller = { actor: 'operator', address: '192.0.2.200', requestId: 'targets' }
const nameservers = ['ns1.cloud.example', 'ns2.cloud.example']
const forms: readonly [string, Target][] = [
  ['an IPv4 address', { loadBalancerIP: '192.0.2.1' }],
  ['an IPv6 address', { loadBalancerIPv6: '2001:db8::1' }],
  [
    'three addresses',
    { loadBalancerIP: '192.0.2.1', loadBalancerIPv6: '2001:db8::1', consoleLoadBalancerIP: '192.0.2.9' },
  ],
  ['a host name', { loadBalancerHostname: 'lb.cloud.example' }],
  ['name servers', { nameservers }],
  ['name servers with DS', { nameservers, ds: [{ keyTag: 1, algorithm: 13, digestType: 2, digest: 'AB'.repeat(32) }] }],
]

describe.each(forms)('a name with %s', (_, target) => {
  const fixture = useDnsFixture()
  const { replica, activate, update, release, events } = fixture
  const recordTemplate = { names: ['@', '*', 'console'], ttl: 60 }
  const at = (names: readonly string[]) => createRecords(`acme.${poolDomain}`, target, { names, ttl: 60 })
  const zone = () => [...fixture.provider.records.values()].map(recordKey).sort()
  const readRow = async () => {
    const [row] = await fixture.sql`
      select state, coalesce(target, jsonb_build_object('loadBalancerIP', host(load_balancer_ip))) as target
      from pool_allocations where subdomain = 'acme'`
    return row
  }

  test('is published, repaired after drift, changed and withdrawn', async () => {
    const { dns } = replica()
    const desired = at(template.names)
    await dns.waitUntilApplied(await activate('acme', '192.0.2.77'))
    await dns.waitUntilApplied(await update('acme', target))
    expect(zone()).toEqual(desired.map(recordKey).sort())
    const [first] = desired
    if (first) fixture.provider.records.delete(recordKey(first))
    expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 1, pending: 0 })
    expect(zone()).toEqual(desired.map(recordKey).sort())
    expect(await dns.preview(poolDomain)).toMatchObject({ changeCount: 0, conflictCount: 0, orphanCount: 0 })
    await dns.waitUntilApplied(await update('acme', '192.0.2.78'))
    expect(zone()).toEqual([`*.acme.${poolDomain} A`, `acme.${poolDomain} A`])
    await dns.waitUntilApplied(await update('acme', target))
    await dns.waitUntilApplied(await release('acme'))
    expect(zone()).toEqual([])
  })

  test('gets the records of another template, and none that differ are left', async () => {
    const { dns } = replica({ recordTemplate })
    await dns.waitUntilApplied(await activate('acme', target))
    await dns.republish(poolDomain, caller)
    await dns.syncDueZones()
    expect(zone()).toEqual(at(recordTemplate.names).map(recordKey).sort())
  })

  test('is an orphan of a database without it, and adopted as it was', async () => {
    const { dns } = replica({ recordTemplate })
    for (const set of at(recordTemplate.names)) fixture.provider.records.set(recordKey(set), set)
    const before = zone()
    const options = { action: 'adopt', caller, subdomains: null } as const
    expect(await dns.changeOrphans(poolDomain, options)).toMatchObject({
      orphans: [{ target, otherCount: 0 }],
      changedCount: 1,
    })
    expect(await readRow()).toEqual({ state: 'active', target })
    expect(zone()).toEqual(before)
    expect(await dns.preview(poolDomain)).toMatchObject({ changeCount: 0, conflictCount: 0, orphanCount: 0 })
  })

  test('is what a trusted zone says: of another target, and of a free name', async () => {
    const { dns } = replica({ recordTemplate })
    await dns.waitUntilApplied(await activate('acme', '192.0.2.88'))
    await fixture.sql`update dns_zone_writes set stopped_cause = 'imported', stopped_at = now()`
    fixture.provider.records.clear()
    for (const set of at(recordTemplate.names)) fixture.provider.records.set(recordKey(set), set)
    const resumed = await dns.resume(poolDomain, { trust: 'zone', caller })
    expect(resumed).toMatchObject({
      differences: [{ subdomain: 'acme', databaseAddress: '192.0.2.88', action: 'readdress' }],
    })
    expect(await readRow()).toEqual({ state: 'active', target })
    expect((await events('acme')).join()).toContain('updated')
  })
})

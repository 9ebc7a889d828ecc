import type { Target } from '@pool/contract'
import { expect, test } from 'vitest'
import { resolve } from '../../src/dns/providers/local/domain/resolve.ts'
import { createMarkerRecord, parseMarkers, toMarkerName } from '../../src/reconciler/domain/zone-marker.ts'
import { createReconcilerRepository } from '../../src/reconciler/repository.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'
import { cleanUp, createTenants, operator, present, put, remove, toChallenge } from '../support/tenant-fixture.ts'

const template = { names: ['@', '*'], ttl: 60, challengeTtl: 1 }
const fixture = useDnsFixture()

const start = (options: Parameters<typeof fixture.replica>[0] = {}) => {
  const { dns, sync } = fixture.replica({ recordTemplate: template, ...options })
  const tenants = createTenants(fixture.sql, { waitUntilApplied: dns.waitUntilApplied, template })
  return { dns, tenants, sync }
}

/** The values that the zone answers with, relative to acme.pool.test; null: none. */
const ask = (name: string, type = 'A') => {
  const records = [...fixture.provider.records.values()]
  const { answers, rcode } = resolve(poolDomain, { serial: 1, records }, { name: `${name}.${poolDomain}`, type })
  return answers[0]?.values ?? rcode
}
const keys = () => [...fixture.provider.records.keys()].sort()
const TEMPLATE = ['*.acme.pool.test A', 'acme.pool.test A']

test('a write waits for the provider, and nothing that answered stops to', async () => {
  const { tenants } = start()
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  const answers = () => ['acme', 'shop.acme', 'a.shop.acme', 'b.c.shop.acme'].map(name => ask(name))
  const before = answers()
  expect(before).toEqual(Array(4).fill(['192.0.2.1']))
  for (const change of [
    present('shop.acme.pool.test', 'a'),
    put('x.b.shop.acme.pool.test', 'TXT', 't'),
    present('acme.pool.test', 'a'),
  ]) {
    expect(await tenants.publish(token, change)).toEqual({
      kind: 'changed',
      refusals: [],
      dns: { status: 'published' },
    })
    expect(answers()).toEqual(before)
  }
  expect(ask('_acme-challenge.shop.acme', 'TXT')).toEqual([`"${toChallenge('a')}"`])
  expect(ask('x.b.shop.acme', 'TXT')).toEqual(['"t"'])
  await tenants.publish(
    token,
    cleanUp('shop.acme.pool.test', 'a'),
    cleanUp('acme.pool.test', 'a'),
    remove('x.b.shop.acme.pool.test', 'TXT'),
  )
  expect(keys()).toEqual(TEMPLATE)
  expect(await fixture.events('acme')).toEqual(
    ['reserved', 'committed', 'published', 'token-minted', ...Array(4).fill(['records-changed', 'published'])].flat(),
  )
})

test('without the provider, the change is stored, and a repetition says when it is served', async () => {
  const { tenants } = start()
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  fixture.provider.faults.push({ result: { kind: 'unavailable', reason: 'down', scope: 'zone' } })
  expect(await tenants.publish(token, present('acme.pool.test', 'a'))).toMatchObject({
    kind: 'changed',
    dns: { status: 'failing', detail: 'down' },
  })
  expect(await tenants.read(token)).toMatchObject({ sets: [{ isChallenge: true }], dns: { status: 'failing' } })
  await fixture.advance(700_000)
  expect(await tenants.publish(token, present('acme.pool.test', 'a'))).toMatchObject({ dns: { status: 'published' } })
  expect(ask('_acme-challenge.acme', 'TXT')).toHaveLength(1)
})

test('a rejected record fails alone: those of the target stay, and the tenant gets the reason', async () => {
  const { tenants } = start()
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  fixture.provider.rejectedNames.add('bad.acme.pool.test')
  expect(
    await tenants.publish(
      token,
      put('bad.acme.pool.test', 'A', '192.0.2.9'),
      put('good.acme.pool.test', 'A', '192.0.2.9'),
    ),
  ).toMatchObject({
    dns: { status: 'failing', detail: expect.stringContaining('bad.acme.pool.test') },
  })
  expect(keys()).toEqual([...TEMPLATE, 'good.acme.pool.test A'].sort())
  fixture.provider.rejectedNames.clear()
  expect(await tenants.publish(token, remove('bad.acme.pool.test', 'A'))).toMatchObject({
    dns: { status: 'published' },
  })
})

test("drift in a tenant's records is repaired, and records of other writers stay until the release", async () => {
  const { dns, tenants } = start()
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  await tenants.publish(token, put('a.shop.acme.pool.test', 'A', '192.0.2.9'), present('acme.pool.test', 'a'))
  const wanted = keys()
  const { records } = fixture.provider
  records.set('a.shop.acme.pool.test A', { name: 'a.shop.acme.pool.test', type: 'A', ttl: 5, values: ['198.51.100.1'] })
  records.delete('*.shop.acme.pool.test A')
  records.delete('_acme-challenge.acme.pool.test TXT')
  const foreign = { name: 'other.acme.pool.test', type: 'A', ttl: 5, values: ['198.51.100.2'] }
  records.set('other.acme.pool.test A', foreign)
  expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', driftedCount: 1, pending: 0 })
  expect(keys()).toEqual([...wanted, 'other.acme.pool.test A'].sort())
  expect(ask('a.shop.acme')).toEqual(['192.0.2.9'])
  await tenants.release('acme')
  expect(keys()).toEqual([])
  const [row] = await fixture.sql`select deleted_records from allocation_history where event = 'withdrawn'`
  expect(row?.deleted_records).toMatchObject([{ name: 'other.acme.pool.test' }])
})

test('a new name is published before the changes of tenants, whenever these were made', async () => {
  const { tenants } = start()
  for (const name of ['acme', 'beta']) await tenants.activate(name)
  const unpublished = createTenants(fixture.sql, { template })
  for (const name of ['acme', 'beta']) {
    await unpublished.change(await unpublished.mint(name), present(`${name}.pool.test`, 'a'))
  }
  await unpublished.activate('gamma')
  await unpublished.release('beta')
  const due = await createReconcilerRepository(fixture.sql, { timeoutMs: 20_000 }).listDue(poolDomain, 10)
  expect(due.map(({ subdomain }) => subdomain)).toEqual(['beta', 'gamma', 'acme'])
})

test.each([false, true])(
  'a release during the wait of a write, granted again %s: the write is not a success',
  async isGranted => {
    const { tenants, dns } = start()
    await tenants.activate('acme')
    const other = createTenants(fixture.sql, {
      template,
      async waitUntilApplied(desired) {
        await tenants.release('acme')
        if (isGranted) await tenants.activate('acme')
        return dns.waitUntilApplied(desired)
      },
    })
    const token = await tenants.mint('acme')
    expect(await other.publish(token, present('acme.pool.test', 'a'))).toEqual({ kind: 'unauthorized' })
    expect(keys()).toEqual(isGranted ? TEMPLATE : [])
  },
)

test('a write whose response is lost leaves nothing after the release', async () => {
  const { dns, tenants, sync } = start({ waitMs: 0 })
  await tenants.activate('acme')
  await sync()
  const token = await tenants.mint('acme')
  fixture.provider.faults.push(null, { result: { kind: 'unavailable', reason: 'lost' }, takesEffect: true })
  await tenants.change(token, put('a.shop.acme.pool.test', 'A', '192.0.2.9'))
  await sync()
  expect(keys()).toContain('a.shop.acme.pool.test A')
  await tenants.release('acme')
  await fixture.advance(700_000)
  await sync()
  await dns.repair(poolDomain)
  expect(keys()).toEqual([])
})

test('every form of target after every other one: the records of the tenant as far as the form has any', async () => {
  const { tenants } = start()
  const forms: readonly Target[] = [
    { loadBalancerIP: '192.0.2.1' },
    { loadBalancerIPv6: '2001:db8::1' },
    { loadBalancerHostname: 'lb.example' },
    { nameservers: ['ns1.example', 'ns2.example'] },
  ]
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  for (const from of forms) {
    for (const to of forms) {
      expect((await tenants.update('acme', from)).kind).toBe('updated')
      const written = await tenants.publish(
        token,
        put('a.shop.acme.pool.test', 'TXT', 't'),
        present('acme.pool.test', 'a'),
      )
      expect(written.kind).toBe(from.nameservers ? 'refused' : 'changed')
      expect(await tenants.update('acme', to)).toMatchObject({
        kind: 'updated',
        allocation: { dns: { status: 'published' } },
      })
      const hasRecords = !from.nameservers && !to.nameservers
      expect(ask('a.shop.acme', 'TXT')).toEqual(
        hasRecords ? ['"t"'] : to.nameservers ? 'NOERROR' : to.loadBalancerHostname ? ['lb.example.'] : 'NOERROR',
      )
      if (to.nameservers) expect(keys()).toEqual(['acme.pool.test NS'])
      else {
        const type = to.loadBalancerIP ? 'A' : 'AAAA'
        for (const name of ['acme', 'shop.acme', 'x.shop.acme']) {
          expect(ask(name, type)).toEqual([to.loadBalancerIP ?? to.loadBalancerIPv6 ?? 'lb.example.'])
        }
        const empty = to.loadBalancerHostname ? ['""'] : []
        expect(ask('_acme-challenge.acme', 'TXT')).toEqual(
          hasRecords ? [...empty, `"${toChallenge('a')}"`] : to.loadBalancerHostname ? empty : 'NOERROR',
        )
      }
      await tenants.publish(token, remove('a.shop.acme.pool.test', 'TXT'), cleanUp('acme.pool.test', 'a'))
    }
  }
})

test('another template is published with the records of the tenants, which keep their names unless the template has them', async () => {
  const { tenants } = start()
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  await tenants.publish(
    token,
    put('shop.acme.pool.test', 'A', '192.0.2.9'),
    put('api.acme.pool.test', 'A', '192.0.2.9'),
  )
  const { dns } = start({ recordTemplate: { names: ['@', 'api'], ttl: 60, challengeTtl: 1 } })
  expect(await dns.republish(poolDomain, operator)).toMatchObject({ kind: 'republished', nameCount: 1, pending: 0 })
  expect(keys()).toEqual(['acme.pool.test A', 'api.acme.pool.test A', 'shop.acme.pool.test A'])
  expect(ask('api.acme')).toEqual(['192.0.2.1'])
  expect(await dns.republish(poolDomain, operator)).toMatchObject({ nameCount: 0 })
})

test.each([
  ['the same address', '192.0.2.1', 'publish', 1],
  ['another address', '192.0.2.7', 'readdress', 0],
])('a zone that another database wrote, with %s: %s', async (_, address, action, tokens) => {
  const { dns, tenants } = start()
  await tenants.activate('acme')
  const token = await tenants.mint('acme')
  await tenants.publish(token, put('shop.acme.pool.test', 'A', '192.0.2.9'))
  const { records, markers } = fixture.provider
  records.delete('shop.acme.pool.test A')
  for (const key of TEMPLATE)
    records.set(key, { ...(records.get(key) ?? { name: '', type: 'A', ttl: 60 }), values: [address] })
  const [marker] = parseMarkers(poolDomain, [...markers.values()])
  markers.set(
    `${toMarkerName(poolDomain)} TXT`,
    createMarkerRecord(poolDomain, { installation: marker?.installation ?? '', serial: 999 }, 60),
  )
  expect(await dns.resume(poolDomain, { trust: 'zone', caller: operator })).toMatchObject({
    kind: 'resumed',
    differences: [{ subdomain: 'acme', databaseAddress: '192.0.2.1', zoneAddress: address, action }],
  })
  expect(await fixture.sql`select from record_tokens`).toHaveLength(tokens)
  expect((await tenants.read(token)).kind).toBe(tokens ? 'read' : 'unauthorized')
  expect(keys()).toEqual(tokens ? [...TEMPLATE, 'shop.acme.pool.test A'].sort() : TEMPLATE)
})

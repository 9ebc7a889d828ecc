import { expect, test } from 'vitest'
import { createOperationsRepository } from '../../src/reconciler/operations-repository.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'
import { holdLock, withLease } from '../support/locks.ts'

const operator = { actor: 'operator', address: '192.0.2.200', requestId: 'republish' } as const
const recordTemplate = { names: ['@', 'api'], ttl: 30 }

const fixture = useDnsFixture()
const { replica, activate, update, release, events } = fixture

test('1200 names in batches: every name gets the records of the template and one entry in the history', async () => {
  await fixture.sql`
    with names as (select 'n' || n as subdomain from generate_series(1, 1200) n),
      allocations as (
        insert into pool_allocations
          (pool_domain, subdomain, state, reserved_at, token_hash, created_by, sovereign_fqdn, load_balancer_ip, committed_at)
        select ${poolDomain}, subdomain, 'active', now(), sha256(subdomain::bytea), 'owner', subdomain || '.pool.test',
          '192.0.2.1', now() from names
      )
    insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
    select ${poolDomain}, subdomain, nextval('dns_version'), jsonb_build_array(jsonb_build_object(
      'name', subdomain || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1'))), now(), now()
    from names`
  const { dns } = replica({ recordTemplate })
  expect(await dns.republish(poolDomain, null)).toMatchObject({ kind: 'planned', nameCount: 1_200, changeCount: 2_400 })
  expect(await dns.republish(poolDomain, operator)).toMatchObject({
    ...{ kind: 'republished', nameCount: 1_200, changeCount: 2_400, pending: 0 },
    changes: { length: 1_000 },
  })
  expect(fixture.provider.records.size).toBe(2_400)
  const [counts] = await fixture.sql`
    select count(*) as entries, count(distinct subdomain) as names, count(*) filter (
      where actor = 'operator' and address = '192.0.2.200' and request_id = 'republish' and created_by = 'owner') as complete
    from allocation_history where event = 'republished'`
  expect(counts).toEqual({ entries: 1_200, names: 1_200, complete: 1_200 })
  expect(await dns.republish(poolDomain, operator)).toMatchObject({ nameCount: 0 })
})

test('a name that was released or changed since it was read is left alone', async () => {
  const { dns } = replica({ recordTemplate })
  for (const name of ['changed', 'released', 'same']) await activate(name)
  const { republish, listActive } = createOperationsRepository(fixture.sql, { timeoutMs: 5_000 })
  const names = await listActive(poolDomain, '', 10)
  await update('changed', '192.0.2.9')
  await release('released')
  const changed = names.map(name => ({ ...name, desired: [] }))
  await withLease(fixture.sql, poolDomain, lease => republish(poolDomain, changed, operator, lease))
  const rows = await fixture.sql<{ subdomain: string }[]>`
    select subdomain from allocation_history where event = 'republished'`
  expect(rows.map(row => row.subdomain)).toEqual(['same'])
  await dns.republish(poolDomain, operator)
  expect(fixture.provider.names()).toEqual([
    'api.changed.pool.test',
    'api.same.pool.test',
    'changed.pool.test',
    'same.pool.test',
  ])
})

test('the records of other writers stay, and so do the records that both templates have', async () => {
  const { dns } = replica({ recordTemplate })
  await dns.waitUntilApplied(await activate('acme'))
  const foreign = { name: 'shop.acme.pool.test', type: 'A', ttl: 60, values: ['198.51.100.1'] }
  fixture.provider.records.set('shop.acme.pool.test A', foreign)
  await dns.republish(poolDomain, operator)
  expect(fixture.provider.names()).toEqual(['acme.pool.test', 'api.acme.pool.test', 'shop.acme.pool.test'])
  expect((await events('acme')).slice(2)).toEqual(['published', 'republished', 'published'])
})

test('while another replica holds the zone: busy, and nothing is changed', async () => {
  const { dns } = replica({ recordTemplate, lockWaitMs: 100 })
  await activate('acme')
  await fixture.sql`insert into zone_leases (name) values (${poolDomain}) on conflict do nothing`
  const held = await holdLock(fixture.sql, tx => tx`select from zone_leases for update`)
  expect(await dns.republish(poolDomain, operator)).toEqual({ kind: 'busy' })
  await held.release()
  expect(await events('acme')).toEqual(['reserved', 'committed'])
})

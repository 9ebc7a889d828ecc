import { describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import { createRecords } from '../../src/dns/domain/target.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { createOperationsRepository } from '../../src/reconciler/operations-repository.ts'
import type { OrphanAction } from '../../src/reconciler/orphans.ts'
import { poolDomain, template, useDnsFixture } from '../support/dns-fixture.ts'
import { withLease } from '../support/locks.ts'

const caller: Caller = { actor: 'operator', address: '192.0.2.200', requestId: 'orphans' }

describe('records without a row', () => {
  const fixture = useDnsFixture()
  const { replica, activate, release, events, row } = fixture
  const put = (...sets: readonly RecordSet[]) => {
    for (const set of sets) fixture.provider.records.set(recordKey(set), set)
  }
  const recordsOf = (subdomain: string, address = '198.51.100.7') =>
    createRecords(`${subdomain}.${poolDomain}`, { loadBalancerIP: address }, { ...template, ttl: 120 })
  const note: RecordSet = { name: `note.lost.${poolDomain}`, type: 'TXT', ttl: 60, values: ['"theirs"'] }
  const change = (action: OrphanAction, isDryRun = false, subdomains: readonly string[] | null = null) =>
    replica().dns.changeOrphans(poolDomain, { action, caller: isDryRun ? null : caller, subdomains })

  const lost = {
    subdomain: 'lost',
    target: { loadBalancerIP: '198.51.100.7' },
    records: recordsOf('lost'),
    otherCount: 1,
  }
  const found = {
    subdomain: 'found',
    target: { loadBalancerIP: '198.51.100.8' },
    records: recordsOf('found', '198.51.100.8'),
    otherCount: 0,
  }

  /** An active name, and two names whose rows a restored database does not have. */
  const prepare = async () => {
    await replica().dns.waitUntilApplied(await activate('known'))
    put(...lost.records, note, ...found.records)
  }

  test('the preview lists them, in a database without any name as well', async () => {
    put(...lost.records, note, ...found.records)
    const { dns } = replica()
    expect(await dns.preview(poolDomain)).toMatchObject({ changeCount: 0, orphans: [found, lost], orphanCount: 2 })
    await dns.waitUntilApplied(await activate('known'))
    expect(await dns.preview(poolDomain)).toMatchObject({ changeCount: 0, orphans: [found, lost], orphanCount: 2 })
    expect(await change('adopt', true)).toEqual({
      kind: 'orphans',
      orphans: [found, lost],
      orphanCount: 2,
      changedCount: 0,
    })
    expect(await change('remove', true, ['lost', 'known'])).toMatchObject({ orphans: [lost], orphanCount: 1 })
    expect(await row('lost')).toBeUndefined()
  })

  test('no client could have had the name, or it has a row: not an orphan', async () => {
    const { dns } = replica()
    for (const subdomain of ['www', 'admin', 'ab--c']) put(...recordsOf(subdomain))
    put(...recordsOf('pool', '198.51.100.1').map(set => ({ ...set, name: set.name.replace('pool.', '_x.') })))
    fixture.provider.rejectedNames.add(`failing.${poolDomain}`)
    await dns.waitUntilApplied(await activate('failing'))
    put(...recordsOf('failing'))
    await dns.waitUntilApplied(await activate('gone'))
    fixture.provider.faults.push({ result: { kind: 'unavailable', reason: 'It is down.' } })
    await dns.waitUntilApplied(await release('gone'))
    expect(await dns.preview(poolDomain)).toMatchObject({ orphans: [], orphanCount: 0 })
  })

  test('adopted names are active with the records and the address of the zone, which stay', async () => {
    await prepare()
    const before = [...fixture.provider.records.values()]
    expect(await change('adopt')).toMatchObject({ kind: 'changed', orphanCount: 2, changedCount: 2, pending: 0 })
    expect([...fixture.provider.records.values()]).toEqual(before)
    const rows = await fixture.sql`
      select subdomain, state, host(load_balancer_ip) as address, sovereign_fqdn, created_by from pool_allocations
      where subdomain <> 'known' order by subdomain`
    expect(rows).toEqual([
      {
        subdomain: 'found',
        state: 'active',
        address: '198.51.100.8',
        sovereign_fqdn: 'found.pool.test',
        created_by: 'operator',
      },
      {
        subdomain: 'lost',
        state: 'active',
        address: '198.51.100.7',
        sovereign_fqdn: 'lost.pool.test',
        created_by: 'operator',
      },
    ])
    expect(await events('lost')).toEqual(['adopted', 'published'])
    const [entry] = await fixture.sql`select actor, address, request_id from allocation_history where event = 'adopted'`
    expect(entry).toEqual({ actor: 'operator', address: '192.0.2.200', request_id: 'orphans' })
    expect(await replica().dns.preview(poolDomain)).toMatchObject({ changeCount: 0, orphanCount: 0 })
    expect(await change('adopt')).toMatchObject({ orphanCount: 0, changedCount: 0 })
    // As for every active name, a release deletes everything at and below it.
    expect(await replica().dns.waitUntilApplied(await release('lost'))).toEqual({ status: 'published' })
    expect(fixture.provider.names().filter(name => name.endsWith(`lost.${poolDomain}`))).toEqual([])
  })

  test('a removal deletes everything at and below the names, and the history lists what was deleted', async () => {
    await prepare()
    expect(await change('remove', false, ['lost'])).toMatchObject({
      kind: 'changed',
      orphanCount: 1,
      changedCount: 1,
      pending: 0,
    })
    expect(fixture.provider.names()).toEqual(
      ['*.found', '*.known', 'found', 'known'].map(name => `${name}.${poolDomain}`),
    )
    expect(await events('lost')).toEqual(['orphan-removed', 'withdrawn'])
    const [entry] = await fixture.sql<{ deleted: { name: string }[] }[]>`
      select deleted_records as deleted from allocation_history where subdomain = 'lost' and event = 'withdrawn'`
    expect(entry?.deleted.map(({ name }) => name).sort()).toEqual(
      ['*.lost', 'lost', 'note.lost'].map(name => `${name}.${poolDomain}`),
    )
    expect(await change('remove', false, ['lost'])).toMatchObject({ orphanCount: 0, changedCount: 0 })
  })

  test('a name that was taken since is left out, in either order', async () => {
    await prepare()
    const orphans = createOperationsRepository(fixture.sql, { timeoutMs: 5_000 })
    await activate('lost')
    await withLease(fixture.sql, poolDomain, async lease => {
      expect(await orphans.adopt(poolDomain, [found, lost], caller, lease)).toEqual(['found'])
      expect(await events('lost')).toEqual(['reserved', 'committed'])
      expect(await orphans.adopt(poolDomain, [found, lost], caller, lease)).toEqual([])
      expect(await orphans.remove(poolDomain, [found], caller, lease)).toEqual([])
    })
    expect(await row('found')).toMatchObject({ desired: found.records })
    expect(await events('found')).toEqual(['adopted'])
  })

  test('an adoption and a removal at the same moment: one of them gets the name', async () => {
    const orphans = createOperationsRepository(fixture.sql, { timeoutMs: 5_000 })
    for (let round = 0; round < 20; round += 1) {
      const subdomain = `race${round}`
      const orphan = {
        subdomain,
        target: { loadBalancerIP: '198.51.100.7' },
        records: recordsOf(subdomain),
        otherCount: 0,
      }
      const calls = [orphans.adopt, orphans.remove, orphans.adopt, orphans.remove]
      await withLease(fixture.sql, poolDomain, lease =>
        Promise.all(calls.map(call => call(poolDomain, [orphan], caller, lease))),
      )
      const history = await events(subdomain)
      const [allocation] = await fixture.sql`select state from pool_allocations where subdomain = ${subdomain}`
      const { desired } = (await row(subdomain)) ?? {}
      if (history.includes('adopted')) expect([allocation?.state, desired]).toEqual(['active', orphan.records])
      else expect([allocation, desired]).toEqual([undefined, []])
      expect(history.filter(event => event === 'adopted').length).toBeLessThanOrEqual(1)
      expect(history.filter(event => event === 'orphan-removed').length).toBeLessThanOrEqual(1)
    }
  })

  test('unknown at the first start: out of use until an operator decides, and free when their records are gone', async () => {
    const start = async () => {
      const started = replica({ keepsUnknown: true })
      await started.dns.checkMarkers(new AbortController().signal)
      return started.unknown
    }
    const owners = async () => {
      const rows = await fixture.sql`select subdomain, state, lineage_id from pool_allocations order by subdomain`
      return rows.map(({ subdomain, state, lineage_id: lineage }) => [subdomain, state, lineage === null])
    }
    // The second one is an orphan too, and counts once.
    const gone = ['gone', 'lent'].map((subdomain, i): RecordSet => {
      const values = ['ns1.test.', 'ns2.test.'].slice(0, i + 1)
      return { name: `${subdomain}.${poolDomain}`, type: 'NS', ttl: 60, values }
    })
    put(...lost.records, note, ...found.records, ...gone)
    fixture.provider.faults.push({ result: { kind: 'unavailable', reason: 'It is down.' } })
    expect(await start()).toEqual([])
    expect((await start()).toSorted()).toEqual(['found', 'gone', 'lent', 'lost'])
    const kept = ['found', 'gone', 'lent', 'lost'].map(subdomain => [subdomain, 'released', false])
    expect(await owners()).toEqual(kept)
    await expect(activate('found')).rejects.toThrow('not free')
    for (const set of gone) fixture.provider.records.delete(recordKey(set))
    expect(await start()).toHaveLength(2)
    expect(await owners()).toEqual([kept[0], kept[3]])
    expect(await change('adopt', false, ['found'])).toMatchObject({ changedCount: 1 })
    expect(await change('remove', false, ['lost'])).toMatchObject({ changedCount: 1 })
    expect(await owners()).toEqual([['found', 'active', true]])
    await replica().dns.waitUntilApplied(await activate('lost'))
    // Written once, the zone has no unknown names: what others add later is an orphan only.
    put(...recordsOf('later'))
    expect(await start()).toEqual([])
    await replica().dns.waitUntilApplied(await activate('other'))
  })

  test('a provider that does not answer, and a zone that another replica works on', async () => {
    fixture.provider.faults.push({ result: { kind: 'unavailable', reason: 'It is down.' } })
    expect(await change('adopt')).toMatchObject({ kind: 'unavailable', reason: 'It is down.' })
    expect(
      await replica().dns.changeOrphans('elsewhere.test', { action: 'adopt', caller, subdomains: null }),
    ).toMatchObject({
      kind: 'unsupported-pool',
    })
  })
})

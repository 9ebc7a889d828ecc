import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import { DRIFT_MS, poolDomain, useDnsFixture } from '../support/dns-fixture.ts'
import { holdLock } from '../support/locks.ts'

const down = { kind: 'unavailable', reason: 'The provider is down.' } as const
const MINUTE_MS = 60_000

describe('drift', () => {
  const fixture = useDnsFixture()
  const { replica, activate, release, row, advance, events } = fixture
  const put = (set: RecordSet) => fixture.provider.records.set(recordKey(set), set)
  const a = (name: string, address: string, ttl = 60): RecordSet => ({ name, type: 'A', ttl, values: [address] })
  const getAddress = (name: string) => fixture.provider.records.get(`${name} A`)?.values[0]
  const recordCalls = async (work: () => Promise<unknown>) => {
    const before = fixture.provider.calls.length
    await work()
    return fixture.provider.calls.slice(before)
  }
  const readState = async () => [
    await fixture.sql`select * from dns_names order by zone, subdomain`,
    await fixture.sql`select * from allocation_history order by id`,
    await fixture.sql`select * from dns_zones`,
    new Map(fixture.provider.records),
  ]

  describe('external changes of owned records are repaired', () => {
    test.each<[change: string, edit: () => void]>([
      ['removed', () => fixture.provider.records.delete('acme.pool.test A')],
      ['another address', () => put(a('acme.pool.test', '198.51.100.9'))],
      ['another TTL', () => put(a('acme.pool.test', '192.0.2.1', 5))],
      ['the wildcard removed', () => fixture.provider.records.delete('*.acme.pool.test A')],
      ['all removed', () => fixture.provider.records.clear()],
    ])('%s', async (_, edit) => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await activate('other', '192.0.2.2'))
      const before = new Map(fixture.provider.records)
      put({ name: 'www.acme.pool.test', type: 'TXT', ttl: 60, values: ['"theirs"'] })
      edit()
      const foreign = fixture.provider.records.get('www.acme.pool.test TXT')
      expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', pending: 0, failing: 0, conflictCount: 0 })
      if (foreign) before.set(recordKey(foreign), foreign)
      expect(fixture.provider.records).toEqual(before)
      expect((await events('acme')).slice(2)).toEqual(['published', 'repaired'])
      expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 0, driftedCount: 0 })
    })
  })

  test('the history of a name whose conflict was removed does not count zero record sets', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const foreign = { name: 'acme.pool.test', type: 'NS', ttl: 60, values: ['ns.example.'] }
    put(foreign)
    await dns.repair(poolDomain)
    fixture.provider.records.delete('acme.pool.test NS')
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 0 })
    const [entry] = await fixture.sql`select detail from allocation_history where event = 'repaired'`
    expect(entry?.detail).toBe('Nothing differs any more: another writer changed it back.')
  })

  test('the history has the number of repaired record sets', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.records.clear()
    await dns.repair(poolDomain)
    const [entry] = await fixture.sql`select detail, actor from allocation_history where event = 'repaired'`
    expect(entry).toEqual({
      detail: '2 record sets differed from the records that this service had written.',
      actor: 'convergence',
    })
  })

  test('a foreign CNAME in place of an owned record: the name is failing, with instructions, until the CNAME is deleted', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example.'] }
    fixture.provider.records.delete('acme.pool.test A')
    put(foreign)
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 1, failing: 1, conflictCount: 1 })
    expect(await row('acme')).toMatchObject({
      failure: 'foreign-record',
      last_error:
        'A record of type CNAME that is not managed by this service exists at acme.pool.test. Delete it; a release of this name deletes it too.',
    })
    expect(fixture.provider.records.get('acme.pool.test CNAME')).toEqual(foreign)
    expect(await dns.listZoneStates()).toMatchObject([{ zone: poolDomain, failing: { 'foreign-record': 1 } }])
    fixture.provider.records.delete('acme.pool.test CNAME')
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 0 })
    expect(getAddress('acme.pool.test')).toBe('192.0.2.1')
    expect((await events('acme')).slice(2)).toEqual(['published', 'failing', 'repaired'])
  })

  describe('a withdrawn name', () => {
    test('has a row for a minute, which the next drift check deletes', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await release('acme'))
      await dns.repair(poolDomain)
      expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
      await advance(MINUTE_MS + 1_000)
      await dns.repair(poolDomain)
      expect(await row('acme')).toBeUndefined()
    })

    test('records that a late write restored are deleted', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      const late = new Map(fixture.provider.records)
      await dns.waitUntilApplied(await release('acme'))
      for (const set of late.values()) put(set)
      expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', driftedCount: 1, pending: 0 })
      expect(fixture.provider.names()).toEqual([])
      expect((await events('acme')).slice(3)).toEqual(['released', 'withdrawn', 'repaired'])
    })

    test('the records are deleted even if a stale read hid them during the withdrawal', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      fixture.provider.staleRead = []
      expect(await dns.waitUntilApplied(await release('acme'))).toEqual({ status: 'published' })
      expect(fixture.provider.names()).toHaveLength(2)
      await dns.repair(poolDomain)
      expect(fixture.provider.names()).toEqual([])
    })

    test('records of other writers are deleted until a drift check finds none, and do not block the next holder', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await release('acme'))
      put(a('acme.pool.test', '198.51.100.9'))
      expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', driftedCount: 1, pending: 0 })
      expect(fixture.provider.names()).toEqual([])
      put(a('acme.pool.test', '198.51.100.9'))
      expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.3'))).toEqual({ status: 'published' })
      expect(getAddress('acme.pool.test')).toBe('192.0.2.3')
    })

    test('after the name is active again, a drift check deletes only the previous records', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await release('acme'))
      await dns.waitUntilApplied(await activate('acme', '192.0.2.3'))
      expect((await row('acme'))?.previous_records).toHaveLength(2)
      await advance(MINUTE_MS + 1_000)
      await dns.repair(poolDomain)
      expect(await row('acme')).toMatchObject({ previous_records: [], desired: [{}, {}], owned: [{}, {}] })
      expect(getAddress('acme.pool.test')).toBe('192.0.2.3')
    })
  })

  describe('the periodic drift check', () => {
    test('runs when it is due, on one of the replicas, without a request', async () => {
      const [one, two] = [replica(), replica()]
      await one.dns.waitUntilApplied(await activate('acme'))
      fixture.provider.records.clear()
      await Promise.all([one.dns.syncDueZones(), two.dns.syncDueZones()])
      await Promise.all([one.dns.stop(), two.dns.stop()])
      expect(fixture.provider.names()).toEqual([])

      await advance(DRIFT_MS)
      const [three, four] = [replica(), replica()]
      await Promise.all([three.dns.syncDueZones(), four.dns.syncDueZones()])
      await until('the drift check has ended', () => three.driftChecks.length + four.driftChecks.length > 0)
      await Promise.all([three.dns.syncDueZones(), four.dns.syncDueZones()])
      await until('it is repaired', () => fixture.provider.names().length === 2)
      expect([...three.driftChecks, ...four.driftChecks]).toMatchObject([{ kind: 'compared', driftedCount: 1 }])
      const [zone] = await fixture.sql<{ seconds: number }[]>`
        select extract(epoch from next_drift_check_at - now())::float8 as seconds from dns_zones`
      expect(zone?.seconds).toBeGreaterThan(0.85 * (DRIFT_MS / 1_000))
      expect(zone?.seconds).toBeLessThan(1.15 * (DRIFT_MS / 1_000))
    })

    test('does not call the provider for a zone without names', async () => {
      const one = replica()
      await one.dns.waitUntilApplied(await activate('acme'))
      await fixture.sql`truncate dns_names, pool_allocations`
      await advance(DRIFT_MS)
      expect(
        await recordCalls(async () => {
          await one.dns.syncDueZones()
          await until('the drift check has ended', () => one.driftChecks.length === 1)
        }),
      ).toEqual([])
      expect(await one.dns.preview(poolDomain)).toMatchObject({ kind: 'compared', changeCount: 0 })
    })

    test('is repeated within a minute if the provider is unavailable', async () => {
      const one = replica()
      await one.dns.waitUntilApplied(await activate('acme'))
      fixture.provider.records.clear()
      fixture.provider.faults.push({ result: down })
      await advance(DRIFT_MS)
      await one.dns.syncDueZones()
      await until('the drift check has failed', () => one.driftChecks.length === 1)
      expect(one.driftChecks).toMatchObject([{ kind: 'unavailable' }])
      await advance(MINUTE_MS)
      await one.dns.syncDueZones()
      await until('the drift check has ended', () => one.driftChecks.length === 2)
      await one.dns.syncDueZones()
      await until('it is repaired', () => fixture.provider.names().length === 2)
    })

    test('does not overlap with itself if it takes longer than its interval', async () => {
      const one = replica()
      await one.dns.waitUntilApplied(await activate('acme'))
      const gate = Promise.withResolvers<void>()
      fixture.provider.readGate = gate.promise
      await advance(DRIFT_MS)
      await one.dns.syncDueZones()
      await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
      await advance(MINUTE_MS)
      await one.dns.syncDueZones()
      gate.resolve()
      await one.dns.stop()
      expect(one.driftChecks).toHaveLength(1)
    })

    test('reads a zone of any size once and writes only the differences', async () => {
      await fixture.sql`
        insert into dns_names (zone, subdomain, version, applied_version, applied_at, desired, owned, changed_at,
          next_attempt_at)
        select ${poolDomain}, 'n' || n, n, n, now(), record, record, now(), now()
        from generate_series(1, 2500) n, lateral (select jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1')))) as r(record)`
      await fixture.sql`select setval('dns_version', 10000)`
      for (let n = 1; n <= 2_500; n += 1) put(a(`n${n}.pool.test`, '192.0.2.1'))
      for (const missing of [1, 1_500, 2_500]) fixture.provider.records.delete(`n${missing}.pool.test A`)
      const { dns } = replica({ waitMs: 40_000 })
      expect(await recordCalls(() => dns.repair(poolDomain))).toEqual(['read', 'read', 'apply'])
      expect(fixture.provider.records.size).toBe(2_500)
      expect(await fixture.sql`select from allocation_history`).toHaveLength(3)
      // More than one batch: the repair returns when all records are written.
      fixture.provider.records.clear()
      expect(await dns.repair(poolDomain)).toMatchObject({ driftedCount: 2_500, pending: 0 })
      expect(fixture.provider.records.size).toBe(2_500)
    })
  })

  describe('the preview', () => {
    test('lists the changes and makes none of them', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await activate('gone'))
      await dns.waitUntilApplied(await activate('stuck'))
      await dns.waitUntilApplied(await release('gone'))
      put(a('gone.pool.test', '192.0.2.1'))
      put(a('acme.pool.test', '198.51.100.9'))
      fixture.provider.records.delete('stuck.pool.test A')
      put({ name: 'stuck.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example.'] })
      await activate('waiting', '192.0.2.7')
      const before = await readState()
      expect(await dns.preview(poolDomain)).toEqual({
        kind: 'compared',
        changes: [
          { subdomain: 'acme', change: { kind: 'upsert', set: a('acme.pool.test', '192.0.2.1') } },
          { subdomain: 'gone', change: { kind: 'delete', name: 'gone.pool.test', type: 'A' } },
          { subdomain: 'waiting', change: { kind: 'upsert', set: a('waiting.pool.test', '192.0.2.7') } },
          { subdomain: 'waiting', change: { kind: 'upsert', set: a('*.waiting.pool.test', '192.0.2.7') } },
        ],
        changeCount: 4,
        conflicts: [{ subdomain: 'stuck', reason: expect.stringContaining('CNAME') }],
        conflictCount: 1,
        driftedCount: 0,
        orphans: [],
        orphanCount: 0,
        stopCause: null,
      })
      expect(await readState()).toEqual(before)
    })

    test('lists the first 1,000 changes and counts all of them', async () => {
      await fixture.sql`
        insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
        select ${poolDomain}, 'n' || n, n, jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1'))), now(), now()
        from generate_series(1, 1200) n`
      const preview = await replica().dns.preview(poolDomain)
      expect(preview).toMatchObject({ changeCount: 1_200 })
      expect(preview.kind === 'compared' && preview.changes).toHaveLength(1_000)
    })
  })

  test('a repair retries names immediately that wait after a failure', async () => {
    const { dns } = replica()
    fixture.provider.rejectedNames.add('acme.pool.test')
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.rejectedNames.clear()
    await fixture.sql`update dns_names set next_attempt_at = now() + interval '1 hour'`
    expect(await dns.repair(poolDomain)).toMatchObject({
      kind: 'repaired',
      pending: 0,
      changeCount: 2,
      driftedCount: 0,
    })
    expect(fixture.provider.names()).toHaveLength(2)
  })

  test('a repair has a timeout and returns the number of pending names', async () => {
    const publisher = replica()
    await publisher.dns.waitUntilApplied(await activate('acme'))
    await publisher.close()
    const { dns } = replica({ waitMs: 100 })
    fixture.provider.records.clear()
    const gate = Promise.withResolvers<void>()
    fixture.provider.applyGate = gate.promise
    expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', pending: 1, failing: 0 })
    gate.resolve()
    await until('the repair continues', () => fixture.provider.names().length === 2)
  })

  test('with an unavailable provider, preview and repair return the reason and change nothing', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const before = await readState()
    fixture.provider.faults.push({ result: down }, { result: down })
    expect(await dns.preview(poolDomain)).toMatchObject(down)
    expect(await dns.repair(poolDomain)).toMatchObject(down)
    expect(await readState()).toEqual(before)
  })

  test('while another process holds the zone lock, preview and repair return busy', async () => {
    const { dns } = replica({ lockWaitMs: 50 })
    await dns.waitUntilApplied(await activate('acme'))
    const held = await holdLock(fixture.sql, tx => tx`select from zone_leases for update`)
    expect(await dns.preview(poolDomain)).toEqual({ kind: 'busy' })
    expect(await dns.repair(poolDomain)).toEqual({ kind: 'busy' })
    await held.release()
    expect(await dns.preview(poolDomain)).toMatchObject({ kind: 'compared' })
  })

  test('a name that is released before its repair is withdrawn, and the history has the withdrawal', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.records.delete('acme.pool.test A')
    fixture.provider.faults.push(null, { result: down })
    // The repair waits for the name, in vain.
    await replica({ waitMs: 200 }).dns.repair(poolDomain)
    await until('the repair fails', async () => (await row('acme'))?.failure === 'provider')
    expect(await row('acme')).toMatchObject({ is_drift_repair: true })
    expect(await dns.waitUntilApplied(await release('acme'))).toEqual({ status: 'published' })
    expect((await events('acme')).slice(3)).toEqual(['failing', 'released', 'withdrawn'])
  })

  test('a drift check that loses its zone lock changes nothing', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.records.clear()
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    const lost = expect(dns.repair(poolDomain)).rejects.toThrow(/zone lock lost: pool\.test/)
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    const before = await row('acme')
    await fixture.loseZoneLocks()
    gate.resolve()
    await lost
    expect(await row('acme')).toEqual(before)
  })

  test('a drift check that loses its zone lock before it writes the marker leaves the zone as it is', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.markers.clear()
    const [scan, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const before = fixture.provider.calls.length
    fixture.provider.readGate = scan.promise
    const lost = expect(dns.repair(poolDomain)).rejects.toThrow(/zone lock lost: pool\.test/)
    await until('the scan is in flight', () => fixture.provider.readsInFlight === 1)
    fixture.provider.readGate = read.promise
    scan.resolve()
    await until('the marker is read', () => fixture.provider.calls.length === before + 2)
    await fixture.loseZoneLocks()
    read.resolve()
    await lost
    expect(fixture.provider.calls.slice(before)).toEqual(['read', 'read'])
    expect(fixture.provider.markers.size).toBe(0)
  })

  test('a release during a drift check wins', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.records.clear()
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    const repaired = dns.repair(poolDomain)
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    const withdrawn = dns.waitUntilApplied(await release('acme'))
    gate.resolve()
    await Promise.all([repaired, withdrawn])
    expect(fixture.provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [] })
    expect(await events('acme')).not.toContain('repaired')
  })
})

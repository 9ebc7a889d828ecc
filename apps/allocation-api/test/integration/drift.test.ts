import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import { missingDsn, testDsn } from '../support/database.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'
import { holdLock } from '../support/locks.ts'
import { DRIFT_MS } from '../support/replica.ts'

const down = { kind: 'unavailable', reason: 'The provider is down.' } as const
const MINUTE_MS = 60_000

describe.skipIf(!testDsn)(`drift (${testDsn ? 'real Postgres' : missingDsn})`, () => {
  const scene = useDnsFixture()
  const { replica, activate, free, row, advance, events } = scene
  const put = (set: RecordSet) => scene.provider.records.set(recordKey(set), set)
  const a = (name: string, address: string, ttl = 60): RecordSet => ({ name, type: 'A', ttl, values: [address] })
  const addressOf = (name: string) => scene.provider.records.get(`${name} A`)?.values[0]
  const calls = async (work: () => Promise<unknown>) => {
    const before = scene.provider.calls.length
    await work()
    return scene.provider.calls.slice(before)
  }
  const everything = async () => [
    await scene.sql`select * from dns_names order by zone, subdomain`,
    await scene.sql`select * from allocation_history order by id`,
    await scene.sql`select * from dns_zones`,
    new Map(scene.provider.records),
  ]

  describe('what somebody has made of our records is repaired', () => {
    test.each<[what: string, edit: () => void]>([
      ['removed', () => scene.provider.records.delete('acme.pool.test A')],
      ['another address', () => put(a('acme.pool.test', '198.51.100.9'))],
      ['another TTL', () => put(a('acme.pool.test', '192.0.2.1', 5))],
      ['the wildcard removed', () => scene.provider.records.delete('*.acme.pool.test A')],
      ['all removed', () => scene.provider.records.clear()],
    ])('%s', async (_, edit) => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await activate('other', '192.0.2.2'))
      const before = new Map(scene.provider.records)
      put({ name: 'www.acme.pool.test', type: 'TXT', ttl: 60, values: ['"theirs"'] })
      edit()
      const foreign = scene.provider.records.get('www.acme.pool.test TXT')
      expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', pending: 0, failing: 0, conflictCount: 0 })
      if (foreign) before.set(recordKey(foreign), foreign)
      expect(scene.provider.records).toEqual(before)
      expect((await events('acme')).slice(2)).toEqual(['published', 'repaired'])
      expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 0, driftedCount: 0 })
    })
  })

  test('the history says how much was repaired', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.records.clear()
    await dns.repair(poolDomain)
    const [entry] = await scene.sql`select detail, actor from allocation_history where event = 'repaired'`
    expect(entry).toEqual({
      detail: '2 record sets differed from the records that this service had written.',
      actor: 'convergence',
    })
  })

  test("somebody else's CNAME in place of our record: failing, with what to do about it, until it is gone", async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example.'] }
    scene.provider.records.delete('acme.pool.test A')
    put(foreign)
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 1, failing: 1, conflictCount: 1 })
    expect(await row('acme')).toMatchObject({
      failure: 'foreign-record',
      last_error:
        'A record of type CNAME that is not managed by this service exists at acme.pool.test. Delete it, or release this name.',
    })
    expect(scene.provider.records.get('acme.pool.test CNAME')).toEqual(foreign)
    expect(await dns.listZoneLag()).toMatchObject([{ zone: poolDomain, failing: { 'foreign-record': 1 } }])
    scene.provider.records.delete('acme.pool.test CNAME')
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 0 })
    expect(addressOf('acme.pool.test')).toBe('192.0.2.1')
    expect((await events('acme')).slice(2)).toEqual(['published', 'failing', 'repaired'])
  })

  describe('a name that was withdrawn', () => {
    test('is remembered for a minute, and forgotten by the comparison after that', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await free('acme'))
      await dns.repair(poolDomain)
      expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
      await advance(MINUTE_MS + 1_000)
      await dns.repair(poolDomain)
      expect(await row('acme')).toBeUndefined()
    })

    test('records that turn up again as they were, of an order that was given up, are removed', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      const late = new Map(scene.provider.records)
      await dns.waitUntilApplied(await free('acme'))
      for (const set of late.values()) put(set)
      expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', driftedCount: 1, pending: 0 })
      expect(scene.provider.names()).toEqual([])
      expect((await events('acme')).slice(3)).toEqual(['released', 'withdrawn', 'repaired'])
    })

    test('whose withdrawal was judged by a stale read that did not show its records, loses them all the same', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      scene.provider.staleRead = []
      expect(await dns.waitUntilApplied(await free('acme'))).toEqual({ status: 'published' })
      expect(scene.provider.names()).toHaveLength(2)
      await dns.repair(poolDomain)
      expect(scene.provider.names()).toEqual([])
    })

    test('somebody puts another address there: that is theirs, and stops the next holder', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await free('acme'))
      put(a('acme.pool.test', '198.51.100.9'))
      expect(await dns.repair(poolDomain)).toMatchObject({ driftedCount: 0, changeCount: 0 })
      expect(addressOf('acme.pool.test')).toBe('198.51.100.9')
      expect((await dns.waitUntilApplied(await activate('acme', '192.0.2.3'))).status).toBe('failing')
      expect(addressOf('acme.pool.test')).toBe('198.51.100.9')
    })

    test('and is active again: what a comparison forgets is only what was before', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await free('acme'))
      await dns.waitUntilApplied(await activate('acme', '192.0.2.3'))
      expect((await row('acme'))?.previous_records).toHaveLength(2)
      await advance(MINUTE_MS + 1_000)
      await dns.repair(poolDomain)
      expect(await row('acme')).toMatchObject({ previous_records: [], desired: [{}, {}], owned: [{}, {}] })
      expect(addressOf('acme.pool.test')).toBe('192.0.2.3')
    })
  })

  describe('the periodic comparison', () => {
    test('comes at its time, from one of the replicas, without anybody asking', async () => {
      const [one, two] = [replica(), replica()]
      await one.dns.waitUntilApplied(await activate('acme'))
      scene.provider.records.clear()
      await Promise.all([one.dns.syncDueZones(), two.dns.syncDueZones()])
      await Promise.all([one.dns.stop(), two.dns.stop()])
      expect(scene.provider.names()).toEqual([])

      await advance(DRIFT_MS)
      const [three, four] = [replica(), replica()]
      await Promise.all([three.dns.syncDueZones(), four.dns.syncDueZones()])
      await until('it was compared', () => three.driftChecks.length + four.driftChecks.length > 0)
      await Promise.all([three.dns.syncDueZones(), four.dns.syncDueZones()])
      await until('it is repaired', () => scene.provider.names().length === 2)
      expect([...three.driftChecks, ...four.driftChecks]).toMatchObject([{ kind: 'compared', driftedCount: 1 }])
      const [zone] = await scene.sql<{ seconds: number }[]>`
        select extract(epoch from next_drift_check_at - now())::float8 as seconds from dns_zones`
      expect(zone?.seconds).toBeGreaterThan(0.85 * (DRIFT_MS / 1_000))
      expect(zone?.seconds).toBeLessThan(1.15 * (DRIFT_MS / 1_000))
    })

    test('of a zone in which nobody has a name asks nothing', async () => {
      const one = replica()
      await one.dns.waitUntilApplied(await activate('acme'))
      await scene.sql`truncate dns_names, pool_allocations`
      await advance(DRIFT_MS)
      expect(
        await calls(async () => {
          await one.dns.syncDueZones()
          await until('it was compared', () => one.driftChecks.length === 1)
        }),
      ).toEqual([])
      expect(await one.dns.preview(poolDomain)).toMatchObject({ kind: 'compared', changeCount: 0 })
    })

    test('that finds the provider down comes again within a minute', async () => {
      const one = replica()
      await one.dns.waitUntilApplied(await activate('acme'))
      scene.provider.records.clear()
      scene.provider.faults.push({ answer: down })
      await advance(DRIFT_MS)
      await one.dns.syncDueZones()
      await until('it was tried', () => one.driftChecks.length === 1)
      expect(one.driftChecks).toMatchObject([{ kind: 'unavailable' }])
      await advance(MINUTE_MS)
      await one.dns.syncDueZones()
      await until('it was compared', () => one.driftChecks.length === 2)
      await one.dns.syncDueZones()
      await until('it is repaired', () => scene.provider.names().length === 2)
    })

    test('that takes longer than its time is not begun a second time beside itself', async () => {
      const one = replica()
      await one.dns.waitUntilApplied(await activate('acme'))
      const gate = Promise.withResolvers<void>()
      scene.provider.readGate = gate.promise
      await advance(DRIFT_MS)
      await one.dns.syncDueZones()
      await until('it reads', () => scene.provider.reading === 1)
      await advance(MINUTE_MS)
      await one.dns.syncDueZones()
      gate.resolve()
      await one.dns.stop()
      expect(one.driftChecks).toHaveLength(1)
    })

    test('one read for a zone of any size, and only what differs is written', async () => {
      await scene.sql`
        insert into dns_names (zone, subdomain, version, applied_version, applied_at, desired, owned, changed_at,
          next_attempt_at)
        select ${poolDomain}, 'n' || n, n, n, now(), record, record, now(), now()
        from generate_series(1, 2500) n, lateral (select jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1')))) as r(record)`
      await scene.sql`select setval('dns_version', 10000)`
      for (let n = 1; n <= 2_500; n += 1) put(a(`n${n}.pool.test`, '192.0.2.1'))
      for (const gone of [1, 1_500, 2_500]) scene.provider.records.delete(`n${gone}.pool.test A`)
      const { dns } = replica()
      expect(await calls(() => dns.repair(poolDomain))).toEqual(['read', 'read', 'apply'])
      expect(scene.provider.records.size).toBe(2_500)
      expect(await scene.sql`select from allocation_history`).toHaveLength(3)
      // More than a pass takes: the repair is answered when all are there.
      scene.provider.records.clear()
      expect(await dns.repair(poolDomain)).toMatchObject({ driftedCount: 2_500, pending: 0 })
      expect(scene.provider.records.size).toBe(2_500)
    })
  })

  describe('a preview', () => {
    test('says what would be done, and does none of it', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await activate('gone'))
      await dns.waitUntilApplied(await activate('stuck'))
      await dns.waitUntilApplied(await free('gone'))
      put(a('gone.pool.test', '192.0.2.1'))
      put(a('acme.pool.test', '198.51.100.9'))
      scene.provider.records.delete('stuck.pool.test A')
      put({ name: 'stuck.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example.'] })
      await activate('waiting', '192.0.2.7')
      const before = await everything()
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
      })
      expect(await everything()).toEqual(before)
    })

    test('shows the first thousand changes and counts them all', async () => {
      await scene.sql`
        insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
        select ${poolDomain}, 'n' || n, n, jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1'))), now(), now()
        from generate_series(1, 1200) n`
      const preview = await replica().dns.preview(poolDomain)
      expect(preview).toMatchObject({ changeCount: 1_200 })
      expect(preview.kind === 'compared' && preview.changes).toHaveLength(1_000)
    })
  })

  test('repair tries at once what waits after a failure', async () => {
    const { dns } = replica()
    scene.provider.refuses.add('acme.pool.test')
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.refuses.clear()
    await scene.sql`update dns_names set next_attempt_at = now() + interval '1 hour'`
    expect(await dns.repair(poolDomain)).toMatchObject({
      kind: 'repaired',
      pending: 0,
      changeCount: 2,
      driftedCount: 0,
    })
    expect(scene.provider.names()).toHaveLength(2)
  })

  test('repair does not wait for ever: what is left is told', async () => {
    const { dns } = replica({ waitMs: 100 })
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.records.clear()
    const gate = Promise.withResolvers<void>()
    scene.provider.gate = gate.promise
    expect(await dns.repair(poolDomain)).toMatchObject({ kind: 'repaired', pending: 1, failing: 0 })
    gate.resolve()
    await until('it goes on', () => scene.provider.names().length === 2)
  })

  test('a provider that is down is said to be, with its reason, and nothing is changed', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const before = await everything()
    scene.provider.faults.push({ answer: down }, { answer: down })
    expect(await dns.preview(poolDomain)).toMatchObject(down)
    expect(await dns.repair(poolDomain)).toMatchObject(down)
    expect(await everything()).toEqual(before)
  })

  test('while others write the zone for long it is said to be busy', async () => {
    const { dns } = replica({ lockWaitMs: 50 })
    await dns.waitUntilApplied(await activate('acme'))
    const held = await holdLock(scene.sql, tx => tx`select from dns_zone_locks for update`)
    expect(await dns.preview(poolDomain)).toEqual({ kind: 'busy' })
    expect(await dns.repair(poolDomain)).toEqual({ kind: 'busy' })
    await held.release()
    expect(await dns.preview(poolDomain)).toMatchObject({ kind: 'compared' })
  })

  test('a name that is released before its repair is withdrawn, and that is what the history says', async () => {
    const { dns } = replica({ waitMs: 200 })
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.records.delete('acme.pool.test A')
    scene.provider.faults.push(null, { answer: down })
    await dns.repair(poolDomain)
    expect(await row('acme')).toMatchObject({ is_drift_repair: true, failure: 'provider' })
    expect(await dns.waitUntilApplied(await free('acme'))).toEqual({ status: 'published' })
    expect((await events('acme')).slice(3)).toEqual(['failing', 'released', 'withdrawn'])
  })

  test('whoever loses the claim while it compares changes nothing', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.records.clear()
    const gate = Promise.withResolvers<void>()
    scene.provider.readGate = gate.promise
    const lost = expect(dns.repair(poolDomain)).rejects.toThrow(
      // Whichever is noticed first: that the connection is gone, or that a new one has no claim.
      /zone lock lost: pool\.test|CONNECTION_CLOSED/,
    )
    await until('it reads', () => scene.provider.reading === 1)
    const before = await row('acme')
    await scene.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'allocation-api zone' and state = 'idle in transaction'`
    gate.resolve()
    await lost
    expect(await row('acme')).toEqual(before)
  })

  test('a comparison and a release that meet: the release wins', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    scene.provider.records.clear()
    const gate = Promise.withResolvers<void>()
    scene.provider.readGate = gate.promise
    const repaired = dns.repair(poolDomain)
    await until('it reads', () => scene.provider.reading === 1)
    const withdrawn = dns.waitUntilApplied(await free('acme'))
    gate.resolve()
    await Promise.all([repaired, withdrawn])
    expect(scene.provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [] })
    expect(await events('acme')).not.toContain('repaired')
  })
})

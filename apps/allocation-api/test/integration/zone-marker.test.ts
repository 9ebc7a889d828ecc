import type { Sql } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createMarkerRecord, parseMarkers, toMarkerName } from '../../src/reconciler/domain/zone-marker.ts'
import type { Reconciler } from '../../src/reconciler/reconciler.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

const MARKER_KEY = `${toMarkerName(poolDomain)} TXT`
const MINUTE_MS = 60_000
const otherInstallation = '11111111-2222-4333-8444-555555555555'
/** Depends on which is detected first: the closed connection, its reset, or the missing lock of the new connection. */
const LOST_LOCK = /zone lock lost: pool\.test/
const down = { kind: 'unavailable', reason: 'The provider is down.' } as const

/** Copies the tables of the names and of the zones. `restore` brings them back. */
const backUp = async (sql: Sql) => {
  const tables = ['pool_allocations', 'dns_names', 'dns_zones', 'dns_zone_writes']
  for (const table of tables) {
    await sql`drop table if exists ${sql(`backup_${table}`)}`
    await sql`create table ${sql(`backup_${table}`)} as table ${sql(table)}`
  }
  return async function restore() {
    for (const table of tables) {
      await sql`delete from ${sql(table)}`
      await sql`insert into ${sql(table)} table ${sql(`backup_${table}`)}`
    }
  }
}

describe('the marker of a zone', () => {
  const fixture = useDnsFixture()
  const { replica, activate, release, row, advance } = fixture
  const getMarker = () => parseMarkers(poolDomain, [...fixture.provider.markers.values()])[0]
  const setSerial = (serial: number, installation = getMarker()?.installation ?? '') =>
    fixture.provider.markers.set(MARKER_KEY, createMarkerRecord(poolDomain, { installation, serial }, 60))
  const readSerial = async () => {
    const [found] = await fixture.sql`select serial from dns_zone_writes where zone = ${poolDomain}`
    return found?.serial
  }
  test('has the number of the last write, which the database has as well', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    expect([getMarker()?.serial, await readSerial()]).toEqual([1, 1])
    await dns.waitUntilApplied(await release('acme'))
    expect([getMarker()?.serial, await readSerial()]).toEqual([2, 2])
    const [{ id }] = (await fixture.sql`select id from installation`) as unknown as [{ id: string }]
    expect(getMarker()?.installation).toBe(id)
  })

  test('is not removed by a release, a purge or a repair', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await release('acme'))
    await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))
    await dns.repair(poolDomain)
    expect(getMarker()?.serial).toBe(await readSerial())
  })

  test('a database older than the zone: nothing is written, and the names are failing with the cause', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('moved'))
    await dns.waitUntilApplied(await activate('kept', '192.0.2.2'))
    const restore = await backUp(fixture.sql)
    await dns.waitUntilApplied(await release('moved'))
    await dns.waitUntilApplied(await activate('moved', '192.0.2.71'))
    await dns.waitUntilApplied(await activate('newer', '192.0.2.80'))
    await restore()
    const before = new Map(fixture.provider.records)

    const state = await dns.waitUntilApplied(await activate('late', '192.0.2.90'))
    expect(state).toMatchObject({ status: 'failing', detail: expect.stringContaining('older than the last write') })
    expect(await dns.repair(poolDomain)).toMatchObject({ stopCause: 'database-older', pending: 2, failing: 2 })
    expect(await row('moved')).toMatchObject({ failure: 'database-older' })
    expect(await row('kept')).toMatchObject({ failure: null })
    expect(stops).toEqual(['database-older'])
    expect(fixture.provider.records).toEqual(before)
    expect(await dns.listZoneStates()).toMatchObject([{ failing: { 'database-older': 2 } }])
  })

  test('the drift check alone finds an older database', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const restore = await backUp(fixture.sql)
    await dns.waitUntilApplied(await activate('newer'))
    await restore()
    await advance(20 * MINUTE_MS)
    await dns.syncDueZones()
    await until('the zone is stopped', () => stops.length === 1)
    expect(fixture.provider.names()).toHaveLength(4)
  })

  test('the check after a start finds an older database, before the drift check and also without names', async () => {
    const first = replica()
    await first.dns.waitUntilApplied(await activate('acme'))
    for (const table of ['pool_allocations', 'dns_names', 'dns_zones', 'dns_zone_writes']) {
      await fixture.sql`delete from ${fixture.sql(table)}`
    }
    const { dns, stops } = replica({ writesZones: false })
    await dns.checkMarkers(new AbortController().signal)
    expect(stops).toHaveLength(1)
    expect(await dns.listZoneStates()).toMatchObject([
      { zone: poolDomain, stopCause: 'database-older', pendingNames: 0 },
    ])
  })

  test('the check after a start is repeated until the provider responds', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    setSerial(9)
    fixture.provider.faults.push({ result: { ...down, scope: 'zone' } })
    await dns.checkMarkers(new AbortController().signal)
    expect(fixture.provider.faults).toHaveLength(0)
    await until('the zone is stopped', async () => {
      await advance(1_000)
      await dns.checkMarkers(new AbortController().signal)
      return stops.length === 1
    })
  })

  test('a drift check that loses its zone lock does not stop the zone: it may have been resumed since', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    setSerial(1, otherInstallation)
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    const lost = expect(dns.repair(poolDomain)).rejects.toThrow(LOST_LOCK)
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    await fixture.loseZoneLocks()
    gate.resolve()
    await lost
    expect(stops).toEqual([])
  })

  test('every replica respects the stop, without a call of the provider', async () => {
    const one = replica()
    await one.dns.waitUntilApplied(await activate('acme'))
    setSerial(9)
    await one.dns.waitUntilApplied(await activate('beta'))
    const calls = fixture.provider.calls.length
    const two = replica()
    expect((await two.dns.waitUntilApplied(await activate('gamma'))).status).toBe('failing')
    expect(fixture.provider.calls.slice(calls)).toEqual([])
    expect(two.stops).toEqual([])
  })

  test('a marker of another installation stops the zone', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    setSerial(1, otherInstallation)
    const state = await dns.waitUntilApplied(await activate('beta'))
    expect(state).toMatchObject({ status: 'failing', detail: expect.stringContaining('another database') })
    expect(stops).toEqual(['other-installation'])
  })

  test.each([
    ['is deleted', () => fixture.provider.markers.clear()],
    ['has an earlier number, because an earlier write took effect late', () => void setSerial(1)],
    [
      'is edited',
      () =>
        void fixture.provider.markers.set(MARKER_KEY, {
          name: toMarkerName(poolDomain),
          type: 'TXT',
          ttl: 60,
          values: ['"edited"'],
        }),
    ],
  ])('a marker that %s stops nothing; the drift check writes it again', async (_, edit) => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await activate('beta'))
    edit()
    expect((await dns.repair(poolDomain)).kind).toBe('repaired')
    expect(getMarker()?.serial).toBe(await readSerial())
    // Before, a read that shows it could be stale.
    await advance(MINUTE_MS)
    edit()
    expect(await dns.waitUntilApplied(await activate('gamma'))).toEqual({ status: 'published' })
    expect(getMarker()?.serial).toBe(await readSerial())
    expect(stops).toEqual([])
  })

  test('a zone that was published before there were markers gets one at its drift check', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    fixture.provider.markers.clear()
    await fixture.sql`delete from dns_zone_writes`
    await dns.repair(poolDomain)
    expect(getMarker()?.serial).toBe(1)
    const calls = fixture.provider.calls.length
    await dns.repair(poolDomain)
    expect(fixture.provider.calls.slice(calls)).toEqual(['read'])
  })

  test.each([
    ['whose answer is lost', { result: down, takesEffect: true }],
    ['that has no effect', { result: down }],
  ])('a write %s stops nothing', async (_, fault) => {
    const { dns, stops } = replica()
    fixture.provider.faults.push(null, fault)
    await dns.waitUntilApplied(await activate('acme'))
    await advance(MINUTE_MS)
    await dns.syncDueZones()
    await until('the name is published', async () => (await row('acme'))?.last_error === null)
    expect([getMarker()?.serial, await readSerial()]).toEqual([2, 2])
    expect(stops).toEqual([])
  })

  test.each([
    ['an older marker', () => setSerial(1)],
    ['no marker', () => fixture.provider.markers.clear()],
  ])(
    'a read with %s than that of the last confirmed write is stale: nothing is written for a minute',
    async (_, age) => {
      const { dns } = replica()
      for (const name of ['one', 'two']) await dns.waitUntilApplied(await activate(name))
      const { calls, markers } = fixture.provider
      const newest = new Map(markers)
      age()
      const before = calls.length
      const stated = await activate('three')
      const { status, detail } = await fixture.attempt(dns, stated)
      expect([status, detail]).toEqual(['failing', expect.stringContaining('as it was before the last write')])
      expect(calls.slice(before)).toEqual(['read'])
      for (const [key, marker] of newest) markers.set(key, marker)
      await advance(1_000)
      expect(await dns.waitUntilApplied(stated)).toEqual({ status: 'published' })
      // After a minute, it is the marker that is wrong.
      await advance(MINUTE_MS)
      age()
      expect(await dns.waitUntilApplied(await activate('four'))).toEqual({ status: 'published' })
    },
  )

  test('a provider that rejects the marker publishes the names, and the rejection is reported', async () => {
    const { dns, markerRejections } = replica()
    fixture.provider.rejectedNames.add(toMarkerName(poolDomain))
    expect(await dns.waitUntilApplied(await activate('acme'))).toEqual({ status: 'published' })
    expect(markerRejections).toEqual(['not allowed'])
  })

  test('the number stays when a zone is no longer used, so that it can be used again', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await release('acme'))
    await fixture.sql`delete from dns_names`
    await fixture.sql`delete from dns_zones`
    expect(await dns.waitUntilApplied(await activate('beta'))).toEqual({ status: 'published' })
    expect(stops).toEqual([])
  })
})

describe('the resume of a stopped zone', () => {
  const fixture = useDnsFixture()
  const { replica, activate, update, release, row, advance } = fixture
  const operator = { actor: 'operator', address: null, requestId: 'resume' } as const
  const getAddresses = () =>
    Object.fromEntries(
      [...fixture.provider.records.values()]
        .filter(({ name }) => !name.startsWith('*'))
        .map(({ name, values }) => [name.split('.')[0], values[0]]),
    )
  const listActive = async () => {
    const rows = await fixture.sql<{ subdomain: string; address: string }[]>`
      select subdomain, host(load_balancer_ip) as address from pool_allocations where state = 'active' order by 1`
    return Object.fromEntries(rows.map(({ subdomain, address }) => [subdomain, address]))
  }

  /** Names that were released, granted again, readdressed and created after the dump that is restored. */
  const restoreOlder = async (dns: Reconciler) => {
    for (const [name, last] of Object.entries({ same: 1, gone: 2, reused: 70, moved: 3, odd: 4 }))
      await dns.waitUntilApplied(await activate(name, `192.0.2.${last}`))
    await dns.waitUntilApplied(await activate('freed', '192.0.2.5'))
    await dns.waitUntilApplied(await release('freed'))
    await advance(60 * MINUTE_MS)
    const restore = await backUp(fixture.sql)
    await dns.waitUntilApplied(await release('gone'))
    await dns.waitUntilApplied(await release('reused'))
    await dns.waitUntilApplied(await activate('reused', '192.0.2.71'))
    await dns.waitUntilApplied(await update('moved', '192.0.2.33'))
    await dns.waitUntilApplied(await activate('newer', '192.0.2.80'))
    await dns.waitUntilApplied(await activate('freed', '192.0.2.55'))
    fixture.provider.records.delete('*.odd.pool.test A')
    await restore()
  }
  const differences = (actions: Record<string, string>) =>
    expect.arrayContaining([
      { subdomain: 'freed', databaseAddress: null, zoneAddress: '192.0.2.55', action: actions.freed },
      { subdomain: 'gone', databaseAddress: '192.0.2.2', zoneAddress: null, action: actions.gone },
      { subdomain: 'moved', databaseAddress: '192.0.2.3', zoneAddress: '192.0.2.33', action: actions.moved },
      { subdomain: 'newer', databaseAddress: null, zoneAddress: '192.0.2.80', action: actions.newer },
      { subdomain: 'odd', databaseAddress: '192.0.2.4', zoneAddress: null, action: 'publish' },
      { subdomain: 'reused', databaseAddress: '192.0.2.70', zoneAddress: '192.0.2.71', action: actions.reused },
    ])
  const byDatabase = differences({
    ...{ freed: 'withdraw', newer: 'withdraw' },
    ...{ gone: 'publish', moved: 'publish', reused: 'publish' },
  })
  const byZone = differences({
    ...{ freed: 'adopt', newer: 'adopt', gone: 'release' },
    ...{ moved: 'readdress', reused: 'readdress' },
  })

  test('a dry run names exactly the differences, for both, and changes nothing', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    const before = new Map(fixture.provider.records)
    const plan = await dns.resume(poolDomain, { trust: 'database', caller: null })
    expect(plan).toMatchObject({
      kind: 'planned',
      stopCause: 'database-older',
      differenceCount: 6,
      differences: byDatabase,
    })
    const other = await dns.resume(poolDomain, { trust: 'zone', caller: null })
    expect(other).toMatchObject({ differenceCount: 6, differences: byZone })
    expect(fixture.provider.records).toEqual(before)
    expect(await listActive()).toMatchObject({ gone: '192.0.2.2', moved: '192.0.2.3' })
  })

  test('with the database as the truth, the zone gets its records, and what it does not know is removed', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    const result = await dns.resume(poolDomain, { trust: 'database', caller: operator })
    expect(result).toMatchObject({ kind: 'resumed', differences: byDatabase, pending: 0 })
    const expected = {
      same: '192.0.2.1',
      gone: '192.0.2.2',
      reused: '192.0.2.70',
      moved: '192.0.2.3',
      odd: '192.0.2.4',
    }
    expect(getAddresses()).toEqual(expected)
    expect(fixture.provider.records.size).toBe(10)
    expect(await dns.repair(poolDomain)).toMatchObject({ stopCause: null, changeCount: 0, orphanCount: 0 })
  })

  test('with the zone as the truth, the database gets its names and addresses, and no former token is valid', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    const tokens = await fixture.sql<{ token: string }[]>`select token_hash::text as token from pool_allocations`
    const result = await dns.resume(poolDomain, { trust: 'zone', caller: operator })
    expect(result).toMatchObject({ kind: 'resumed', differences: byZone, pending: 0 })
    const expected = {
      ...{ same: '192.0.2.1', reused: '192.0.2.71', moved: '192.0.2.33', odd: '192.0.2.4' },
      ...{ newer: '192.0.2.80', freed: '192.0.2.55' },
    }
    expect(await listActive()).toEqual(expected)
    expect(getAddresses()).toEqual(expected)
    const kept = await fixture.sql<{ subdomain: string }[]>`
      select subdomain from pool_allocations where token_hash::text in ${fixture.sql(tokens.map(({ token }) => token))}
      order by 1`
    expect(kept.map(({ subdomain }) => subdomain)).toEqual(['odd', 'same'])
    const events = await fixture.sql`
      select subdomain, event, actor from allocation_history where request_id = 'resume' order by subdomain`
    expect(events.map(({ subdomain, event, actor }) => `${subdomain} ${event} ${actor}`)).toEqual([
      ...['freed adopted operator', 'gone released operator', 'moved updated operator'],
      ...['newer adopted operator', 'reused updated operator'],
    ])
    expect(await dns.repair(poolDomain)).toMatchObject({ stopCause: null, changeCount: 0, orphanCount: 0 })
  })

  test('what clients changed after the restore is newer than the zone', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    expect((await dns.waitUntilApplied(await activate('late', '192.0.2.90'))).status).toBe('failing')
    await dns.waitUntilApplied(await release('same'))
    await dns.waitUntilApplied(await update('odd', '192.0.2.91'))
    expect(await dns.resume(poolDomain, { trust: 'zone', caller: operator })).toMatchObject({ pending: 0 })
    expect(await row('late')).toMatchObject({ failure: null })
    const expected = {
      ...{ late: '192.0.2.90', odd: '192.0.2.91', reused: '192.0.2.71', moved: '192.0.2.33' },
      ...{ newer: '192.0.2.80', freed: '192.0.2.55' },
    }
    expect(getAddresses()).toEqual(expected)
    expect(await listActive()).toEqual(expected)
  })

  test('a resume that is interrupted leaves the zone stopped, and a repetition completes it', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    fixture.provider.faults.push(null, null, { result: down })
    expect(await dns.resume(poolDomain, { trust: 'zone', caller: operator })).toMatchObject({ kind: 'unavailable' })
    expect(await dns.preview(poolDomain)).toMatchObject({ stopCause: 'database-older' })
    await advance(MINUTE_MS)
    expect(await dns.resume(poolDomain, { trust: 'zone', caller: operator })).toMatchObject({
      kind: 'resumed',
      pending: 0,
    })
    expect(await listActive()).toMatchObject({ newer: '192.0.2.80', reused: '192.0.2.71' })
  })

  test('a resume that loses its zone lock during the scan changes no name', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    const before = await listActive()
    const [markers, scan] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const { calls } = fixture.provider
    const count = calls.length
    fixture.provider.readGate = markers.promise
    const lost = expect(dns.resume(poolDomain, { trust: 'zone', caller: operator })).rejects.toThrow(LOST_LOCK)
    await until('the markers are read', () => calls.length === count + 1)
    fixture.provider.readGate = scan.promise
    markers.resolve()
    await until('the scan is in flight', () => calls.length === count + 2)
    await fixture.loseZoneLocks()
    scan.resolve()
    await lost
    expect(await listActive()).toEqual(before)
    expect(await dns.listZoneStates()).toMatchObject([{ stopCause: 'database-older' }])
  })

  test('a zone that is not stopped is not resumed', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    expect(await dns.resume(poolDomain, { trust: 'zone', caller: operator })).toEqual({ kind: 'not-stopped' })
  })

  test('without DNS writes there is only a dry run', async () => {
    const { dns } = replica()
    await restoreOlder(dns)
    const off = replica({ writesZones: false })
    expect(await off.dns.resume(poolDomain, { trust: 'database', caller: operator })).toEqual({
      kind: 'dns-writes-off',
    })
    const plan = await off.dns.resume(poolDomain, { trust: 'database', caller: null })
    expect(plan).toMatchObject({ kind: 'planned', differenceCount: 6 })
  })

  test('a zone of another installation is this one after a resume, and stopped for the other', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const [own] = await fixture.sql<{ id: string }[]>`select id from installation`
    await fixture.sql`update installation set id = ${otherInstallation}`
    expect((await dns.waitUntilApplied(await activate('beta', '192.0.2.2'))).status).toBe('failing')
    expect(await dns.resume(poolDomain, { trust: 'database', caller: operator })).toMatchObject({
      ...{ kind: 'resumed', stopCause: 'other-installation', pending: 0 },
    })
    await fixture.sql`update installation set id = ${own?.id ?? ''}`
    const state = await dns.waitUntilApplied(await activate('gamma', '192.0.2.3'))
    expect(state).toMatchObject({ status: 'failing', detail: expect.stringContaining('another database') })
  })

  test('an imported zone is written from its resume on', async () => {
    const { dns } = replica()
    await fixture.sql`insert into dns_zone_writes (zone, stopped_cause) values (${poolDomain}, 'imported')`
    expect((await dns.waitUntilApplied(await activate('acme'))).status).toBe('failing')
    expect(await dns.resume(poolDomain, { trust: 'database', caller: operator })).toMatchObject({
      stopCause: 'imported',
    })
    expect(getAddresses()).toEqual({ acme: '192.0.2.1' })
  })
})

describe('without DNS writes', () => {
  const fixture = useDnsFixture()
  const { replica, activate, advance } = fixture

  test('commits return at once, drift is planned, and the provider gets no write', async () => {
    const on = replica()
    await on.dns.waitUntilApplied(await activate('acme'))
    fixture.provider.records.clear()
    fixture.provider.markers.clear()
    const calls = fixture.provider.calls.length
    const { dns } = replica({ writesZones: false })
    expect(await dns.waitUntilApplied(await activate('beta'))).toEqual({ status: 'pending' })
    expect(await dns.preview(poolDomain)).toMatchObject({ changeCount: 4 })
    await advance(20 * MINUTE_MS)
    await dns.syncDueZones()
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 2, failing: 0 })
    expect(fixture.provider.calls.slice(calls)).not.toContain('apply')
  })
})

describe('a provider of another kind', () => {
  const fixture = useDnsFixture()
  const { replica, activate } = fixture

  test('a replica with it neither writes the zone nor compares it, and its callers wait for the others', async () => {
    const one = replica({ providerKind: 'powerdns' })
    await one.dns.waitUntilApplied(await activate('acme'))
    const calls = fixture.provider.calls.length
    const other = replica({ providerKind: 'local', waitMs: 5_000 })
    const waiting = other.dns.waitUntilApplied(await activate('beta'))
    expect(await other.dns.preview(poolDomain)).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringMatching(/published with powerdns.*configured with local/),
    })
    expect(fixture.provider.calls.slice(calls)).toEqual([])
    await one.dns.syncDueZones()
    expect(await waiting).toEqual({ status: 'published' })
  })
})

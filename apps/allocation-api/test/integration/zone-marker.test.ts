import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createMarkerRecord, parseMarkers, toMarkerName } from '../../src/reconciler/domain/zone-marker.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

const MARKER_KEY = `${toMarkerName(poolDomain)} TXT`
const MINUTE_MS = 60_000
const otherInstallation = '11111111-2222-4333-8444-555555555555'
const down = { kind: 'unavailable', reason: 'The provider is down.' } as const

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
  /** Copies the tables of the names and of the zones. `restore` brings them back. */
  const dump = async () => {
    const { sql } = fixture
    const tables = ['pool_allocations', 'dns_names', 'dns_zones', 'dns_zone_writes']
    for (const table of tables) {
      await sql`drop table if exists ${sql(`backup_${table}`)}`
      await sql`create table ${sql(`backup_${table}`)} as table ${sql(table)}`
    }
    return async () => {
      for (const table of tables) {
        await sql`delete from ${sql(table)}`
        await sql`insert into ${sql(table)} table ${sql(`backup_${table}`)}`
      }
    }
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
    const restore = await dump()
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
    expect(await dns.listZoneLag()).toMatchObject([{ failing: { 'database-older': 2 } }])
  })

  test('the drift check alone finds an older database', async () => {
    const { dns, stops } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const restore = await dump()
    await dns.waitUntilApplied(await activate('newer'))
    await restore()
    await advance(20 * MINUTE_MS)
    await dns.syncDueZones()
    await until('the zone is stopped', () => stops.length === 1)
    expect(fixture.provider.names()).toHaveLength(4)
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

import { until } from '@pool/test-kit/poll.ts'
import { expect } from 'vitest'
import type { RecordSet } from '../../../src/dns/domain/rrset.ts'
import { PoolZones, withinPools } from '../../../src/dns/pool-zones.ts'
import type { useDnsFixture } from '../../support/dns-fixture.ts'
import type { ZoneHost } from '../../support/random/hosts.ts'

export const HOST_ZONE = 'example.test'
const POOL = 'a.b.example.test'

/** Of another writer: the type and the name of a record at or above the pool. */
export type HidingRecord = readonly [type: 'NS' | 'DNAME', name: string]

/** In this order: a DNAME before anything is below it. */
export const HIDING_RECORDS: readonly HidingRecord[] = [
  ['DNAME', 'b.example.test'],
  ['DNAME', HOST_ZONE],
  ['DNAME', POOL],
  ['NS', 'b.example.test'],
  ['NS', POOL],
]

/** Each of the records in turn makes every name of the pool `failing`, until it is deleted. */
export const expectHiddenPool = async (
  fixture: ReturnType<typeof useDnsFixture>,
  host: ZoneHost,
  {
    records = HIDING_RECORDS,
    pool = POOL,
    zone = HOST_ZONE,
    beside = [],
  }: {
    readonly records?: readonly HidingRecord[]
    readonly pool?: string
    readonly zone?: string
    /** Record sets of others. */
    readonly beside?: readonly RecordSet[]
  },
) => {
  await host.addZone(zone)
  await host.edit(zone, { remove: [], put: beside })
  const zones = new PoolZones(new Map([[pool, zone]]))
  const provider = withinPools(host.createProvider(zones.zoneOf), zones)
  const { dns } = fixture.replica({ provider, pools: [pool], callTimeoutMs: 60_000 })
  const names: Awaited<ReturnType<typeof fixture.activate>>[] = []
  for (const [type, name] of records) {
    const hiding: RecordSet = { name, type, ttl: 300, values: ['elsewhere.example.'] }
    await host.edit(zone, { remove: [], put: [hiding] })
    const detail = `A record of type ${type} at ${name} hides every name of the pool. Delete that record.`
    names.push(await fixture.activate(`acme${names.length}`, '192.0.2.1', pool))
    await until('the drift check finds it', async () => {
      const result = await dns.repair(pool)
      return result.kind === 'repaired' && result.conflictCount === names.length && result.failing === names.length
    })
    for (const one of names) expect(await fixture.attempt(dns, one)).toEqual({ status: 'failing', detail })
    expect(await dns.compareName(pool, 'acme0')).toMatchObject({ conflict: detail })
    expect(await host.records(zone)).toContainEqual(expect.objectContaining({ name, type }))
    await host.edit(zone, { remove: [hiding], put: [] })
    for (const one of names)
      await until('the name is published', async () => {
        await fixture.advance(60_000)
        return (await fixture.attempt(dns, one)).status === 'published'
      })
  }
}

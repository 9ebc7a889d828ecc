import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { withoutZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import { PoolZones, withinPools } from '../../src/dns/pool-zones.ts'
import type { DnsProvider, ZoneOf } from '../../src/dns/provider.ts'
import { createCloudflareProvider } from '../../src/dns/providers/cloudflare/index.ts'
import { createPowerdnsProvider } from '../../src/dns/providers/powerdns/index.ts'
import { createRfc2136Provider } from '../../src/dns/providers/rfc2136/index.ts'
import { poolDomain, template, useDnsFixture } from '../support/dns-fixture.ts'
import { createPowerdnsHostStarter, createRfc2136HostStarter } from '../support/random/hosts.ts'
import { readAll } from './conformance.ts'
import { listRecordSets, putRecordSet } from './support/cloudflare.ts'
import { expectHiddenPool, HIDING_RECORDS, HOST_ZONE } from './support/hidden-pool.ts'
import { bind, knot, type ServerKind, startServer } from './support/rfc2136.ts'

const ZONE = 'test'
const OTHER_POOL = 'other.test'

interface Subject extends AsyncDisposable {
  readonly create: (zoneOf: ZoneOf) => DnsProvider
  readonly records: (zone: string) => Promise<readonly RecordSet[]>
  /** As another client. */
  readonly put: (zone: string, set: RecordSet) => Promise<void>
  /** The zones of the server from now on. */
  readonly serve: (...zones: string[]) => Promise<void>
}

/** Changes the zones of a server from one list to the next. */
const createServe = (add: (zone: string) => unknown, remove: (zone: string) => unknown) => {
  let served: string[] = []
  return async (...zones: string[]) => {
    for (const zone of served) if (!zones.includes(zone)) await remove(zone)
    for (const zone of zones) if (!served.includes(zone)) await add(zone)
    served = zones
  }
}

const startPowerdnsSubject = async (): Promise<Subject> => {
  const server = await startPowerdns()
  return {
    create: zoneOf => createPowerdnsProvider({ ...server.options, zoneOf }),
    records: server.records,
    put: server.put,
    serve: createServe(server.createZone, zone => server.call('DELETE', `/zones/${zone}.`)),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

const startCloudflareSubject = async (): Promise<Subject> => {
  const double = await startCloudflareDouble()
  return {
    create: zoneOf => createCloudflareProvider({ url: double.url, apiToken: double.token, zoneOf }),
    records: async zone => listRecordSets(double, zone),
    put: async (zone, set) => putRecordSet(double, zone, set),
    serve: createServe(zone => double.addZone(zone), double.deleteZone),
    [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
  }
}

const startRfc2136Subject = async (kind: ServerKind): Promise<Subject> => {
  const server = await startServer(kind)
  return {
    create: zoneOf => createRfc2136Provider({ ...server.options(), zoneOf }),
    records: server.records,
    put: (zone, set) => server.edit(zone, { remove: [], put: [set] }),
    serve: server.serve,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })

/** Of others: above the pool, at it, beside it, and below it at a name that is not allocated. */
const foreign = [
  set(ZONE, 'MX', '10 mail.example.'),
  set(ZONE, 'TXT', '"v=spf1 -all"'),
  set('www.test', 'A', '198.51.100.1'),
  set('xpool.test', 'A', '198.51.100.2'),
  set('acme.test', 'A', '198.51.100.3'),
  set(poolDomain, 'MX', '10 mail.example.'),
  set(`free.${poolDomain}`, 'TXT', '"theirs"'),
]
const sorted = (sets: readonly RecordSet[]) => sets.toSorted((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1))
const fqdn = (pool: string, label = 'acme') => `${label}.${pool}`
const signal = () => AbortSignal.timeout(120_000)

describe.each([
  ['PowerDNS', missingPowerdns, startPowerdnsSubject],
  ['BIND', bind.missingPrograms, () => startRfc2136Subject(bind)],
  ['Knot', knot.missingPrograms, () => startRfc2136Subject(knot)],
  ['the double of Cloudflare', undefined, startCloudflareSubject],
])('%s', (_, missing, start) => {
  const fixture = useDnsFixture()
  const { replica, activate, release, update, advance, attempt, row } = fixture
  let subject: Subject
  beforeEach(async () => {
    subject = await start()
  })
  afterEach(() => subject?.[Symbol.asyncDispose]())

  const startReplica = (configured: readonly (readonly [string, string])[] = []) => {
    const zones = new PoolZones(new Map(configured))
    const provider = withinPools(subject.create(zones.zoneOf), zones)
    return { provider, ...replica({ provider, callTimeoutMs: 60_000 }) }
  }

  test.skipIf(shouldSkip(missing)).each([
    ['found', []],
    ['configured', [[poolDomain, ZONE] as const, [OTHER_POOL, ZONE] as const]],
  ])('two pools in a larger zone, which is %s: no record of others is ever touched', async (_, configured) => {
    await subject.serve(ZONE)
    for (const one of foreign) await subject.put(ZONE, one)
    const { dns, provider, stops, driftChecks } = startReplica(configured)
    const pools = [poolDomain, OTHER_POOL]
    for (const pool of pools) expect(await provider.checkZone(pool, signal())).toEqual({ kind: 'writable' })
    const labels = ['acme', 'bravo', 'charlie']
    const commits = pools.flatMap(pool => labels.map(label => ({ pool, label })))
    await Promise.all(
      commits.map(async ({ pool, label }) => {
        const version = await activate(label, '192.0.2.1', pool)
        expect(await dns.waitUntilApplied(version)).toEqual({ status: 'published' })
      }),
    )
    const ours = (pool: string, label: string, address = '192.0.2.1') =>
      ['', '*.'].map(prefix => ({ ...set(`${prefix}${fqdn(pool, label)}`, 'A', address), ttl: template.ttl }))
    const all = async () => withoutZoneMarker([...(await subject.records(ZONE))])
    const expectAll = async (...sets: readonly RecordSet[]) =>
      expect(sorted(await all())).toEqual(sorted([...foreign, ...sets]))
    await expectAll(...commits.flatMap(({ pool, label }) => ours(pool, label)))

    const mine = pools.map(pool => set(`x.${fqdn(pool)}`, 'TXT', '"of the tenant"'))
    for (const one of mine) await subject.put(ZONE, one)
    await dns.waitUntilApplied(await release('acme'))
    await dns.waitUntilApplied(await update('acme', '192.0.2.7', OTHER_POOL))
    await subject.put(ZONE, { ...set(fqdn(OTHER_POOL, 'bravo'), 'A', '198.51.100.66'), ttl: 60 })
    for (const pool of pools)
      expect(await dns.repair(pool)).toMatchObject({ kind: 'repaired', pending: 0, orphanCount: 0 })
    await expectAll(
      ...commits.filter(({ label }) => label !== 'acme').flatMap(({ pool, label }) => ours(pool, label)),
      ...ours(OTHER_POOL, 'acme', '192.0.2.7'),
      ...mine.slice(1),
    )
    expect([stops, driftChecks.map(check => check.kind)]).toEqual([[], ['compared', 'compared']])
    for (const pool of pools) {
      const read = await readAll(provider, pool, signal())
      if (read.kind !== 'read') throw new Error(read.reason)
      expect(read.records.filter(({ name }) => name !== pool && !name.endsWith(`.${pool}`))).toEqual([])
    }
    const outside = { kind: 'delete', name: 'www.test', type: 'A' } as const
    expect(await provider.apply(poolDomain, [outside], signal())).toMatchObject({ rejected: [{ name: 'www.test' }] })
  })

  test.skipIf(shouldSkip(missing))(
    'a zone that hides a name: failing at the drift check and the commit, until it is gone',
    async () => {
      const hiding = fqdn(poolDomain, 'bravo')
      await subject.serve(poolDomain)
      const { dns } = startReplica()
      const failing = { status: 'failing', detail: expect.stringContaining(`${hiding}, answers for `) }
      expect(await dns.waitUntilApplied(await activate('bravo'))).toEqual({ status: 'published' })
      await subject.serve(poolDomain, hiding)
      await until('the drift check finds it', async () => {
        const result = await dns.repair(poolDomain)
        return result.kind === 'repaired' && result.conflictCount === 1 && result.failing === 1
      })
      expect(await row('bravo')).toMatchObject({ last_error: failing.detail })
      expect(await dns.compareName(poolDomain, 'bravo')).toMatchObject({ conflict: failing.detail })
      expect(await dns.waitUntilApplied(await activate('charlie'))).toEqual({ status: 'published' })
      await dns.waitUntilApplied(await release('bravo'))
      const next = await activate('bravo', '192.0.2.2')
      expect(await attempt(dns, next)).toEqual(failing)
      await subject.serve(poolDomain)
      await until('the name is published', async () => {
        await advance(60_000)
        return (await attempt(dns, next)).status === 'published'
      })
    },
  )
})

describe('a record at or above the pool hides all of its names, until it is deleted', () => {
  const fixture = useDnsFixture()

  test.skipIf(shouldSkip(missingPowerdns))('PowerDNS, in a zone that is read by name', async () => {
    await using server = await startPowerdns()
    const beside = Array.from({ length: 1_000 }, (_, i) => set(`x${i}.${HOST_ZONE}`, 'A', '198.51.100.1'))
    await expectHiddenPool(fixture, await createPowerdnsHostStarter(server)(fixture.sql), { beside })
  })

  // Knot has no DNAME above a name.
  test.skipIf(shouldSkip(bind.missingPrograms ?? knot.missingPrograms)).each([
    ['BIND', bind, HIDING_RECORDS],
    ['Knot', knot, HIDING_RECORDS.filter(([type], i) => type === 'NS' || i === 0)],
  ])('%s', async (_, kind, records) => {
    await using server = await startServer(kind, [HOST_ZONE])
    await expectHiddenPool(fixture, await createRfc2136HostStarter(server)(fixture.sql), { records })
  })
})

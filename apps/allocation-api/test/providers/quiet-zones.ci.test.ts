import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { isZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { describe, expect, test, vi } from 'vitest'
import type { ReadResult } from '../../src/dns/domain/result.ts'
import { type RecordChange, toOwnerName } from '../../src/dns/domain/rrset.ts'
import { PoolZones, withinPools } from '../../src/dns/pool-zones.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { useDnsFixture } from '../support/dns-fixture.ts'
import {
  createPowerdnsHostStarter,
  createRfc2136HostStarter,
  type StartZoneHost,
  startCloudflareHost,
  startDynadotHost,
  startLocalHost,
  type ZoneHost,
} from '../support/random/hosts.ts'
import { bind, knot, startServer, withSettings } from './support/rfc2136.ts'

const MAX_CALLS_A_MINUTE = 30
/** In the first minute after the last change, the service finds out what fails. */
const MINUTES = 1 + proofSize(12, 2)
const NAMES = proofSize(40, 8)

/** What keeps failing, each in a zone of its own. */
const FAULTS = ['nothing', 'foreign', 'hidden', 'refused', 'one-refused', 'kept', 'ignored', 'stale', 'drift'] as const
type Fault = (typeof FAULTS)[number]
const toZone = (fault: Fault) => `${fault}.test`
/** Inside of no zone of the provider. */
const MISSING = 'a.b.missing.test'
/** A record between this pool and its zone hides all of its names; not with `local`, where each pool is a zone. */
const HIDDEN = { pool: 'a.b.above.test', zone: 'above.test', name: 'b.above.test' }
const zones = [...FAULTS.map(toZone), MISSING, HIDDEN.pool]

const foreign = (name: string) => ({ name, type: 'CNAME', ttl: 300, values: ['elsewhere.example.'] })

/** Fails as the fault of the zone says, whatever the provider is. */
const withFaults = (inner: DnsProvider): DnsProvider => {
  const former = new Map<string, ReadResult>()
  const ofMarker = (change: RecordChange) => isZoneMarker({ name: toOwnerName(change) })
  return {
    ...inner,
    async read(zone, ...others) {
      const result = await inner.read(zone, ...others)
      if (zone !== toZone('stale')) return result
      const stale = former.get(zone) ?? result
      former.set(zone, stale)
      return stale
    },
    async apply(zone, changes, ...others) {
      if (zone === toZone('ignored')) return { kind: 'applied', rejected: [] }
      if (zone !== toZone('kept')) return inner.apply(zone, changes, ...others)
      const kept = changes.filter(change => change.kind === 'upsert' || ofMarker(change))
      return inner.apply(zone, kept, ...others)
    },
  }
}

const isRefused = (text: string) => /acme\d+\.refused\.test|acme0\.one-refused\.test/.test(text)

/** The answer of an HTTP API that rejects a record of the request; null: it accepts all of them. */
const refuse = (url: URL, body: string): Response | null => {
  const domain = url.searchParams.get('domain')
  const subdomains = Array.from(url.searchParams, ([key, value]) =>
    /^subdomain\d/.test(key) ? `${value}.${domain}` : '',
  )
  if (domain !== null)
    return isRefused(`${subdomains}`)
      ? Response.json({ SetDnsResponse: { ResponseCode: '-1', Status: 'error', Error: 'invalid ip address' } })
      : null
  if (!isRefused(body)) return null
  const errors = [{ code: 9000, message: 'DNS name is invalid.' }]
  return url.pathname.includes('/client/v4/')
    ? Response.json({ success: false, errors, messages: [], result: null }, { status: 400 })
    : Response.json({ error: 'The policy of the server does not allow this.' }, { status: 422 })
}

/** Counts the requests, or the calls of a provider without requests, by the zone that they are made for. */
const countCalls = (inner: DnsProvider, isDns: boolean, onCall: (zone: string) => void, isDown: () => boolean) => {
  const current = new AsyncLocalStorage<string>()
  const onRequest = () => {
    const zone = current.getStore()
    if (zone !== undefined) onCall(zone)
  }
  const original = globalThis.fetch
  const fetches = vi.spyOn(globalThis, 'fetch').mockImplementation((...args) => {
    onRequest()
    const [url, init] = args
    const isOwn = current.getStore() !== undefined
    if (isOwn && isDown()) return Promise.resolve(new Response('<html>oops</html>', { status: 500 }))
    const refusal = !isOwn ? null : refuse(new URL(String(url)), String(init?.body ?? ''))
    return refusal ? Promise.resolve(refusal) : original(...args)
  })
  /** A connection, and each of its updates: queries for zones follow each other on one. */
  const onSocket = (message: unknown) => {
    const zone = current.getStore()
    if (zone === undefined) return
    const { socket } = message as { socket: Socket }
    onCall(zone)
    const write = socket.write.bind(socket)
    socket.write = ((data: Buffer, ...others: []) => {
      if (((data[4] ?? 0) >> 3) % 16 === 5) onCall(zone)
      return write(data, ...others)
    }) as typeof socket.write
  }
  const run = <Result>(zone: string, work: () => Promise<Result>) => {
    if (inner.isDatabase) onCall(zone)
    return current.run(zone, work)
  }
  const [channel, listener] = isDns ? ['net.client.socket', onSocket] : ['http.client.request.start', onRequest]
  subscribe(channel, listener)
  const provider: DnsProvider = {
    ...inner,
    read: (zone, ...others) => run(zone, () => inner.read(zone, ...others)),
    apply: (zone, ...others) => run(zone, () => inner.apply(zone, ...others)),
    async *readZone(zone, ...others) {
      const parts = inner.readZone(zone, ...others)
      for (;;) {
        const { done, value } = await run(zone, () => parts.next())
        if (done) return
        yield value
      }
    },
  }
  return {
    provider,
    [Symbol.dispose]() {
      fetches.mockRestore()
      unsubscribe(channel, listener)
    },
  }
}

describe('while nothing changes, a zone has few calls, whatever fails in it', { timeout: 600_000 }, () => {
  const fixture = useDnsFixture()

  const run = async (
    startHost: StartZoneHost,
    { isDns = false, stop }: { readonly isDns?: boolean; readonly stop?: () => Promise<void> } = {},
  ) => {
    await using host: ZoneHost = await startHost(fixture.sql)
    for (const fault of FAULTS) await host.addZone(toZone(fault))
    if (!isDns) await host.addZone(`acme0.${toZone('hidden')}`).catch(() => {})
    await host.addZone(HIDDEN.zone)
    const delegation = { name: HIDDEN.name, type: 'NS', ttl: 300, values: ['elsewhere.example.'] }
    await host.edit(HIDDEN.zone, { remove: [], put: [delegation] })
    const poolZones = new PoolZones(new Map([[HIDDEN.pool, HIDDEN.zone]]))
    let seconds = 0
    let isDown = false
    const now = performance.now.bind(performance)
    using _clock = { [Symbol.dispose]: () => spy.mockRestore() }
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now() + seconds * 1_000)
    const calls = new Map<string, number[]>()
    const onCall = (zone: string) => {
      const counts = calls.get(zone) ?? []
      counts[Math.floor(seconds)] = (counts[Math.floor(seconds)] ?? 0) + 1
      calls.set(zone, counts)
    }
    using counter = countCalls(
      withinPools(withFaults(host.createProvider(poolZones.zoneOf)), poolZones),
      isDns,
      onCall,
      () => isDown,
    )
    const { dns, untilIdle, errors } = fixture.replica({
      provider: counter.provider,
      pools: zones,
      random: Math.random,
      now: () => performance.now(),
    })
    let passedMs = 0
    const second = async () => {
      seconds += 1
      passedMs += 1_000
      const [due] = await fixture.sql<{ ms: number | null }[]>`
        select extract(epoch from least(
          (select min(next_attempt_at) from dns_names where applied_version < version),
          (select min(next_drift_check_at) from dns_zones)) - clock_timestamp())::float8 * 1000 as ms`
      if ((due?.ms ?? Number.POSITIVE_INFINITY) <= passedMs || passedMs >= 10_000) {
        await fixture.advanceRows(passedMs)
        passedMs = 0
        await dns.syncDueZones()
      }
      await dns.checkMarkers(AbortSignal.timeout(60_000))
      await untilIdle()
    }
    for (const zone of zones) {
      const fault = FAULTS.find(one => toZone(one) === zone)
      for (let i = 0; i < NAMES; i += 1) {
        if (fault === 'foreign') await host.edit(zone, { remove: [], put: [foreign(`acme${i}.${zone}`)] })
        await fixture.activate(`acme${i}`, '192.0.2.1', zone)
      }
    }
    await second()
    await second()
    for (const zone of (['kept', 'ignored', 'stale'] as const).map(toZone)) {
      await fixture.release('acme0', zone)
      await fixture.activate('acme0', '192.0.2.2', zone)
    }
    /** The calls of each zone in the worst minute after the first one. */
    const pass = async (minutes: number) => {
      const start = seconds
      while (seconds < start + 60 * minutes) {
        await second()
        if (!isDown && seconds % 5 === 0)
          await host.edit(toZone('drift'), { remove: [{ name: `acme0.${toZone('drift')}`, type: 'A' }], put: [] })
      }
      const countFrom = (zone: string, first: number) =>
        (calls.get(zone) ?? []).slice(first, first + 60).reduce((sum, count) => sum + (count ?? 0), 0)
      const starts = Array.from({ length: 60 * (minutes - 2) + 1 }, (_, i) => start + 60 + i)
      return zones.map(zone => [zone, Math.max(...starts.map(first => countFrom(zone, first)))] as const)
    }
    const worst = [...(await pass(MINUTES))]
    isDown = true
    await stop?.()
    for (const zone of zones) await fixture.activate('late', '192.0.2.3', zone)
    worst.push(...(await pass(MINUTES)))
    expect(errors).toEqual([])
    reportProof(`${NAMES} names each, ${worst.map(([zone, count]) => `${zone} ${count}`).join(', ')}`)
    expect(worst.filter(([, count]) => count > MAX_CALLS_A_MINUTE)).toEqual([])
  }

  test('local', () => run(startLocalHost))
  test('dynadot', () => run(startDynadotHost))
  test('cloudflare', () => run(startCloudflareHost))
  test.skipIf(shouldSkip(missingPowerdns))('powerdns', async () => {
    await using server = await startPowerdns()
    await run(createPowerdnsHostStarter(server))
  })
  const refusing = [
    withSettings(bind, text =>
      text
        .replace(
          /(zone "refused.test" .*)allow-update [^}]*};/,
          '$1update-policy { grant full.key.test zonesub TXT; };',
        )
        .replace(
          /(zone "one-refused.test" .*)allow-update [^}]*};/,
          '$1update-policy { deny full.key.test subdomain acme0.one-refused.test ANY; grant full.key.test zonesub ANY; };',
        ),
    ),
    knot,
  ]
  for (const kind of refusing)
    test.skipIf(shouldSkip(kind.missingPrograms))(`rfc2136 with ${kind.name}`, async () => {
      await using server = await startServer(kind, [...FAULTS.map(toZone), `acme0.${toZone('hidden')}`, HIDDEN.zone])
      await run(createRfc2136HostStarter(server), { isDns: true, stop: server.stop })
    })
})

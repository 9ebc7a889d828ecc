import { type DoubleRecord, type DynadotDouble, startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import { isZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, smallPoolEnv, startApi, startReplicas } from '@pool/test-kit/services.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { pool } from './operations.ts'

// URL encoding does not change these keys, so one search finds both forms.
export const apiKey = 'k3y-of-the-account-7f1d0c2b9a'

/** The foreign records of the domain. */
export const foreign = {
  main: [
    { host: '', type: 'A', value: '198.51.100.1', extra: '' },
    { host: '', type: 'AAAA', value: '2001:db8::1', extra: '' },
    { host: '', type: 'MX', value: 'mail1.example', extra: '10' },
    { host: '', type: 'MX', value: 'mail2.example', extra: '20' },
    { host: '', type: 'TXT', value: 'v=spf1 include:_spf.example -all', extra: '' },
    { host: '', type: 'TXT', value: 'verification=a&b "c"', extra: '' },
  ],
  sub: [
    { host: 'www', type: 'CNAME', value: 'web.example', extra: '' },
    { host: 'lists', type: 'MX', value: 'lists.example', extra: '5' },
    { host: 'lists', type: 'TXT', value: 'v=spf1 mx -all', extra: '' },
    { host: 'office', type: 'A', value: '198.51.100.2', extra: '' },
    { host: 'office', type: 'A', value: '198.51.100.3', extra: '' },
  ],
} as const satisfies Record<string, readonly DoubleRecord[]>

export interface DynadotFixtureOptions {
  readonly processes?: number
  /** Without a proxy, a stopped double refuses connections. With one, the test can make it hang. */
  readonly hasProxy?: boolean
  /** Duration of a call of the double in milliseconds. */
  readonly callMs?: number
  readonly env?: Record<string, string>
  /** Foreign records below the domain. They count against its limit of 100. */
  readonly foreignSub?: readonly DoubleRecord[]
}

/** API processes on one database, whose provider is a Dynadot double. */
export interface DynadotFixture extends AsyncDisposable {
  readonly database: TestDatabase
  readonly double: DynadotDouble
  /** The proxy between the processes and the double. Throws without `hasProxy`. */
  readonly proxy: TcpProxy
  /** The first process, for tests that need only one. */
  readonly api: Api
  readonly apis: readonly Api[]
  /** Calls of the double since the last reset, including failed ones. */
  callCount(): number
  /** Fails unless the domain has the address of each of these hosts, the unchanged foreign records and nothing else. */
  expectRecords(addresses: Readonly<Record<string, string>>, foreignSub?: readonly DoubleRecord[]): void
  /** Stops the processes. Fails if a key is in their logs, in a response or in their metrics. */
  stopAndExpectNoKeys(): Promise<void>
}

const format = ({ host, type, value, extra }: DoubleRecord) => `${host} ${type} ${extra} ${value}`
const sorted = (records: readonly DoubleRecord[]) => records.map(format).sort()

const start = async (options: DynadotFixtureOptions): Promise<DynadotFixture> => {
  const { processes = 1, hasProxy = false, callMs = 0, env = {}, foreignSub: initialSub = foreign.sub } = options
  await using cleanup = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 2 })
  cleanup.defer(() => database.drop())
  const double = cleanup.use(await startDynadotDouble({ domains: [pool], apiKey, delayMs: callMs }))
  double.change(pool, { main: foreign.main, sub: initialSub })
  const { mode, ttl } = double.domain(pool)
  const url = new URL(double.url)
  const proxy = hasProxy ? await startTcpProxy(Number(url.port)) : undefined
  if (proxy) {
    cleanup.defer(() => proxy.close())
    url.port = String(proxy.port)
  }
  const fleet = await startReplicas(processes, () =>
    startApi(database.url, {
      ...smallPoolEnv,
      PDM_LOG_LEVEL: 'trace',
      DNSPROVIDER_KIND: 'dynadot',
      PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: url.href }),
      DNSPROVIDER_DYNADOT_API_KEY: apiKey,
      DNSPROVIDER_MANAGED_DOMAINS: pool,
      DNSPROVIDER_RECORD_NAMES: '@',
      ...env,
    }),
  )
  cleanup.defer(() => fleet.kill())

  const responses: string[] = []
  const apis = fleet.replicas.map(
    (api): Api => ({
      ...api,
      async call(...request) {
        const response = await api.call(...request)
        responses.push([...response.headers].flat().join('\n'), response.text)
        return response
      },
    }),
  )
  const [api] = apis
  if (!api) throw new Error('the fixture needs at least one process')
  // Each process reads the zone once after its start, which must not use a fault or a count of the test.
  const firstRead = /^pdm_dns_operation_duration_seconds_count\{operation="read",outcome="\w+"\} [1-9]/m
  for (const { call } of fleet.replicas) {
    await until('the process has read the zone', async () => firstRead.test((await call('GET', '/metrics')).text))
  }

  const ownedCleanup = cleanup.move()
  return {
    database,
    double,
    get proxy() {
      if (!proxy) throw new Error('the fixture has no proxy: set hasProxy')
      return proxy
    },
    api,
    apis,
    callCount: () => double.calls.get_dns + double.calls.set_dns2 + double.calls.busy + double.calls.other,
    expectRecords(addresses, foreignSub = initialSub) {
      const domain = double.domain(pool)
      const ours = Object.entries(addresses).map(([host, value]) => ({ host, type: 'A', value, extra: '' }))
      const sub = domain.sub.filter(({ host }) => !isZoneMarker({ name: `${host}.${pool}` }))
      expect(sorted(sub)).toEqual(sorted([...foreignSub, ...ours]))
      expect(sorted(domain.main)).toEqual(sorted(foreign.main))
      expect(domain).toMatchObject({ mode, ttl })
    },
    async stopAndExpectNoKeys() {
      for (const { call } of apis) expect((await call('GET', '/metrics')).text).toContain('pdm_dns_operation')
      await Promise.all(apis.map(({ process }) => process.stop()))
      const lines = apis.flatMap(api => api.lines)
      expect(lines.filter(line => line.includes('"stopped"'))).toHaveLength(apis.length)
      const texts = [...lines, ...responses]
      expect(texts.filter(text => text.includes(apiKey))).toEqual([])
    },
    [Symbol.asyncDispose]: () => ownedCleanup.disposeAsync(),
  }
}

/** A test with its own fixture. It also fails if a process reveals a key. */
export const testWithDynadot = (
  title: string,
  options: DynadotFixtureOptions,
  run: (fixture: DynadotFixture) => Promise<void>,
): void =>
  test(title, async () => {
    await using fixture = await start(options)
    await run(fixture)
    await fixture.stopAndExpectNoKeys()
  })

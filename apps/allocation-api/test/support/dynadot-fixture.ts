import type { DoubleRecord } from '@pool/test-kit/dns/dynadot-domain.ts'
import { type DynadotDouble, startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { expect, test } from 'vitest'
import type { Api } from './api.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { pool } from './operations.ts'
import { startReplicas } from './replicas.ts'

// The same as they are and as they stand in a URL, so that one search finds both.
export const apiKey = 'k3y-of-the-account-7f1d0c2b9a'
export const wrongKey = 'k3y-of-another-account-51ab60'

/** What somebody else has in the domain. */
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

export interface DynadotStageOptions {
  readonly processes?: number
  /** Without one, a double that is stopped refuses connections; with one, it can hang. */
  readonly hasProxy?: boolean
  /** Milliseconds that a call of the double takes. */
  readonly callMs?: number
  readonly env?: Record<string, string>
  /** Others' records of names below the domain, which count against the 100 that it holds. */
  readonly foreignSub?: readonly DoubleRecord[]
}

/** API processes on one database, whose provider is a Dynadot double. */
export interface DynadotStage extends AsyncDisposable {
  readonly database: TestDatabase
  readonly double: DynadotDouble
  /** Between the processes and the double; an error where none was asked for. */
  readonly proxy: TcpProxy
  /** The first of them, for tests that need no more. */
  readonly api: Api
  readonly apis: readonly Api[]
  /** Calls of the double since they were last reset, whatever came of them. */
  callCount(): number
  /** The domain has the address of each of these hosts, everything foreign as it was, and nothing else. */
  expectRecords(addressOf: Readonly<Record<string, string>>, foreignSub?: readonly DoubleRecord[]): void
  /** Ends the processes; no key is in their logs to the last line, in any answer or in their metrics. */
  endWithoutKeys(): Promise<void>
}

const textOf = ({ host, type, value, extra }: DoubleRecord) => `${host} ${type} ${extra} ${value}`
const sorted = (records: readonly DoubleRecord[]) => records.map(textOf).sort()

const start = async (options: DynadotStageOptions): Promise<DynadotStage> => {
  const { processes = 1, hasProxy = false, callMs = 0, env = {}, foreignSub: initialSub = foreign.sub } = options
  await using made = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 2 })
  made.defer(() => database.drop())
  const double = made.use(await startDynadotDouble({ domains: [pool], apiKey, delayMs: callMs }))
  double.change(pool, { main: foreign.main, sub: initialSub })
  const { mode, ttl } = double.domain(pool)
  const url = new URL(double.url)
  const proxy = hasProxy ? await startTcpProxy(Number(url.port)) : undefined
  if (proxy) {
    made.defer(() => proxy.close())
    url.port = String(proxy.port)
  }
  const fleet = await startReplicas(database.url, processes, {
    PDM_LOG_LEVEL: 'trace',
    DNSPROVIDER_KIND: 'dynadot',
    DNSPROVIDER_DYNADOT_URL: url.href,
    DNSPROVIDER_DYNADOT_API_KEY: apiKey,
    DNSPROVIDER_MANAGED_DOMAINS: pool,
    DNSPROVIDER_RECORD_NAMES: '@',
    ...env,
  })
  made.defer(() => fleet.stop())

  const answers: string[] = []
  const apis = fleet.apis.map(
    (api): Api => ({
      ...api,
      async call(...request) {
        const answer = await api.call(...request)
        answers.push([...answer.headers].flat().join('\n'), answer.text)
        return answer
      },
    }),
  )
  const [api] = apis
  if (!api) throw new Error('a stage needs a process')

  const kept = made.move()
  return {
    database,
    double,
    get proxy() {
      if (!proxy) throw new Error('the stage has no proxy')
      return proxy
    },
    api,
    apis,
    callCount: () => double.calls.get_dns + double.calls.set_dns2 + double.calls.busy + double.calls.other,
    expectRecords(addressOf, foreignSub = initialSub) {
      const now = double.domain(pool)
      const ours = Object.entries(addressOf).map(([host, value]) => ({ host, type: 'A', value, extra: '' }))
      expect(sorted(now.sub)).toEqual(sorted([...foreignSub, ...ours]))
      expect(sorted(now.main)).toEqual(sorted(foreign.main))
      expect(now).toMatchObject({ mode, ttl })
    },
    async endWithoutKeys() {
      for (const { call } of apis) expect((await call('GET', '/metrics')).text).toContain('pdm_dns_operation')
      await Promise.all(apis.map(({ process }) => process.stop()))
      const lines = apis.flatMap(api => api.lines)
      expect(lines.filter(line => line.includes('"stopped"'))).toHaveLength(apis.length)
      const said = [...lines, ...answers]
      expect(said.filter(text => text.includes(apiKey) || text.includes(wrongKey))).toEqual([])
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** A test on a stage of its own; that no key was told is part of each. */
export const testOnStage = (
  title: string,
  options: DynadotStageOptions,
  work: (stage: DynadotStage) => Promise<void>,
): void =>
  test(title, async () => {
    await using stage = await start(options)
    await work(stage)
    await stage.endWithoutKeys()
  })

import { Resolver } from 'node:dns/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { proofSize } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'
import { bind } from '../providers/support/rfc2136/bind.ts'
import { knot } from '../providers/support/rfc2136/knot.ts'
import { type ServerKind, startServer } from '../providers/support/rfc2136/server.ts'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'

const UPDATES = proofSize(200, 20)
const QUERY_INTERVAL_MS = 3
const LOAD_CALLERS = 4
/** The longest time for which PowerDNS repeats an earlier answer (its cache-ttl and query-cache-ttl). */
const CACHE_MS = 21_000

interface NameServer {
  readonly zone: string
  readonly env: Readonly<Record<string, string>>
  /** Undefined: the API's own DNS server. */
  readonly port?: number
  readonly stop: () => Promise<void>
}

const startPowerdnsServer = async (): Promise<NameServer> => {
  const server = await startPowerdns()
  const zone = 'update.test'
  await server.createZone(zone)
  return {
    zone,
    env: {
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: server.options.url,
      DNSPROVIDER_POWERDNS_API_KEY: server.options.apiKey,
    },
    port: server.dnsPort,
    stop: async () => {
      await server[Symbol.asyncDispose]()
    },
  }
}

const startRfc2136Server = async (kind: ServerKind): Promise<NameServer> => {
  const server = await startServer(kind)
  return {
    zone: server.zone,
    env: {
      DNSPROVIDER_KIND: 'rfc2136',
      DNSPROVIDER_RFC2136_HOST: '127.0.0.1',
      DNSPROVIDER_RFC2136_PORT: String(server.port),
      DNSPROVIDER_RFC2136_TSIG_NAME: 'full.key.test',
      DNSPROVIDER_RFC2136_TSIG_SECRET: server.secret,
    },
    port: server.port,
    stop: async () => {
      await server[Symbol.asyncDispose]()
    },
  }
}

const startLocalServer = async (): Promise<NameServer> => ({
  zone: 'update.test',
  env: { DNSPROVIDER_KIND: 'local' },
  stop: async () => {},
})

const servers: readonly (readonly [name: string, missing: string | undefined, start: () => Promise<NameServer>])[] = [
  ['local', undefined, startLocalServer],
  ['PowerDNS', missingPowerdns, startPowerdnsServer],
  ['Knot', knot.missingPrograms, () => startRfc2136Server(knot)],
  ['BIND', bind.missingPrograms, () => startRfc2136Server(bind)],
]

for (const [kind, missing, start] of servers) {
  test.skipIf(shouldSkip(missing))(
    `${kind}: a resolver sees the old or the new address during ${UPDATES} updates under load, never none`,
    { timeout: 120_000 },
    async () => {
      const server = await start()
      const database = await createTestDatabase()
      const { zone } = server
      const env = { ...server.env, DNSPROVIDER_MANAGED_DOMAINS: zone, DNSPROVIDER_RECORD_NAMES: '@,*' }
      const api = await startApi(database.url, env)
      let isDone = false
      try {
        const post = (verb: string, body: object) => api.call('POST', `/api/v1/pool/${zone}/${verb}`, body)
        const commit = async (subdomain: string, loadBalancerIP: string): Promise<string> => {
          const { reservationToken } = (await post('reserve', { subdomain })).body
          const body = { subdomain, reservationToken, loadBalancerIP, sovereignFQDN: `${subdomain}.${zone}` }
          const { status, text } = await post('commit', body)
          if (status !== 200) throw new Error(text)
          return reservationToken
        }
        const toAddress = (version: number) => `198.18.${version >> 8}.${version & 255}`
        const reservationToken = await commit('moving', toAddress(1))
        /** The newest version that was asked for, and the newest that was published. */
        let requested = 1
        let published = 1
        const errors: string[] = []
        let queries = 0

        const poll = async (name: string): Promise<void> => {
          const resolver = new Resolver({ timeout: 5_000, tries: 2 })
          resolver.setServers([`127.0.0.1:${server.port ?? api.dnsPort}`])
          while (!isDone) {
            const before = published
            const answer = await resolver.resolve4(name).catch(({ code }: NodeJS.ErrnoException) => [String(code)])
            queries += 1
            const allowed = Array.from({ length: requested - before + 1 }, (_, i) => toAddress(before + i))
            const isCached =
              kind === 'PowerDNS' &&
              Array.from({ length: before }, (_, i) => toAddress(i + 1)).includes(answer[0] ?? '')
            if (answer.length !== 1 || !(allowed.includes(answer[0] ?? '') || isCached)) {
              errors.push(`${name}: ${answer}, allowed ${allowed}`)
            }
            await sleep(QUERY_INTERVAL_MS)
          }
        }
        const load = async (caller: number): Promise<void> => {
          for (let n = 0; !isDone; n += 1) await commit(`load-${caller}-${n}`, '198.18.0.1').catch(() => {})
        }
        const running = [
          ...['moving', 'any.moving'].map(name => poll(`${name}.${zone}`)),
          ...Array.from({ length: LOAD_CALLERS }, (_, caller) => load(caller)),
        ]
        for (let n = 0; n < UPDATES; n += 1) {
          requested += 1
          const body = { subdomain: 'moving', reservationToken, loadBalancerIP: toAddress(requested) }
          const { status, text } = await post('update', body)
          if (status !== 200) throw new Error(text)
          published = requested
        }
        isDone = true
        await Promise.all(running)
        expect(errors).toEqual([])
        expect(queries).toBeGreaterThan(UPDATES)
        const deadline = Date.now() + CACHE_MS
        const resolver = new Resolver()
        resolver.setServers([`127.0.0.1:${server.port ?? api.dnsPort}`])
        let last: string[] = []
        while (Date.now() < deadline && last[0] !== toAddress(requested)) {
          last = await resolver.resolve4(`moving.${zone}`)
          await sleep(100)
        }
        expect(last).toEqual([toAddress(requested)])
        process.stdout.write(`${kind}: ${UPDATES} updates, ${queries} queries\n`)
      } finally {
        isDone = true
        await api.process.stop()
        await database.drop()
        await server.stop()
      }
    },
  )
}

import { randomBytes } from 'node:crypto'
import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import type { DnsProvider } from 'allocation-api/src/dns/provider.ts'
import { createCloudflareProvider } from 'allocation-api/src/dns/providers/cloudflare/index.ts'
import { createDynadotProvider } from 'allocation-api/src/dns/providers/dynadot/index.ts'
import { createPowerdnsProvider } from 'allocation-api/src/dns/providers/powerdns/index.ts'
import { createRfc2136Provider } from 'allocation-api/src/dns/providers/rfc2136/index.ts'
import { lacksPowerdns, startPowerdns } from 'allocation-api/test/providers/support/powerdns.ts'
import { bind } from 'allocation-api/test/providers/support/rfc2136/bind.ts'
import { startServer } from 'allocation-api/test/providers/support/rfc2136/server.ts'

type Env = Readonly<Record<string, string>>

/** A DNS provider of its own, with one zone in which nothing is. */
export interface ProviderSite extends AsyncDisposable {
  readonly zone: string
  /** What makes the API use it. */
  readonly env: Env
  /** What the API has of it, once more in this process. */
  readonly connect: () => DnsProvider
  /** HTTP requests that it has been sent. Null: it is a real server, which does not tell. */
  readonly requests: (() => number) | null
}

interface ProviderKind {
  /** Milliseconds that it takes for one call because it was told to. */
  readonly delayMs: number
  /** What is missing here, in one line. */
  readonly lacks: string | null
  readonly open: () => Promise<ProviderSite>
}

const ZONE = 'pool.test'
const CLOUDFLARE_MS = 50
const DYNADOT_MS = 300

const kinds = {
  cloudflare: {
    delayMs: CLOUDFLARE_MS,
    lacks: null,
    async open() {
      const double = await startCloudflareDouble({ delayMs: CLOUDFLARE_MS })
      double.addZone(ZONE)
      return {
        zone: ZONE,
        env: { DNSPROVIDER_CLOUDFLARE_URL: double.url, DNSPROVIDER_CLOUDFLARE_API_TOKEN: double.token },
        connect: () => createCloudflareProvider({ url: double.url, apiToken: double.token }),
        requests: () => double.count(),
        [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
      }
    },
  },
  dynadot: {
    delayMs: DYNADOT_MS,
    lacks: null,
    async open() {
      const apiKey = randomBytes(16).toString('hex')
      const double = await startDynadotDouble({ domains: [ZONE], apiKey, delayMs: DYNADOT_MS })
      return {
        zone: ZONE,
        env: { DNSPROVIDER_DYNADOT_URL: double.url, DNSPROVIDER_DYNADOT_API_KEY: apiKey },
        connect: () => createDynadotProvider({ url: double.url, apiKey }),
        requests: () => double.calls.get_dns + double.calls.set_dns2 + double.calls.busy + double.calls.other,
        [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
      }
    },
  },
  powerdns: {
    delayMs: 0,
    lacks: lacksPowerdns ?? null,
    async open() {
      const server = await startPowerdns()
      await server.createZone(ZONE)
      const { url, apiKey } = server.options
      return {
        zone: ZONE,
        env: { DNSPROVIDER_POWERDNS_URL: url, DNSPROVIDER_POWERDNS_API_KEY: apiKey },
        connect: () => createPowerdnsProvider(server.options),
        requests: null,
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      }
    },
  },
  rfc2136: {
    delayMs: 0,
    lacks: bind.lacks ?? null,
    async open() {
      const named = await startServer(bind)
      const { server, tsig } = named.options()
      return {
        zone: named.zone,
        env: {
          DNSPROVIDER_RFC2136_HOST: server.host,
          DNSPROVIDER_RFC2136_PORT: String(server.port),
          DNSPROVIDER_RFC2136_TSIG_NAME: tsig.name,
          DNSPROVIDER_RFC2136_TSIG_SECRET: tsig.secret,
        },
        connect: () => createRfc2136Provider({ server, tsig }),
        requests: null,
        [Symbol.asyncDispose]: () => named[Symbol.asyncDispose](),
      }
    },
  },
} satisfies Readonly<Record<string, ProviderKind>>

export type ProviderName = keyof typeof kinds

/** Each with what is missing here to start it. */
export const providers: readonly (Pick<ProviderKind, 'delayMs' | 'lacks'> & { readonly name: ProviderName })[] = (
  Object.keys(kinds) as ProviderName[]
).map(name => ({ name, ...kinds[name] }))

export const startProviderSite = async (name: ProviderName, cleanup: AsyncDisposableStack): Promise<ProviderSite> => {
  const kind: ProviderKind = kinds[name]
  const opening = kind.open()
  // Given away before it is waited for, so that an interrupt leaves nothing.
  const close = async () => (await opening.catch(() => undefined))?.[Symbol.asyncDispose]()
  cleanup.defer(close)
  const site = await opening
  const env = { ...site.env, DNSPROVIDER_KIND: name, DNSPROVIDER_MANAGED_DOMAINS: site.zone }
  return { ...site, env, [Symbol.asyncDispose]: close }
}

import type { EnvReader } from '@pool/runtime/service/env'
import { PoolZones, readPoolZones, withinPools } from './pool-zones.ts'
import type { ProviderContext, ReadProvider, StartedProvider } from './provider.ts'
import { readCloudflareProvider } from './providers/cloudflare/index.ts'
import { readDynadotProvider } from './providers/dynadot/index.ts'
import { readLocalProvider } from './providers/local/index.ts'
import { readPowerdnsProvider } from './providers/powerdns/index.ts'
import { readRfc2136Provider } from './providers/rfc2136/index.ts'

/** The providers by the value of `DNSPROVIDER_KIND`. */
const providers = {
  cloudflare: readCloudflareProvider,
  dynadot: readDynadotProvider,
  local: readLocalProvider,
  powerdns: readPowerdnsProvider,
  rfc2136: readRfc2136Provider,
} satisfies Record<string, ReadProvider>

export const providerKinds = Object.keys(providers) as (keyof typeof providers)[]

export interface ChosenProvider {
  readonly kind: string
  /** The zones that the configuration has for pools. */
  readonly zones: ReadonlyMap<string, string>
  readonly start: (
    context: Omit<ProviderContext, 'zoneOf'>,
  ) => Promise<StartedProvider & Pick<ProviderContext, 'zoneOf'>>
}

/** The provider that the environment chooses, with its variables. `testUrl` replaces the URL of a provider's API. */
export const readProvider = (env: EnvReader, testUrl?: string): ChosenProvider => {
  const kind = env.oneOf('DNSPROVIDER_KIND', providerKinds, 'local')
  const zones = readPoolZones(env)
  const start = providers[kind](env, testUrl)
  return {
    kind,
    zones,
    async start(context) {
      const poolZones = new PoolZones(zones)
      const { zoneOf } = poolZones
      const { provider, info } = await start({ ...context, zoneOf })
      return { provider: withinPools(provider, poolZones), info, zoneOf }
    },
  }
}

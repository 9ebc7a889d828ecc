import type { EnvReader } from '@pool/runtime/service/env'
import type { ReadProvider, StartProvider } from './provider.ts'
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
  readonly start: StartProvider
}

/** The provider that the environment chooses, with its variables. `testUrl` replaces the URL of a provider's API. */
export const readProvider = (env: EnvReader, testUrl?: string): ChosenProvider => {
  const kind = env.oneOf('DNSPROVIDER_KIND', providerKinds, 'local')
  return { kind, start: providers[kind](env, testUrl) }
}

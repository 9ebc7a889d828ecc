import { type ConfigFault, type Env, EnvReader } from '../env-reader.ts'
import { readCloudflareProvider } from './cloudflare.ts'
import { readDynadotProvider } from './dynadot.ts'
import { readLocalProvider } from './local/start.ts'
import { readPowerdnsProvider } from './powerdns.ts'
import { readRfc2136Provider } from './rfc2136.ts'
import type { ReadProvider, StartProvider } from './start.ts'

/** The providers by the name that `DNSPROVIDER_KIND` gives them. One more is one file and one line here. */
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

/** The provider that the environment chooses, with its variables; or everything that is wrong with them. */
export const readProvider = (
  env: Env,
): { readonly provider: ChosenProvider } | { readonly faults: readonly ConfigFault[] } => {
  const read = new EnvReader(env)
  const kind = read.oneOf('DNSPROVIDER_KIND', providerKinds, 'local')
  const start = providers[kind](read)
  return read.faults.length > 0 ? { faults: read.faults } : { provider: { kind, start } }
}

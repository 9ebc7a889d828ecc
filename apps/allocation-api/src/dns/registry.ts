import type { Config } from '../config.ts'
import type { Sql } from '../database/connect.ts'
import { startLocalProvider } from './local/start.ts'
import type { DnsProvider } from './provider.ts'

export interface ProviderContext {
  readonly config: Config
  readonly sql: Sql
  readonly onError: (error: unknown) => void
}

export interface StartedProvider {
  readonly provider: DnsProvider
  /** What the operator may want to know at start, such as where it listens. */
  readonly about: Readonly<Record<string, unknown>>
}

/** The providers by the name that `DNSPROVIDER_KIND` gives them. One more is one file and one line here. */
export const startProvider: Readonly<
  Record<Config['dns']['kind'], (context: ProviderContext) => Promise<StartedProvider>>
> = {
  local: startLocalProvider,
}

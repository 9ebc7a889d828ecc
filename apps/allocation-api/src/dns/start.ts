import type { Config } from '../config.ts'
import type { Sql } from '../database/connect.ts'
import type { DnsProvider } from './provider.ts'

/** What a provider can be started from. */
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

export type StartProvider = (context: ProviderContext) => Promise<StartedProvider>

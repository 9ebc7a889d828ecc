import type { Sql } from '@pool/database/client'
import type { EnvReader } from '../config/env.ts'
import type { DnsProvider } from './provider.ts'

/** What a provider needs to start, apart from its own variables. */
export interface ProviderContext {
  readonly managedDomains: readonly string[]
  readonly sql: Sql
  readonly onError: (error: unknown) => void
}

export interface StartedProvider {
  readonly provider: DnsProvider
  /** What the operator may want to know at start, such as where it listens. No key. */
  readonly info: Readonly<Record<string, unknown>>
}

export type StartProvider = (context: ProviderContext) => Promise<StartedProvider>

/** Reads a provider's own variables and reports invalid ones to `read`. */
export type ReadProvider = (read: EnvReader) => StartProvider

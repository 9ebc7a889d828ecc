import { isLoopbackHost } from '@pool/contract/fields'
import { parseConnectionString } from '../database/connection-string.ts'
import type { ConfigIssue, Env } from './env.ts'

export interface CredentialUrls {
  /** Variables with the connection string of a database. */
  readonly databases: readonly string[]
  /** Variables with a URL, each with the variable of the credential that is sent there. */
  readonly urls: readonly (readonly [url: string, credential: string])[]
}

const WITHOUT_TLS =
  'leads to another machine without TLS, so everybody on the network between can read its credential; use https'
const DATABASE_WITHOUT_TLS =
  'leads to another machine without TLS, so everybody on the network between can read the data; add sslmode=verify-full'

const isPlainDatabase = (url: string): boolean => {
  const database = parseConnectionString(url)
  if (!('hosts' in database) || database.tls !== null) return false
  return database.hosts.some(
    ({ host }) => !host.startsWith('/') && !isLoopbackHost(host.includes(':') ? `[${host}]` : host),
  )
}

/** The URLs whose credential or data would leave this machine without TLS. No detail quotes a value. */
export const findPlainCredentials = (env: Env, { databases, urls }: CredentialUrls): readonly ConfigIssue[] => {
  const plain = urls.flatMap(([variable, credential]) => {
    const url = URL.parse(env[variable]?.trim() ?? '')
    const isSecret = Boolean(env[credential]?.trim() || url?.username || url?.password)
    return url?.protocol === 'http:' && isSecret && !isLoopbackHost(url.host) ? [variable] : []
  })
  return [
    ...databases
      .filter(variable => isPlainDatabase(env[variable]?.trim() ?? ''))
      .map(variable => ({ variable, detail: DATABASE_WITHOUT_TLS })),
    ...[...new Set(plain)].map(variable => ({ variable, detail: WITHOUT_TLS })),
  ]
}

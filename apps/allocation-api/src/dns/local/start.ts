import type { ProviderContext, StartedProvider } from '../start.ts'
import { createLocalProvider } from './provider.ts'
import { startDnsServer } from './server.ts'
import { createZoneTable } from './zone-table.ts'

/** The provider for development, with its own authoritative server for the managed domains in this process. */
export const startLocalProvider = async ({ config, sql, onError }: ProviderContext): Promise<StartedProvider> => {
  const table = createZoneTable(sql)
  await table.install()
  const server = await startDnsServer({
    ...config.dns.local,
    zones: config.managedDomains,
    lookup: table.lookup,
    onError,
  }).catch((error: NodeJS.ErrnoException) => {
    const { port } = config.dns.local
    throw new Error(`DNSPROVIDER_LOCAL_PORT: cannot listen on port ${port} (${error.code ?? error.name})`)
  })
  return {
    provider: createLocalProvider({ table, server, onError }),
    about: { dnsHost: server.host, dnsPort: server.port },
  }
}

import type { EnvReader } from '@pool/runtime/service/env'
import type { ProviderContext, StartedProvider, StartProvider } from '../../provider.ts'
import { createLocalProvider, createZoneTable } from './provider.ts'
import { startDnsServer } from './server.ts'

/** The provider for development, with its own authoritative server for the managed domains in this process. */
export const readLocalProvider = (read: EnvReader): StartProvider => {
  const port = read.integer('DNSPROVIDER_LOCAL_PORT', 0, { min: 0, max: 65_535 })
  return async ({ listZones, sql, onError }: ProviderContext): Promise<StartedProvider> => {
    const table = createZoneTable(sql)
    const server = await startDnsServer({ host: '127.0.0.1', port, listZones, lookup: table.lookup, onError }).catch(
      (error: NodeJS.ErrnoException) => {
        throw new Error(
          `DNSPROVIDER_LOCAL_PORT: cannot listen on port ${port}; stop the process that has it, or set another port (${error.code ?? error.name})`,
        )
      },
    )
    return {
      provider: createLocalProvider({ table, server, onError }),
      info: { dnsHost: server.host, dnsPort: server.port },
    }
  }
}

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { startNode } from '@pool/dev/process'
import type { AllocationApiSpec } from '../protocol.ts'
import { artifacts } from './artifacts.ts'
import { startDatabase } from './database.ts'
import { setDatabaseClock } from './database-clock.ts'
import type { HostContext, HostedService } from './hosted-service.ts'
import { readPort, ServiceProcess } from './service-process.ts'
import { rejectIgnoredNames } from './variables.ts'

/** The port of the DNS server in the message of an API that is ready. */
const readDnsPort = (ready: Readonly<Record<string, unknown>>): number => {
  const { dns } = ready
  if (typeof dns !== 'object' || dns === null || !('dnsPort' in dns)) throw new Error('the API has no DNS server')
  return Number(dns.dnsPort)
}

/** Without a start of the service: it would store its pools, and every later service would have them. */
const createSchema = async (url: string): Promise<void> => {
  const migrate = startNode({ entry: artifacts.migrate, env: { PDM_DATABASE_URL: url } })
  const { code } = await migrate.exited
  if (code !== 0) throw new Error(`the schema could not be created:\n${migrate.lastLines().join('\n')}`)
}

/** Runs the allocation API with a Postgres server and the DNS server of the API. */
export const hostAllocationApi = async (
  { pools, env }: AllocationApiSpec,
  { folder, log }: HostContext,
): Promise<HostedService> => {
  await rejectIgnoredNames(env, 'allocation-api')
  // Another provider has no server here.
  const isLocal = (env.DNSPROVIDER_KIND ?? 'local') === 'local'
  const operatorToken = randomBytes(24).toString('base64url')
  const createProcess = (databaseUrl: string) =>
    new ServiceProcess({
      kind: 'allocation-api',
      log,
      env: last => ({
        PDM_TEST_SETTINGS: JSON.stringify({ publicPools: true }),
        PDM_LOG_LEVEL: 'info',
        PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
        PATH: process.env.PATH,
        DNSPROVIDER_KIND: 'local',
        ...env,
        DNSPROVIDER_MANAGED_DOMAINS: pools.join(','),
        PORT: '0',
        PDM_OPERATOR_PORT: '0',
        PDM_LISTEN_ADDRESS: '127.0.0.1',
        PDM_OPERATOR_TOKENS: operatorToken,
        PDM_DATABASE_URL: databaseUrl,
        ...(isLocal ? { DNSPROVIDER_LOCAL_PORT: String(last ? readDnsPort(last) : 0) } : {}),
      }),
    })
  const database = await startDatabase('allocation-api', join(folder, 'postgres'), createSchema)
  const service = createProcess(database.url)
  const start = async () => {
    const ready = await service.start()
    return { ready, ports: [readPort(ready, 'port'), readPort(ready, 'operatorPort')] }
  }
  const { ready, ports } = await start()
  return {
    ports,
    address: {
      operatorToken,
      dnsServer: isLocal ? `127.0.0.1:${readDnsPort(ready)}` : '',
      databaseUrl: database.url,
    },
    setClock: aheadMs => setDatabaseClock(database.url, aheadMs),
    canSetBack: false,
    kill: async () => {
      await service.kill()
      return (await start()).ports
    },
    stop: async () => {
      await service.kill()
      await database.stop()
    },
  }
}

import { join } from 'node:path'
import type { WitnessSpec } from '../protocol.ts'
import { startDatabase } from './database.ts'
import { setDatabaseClock } from './database-clock.ts'
import type { HostContext, HostedService } from './hosted-service.ts'
import { readPort, ServiceProcess } from './service-process.ts'
import { rejectIgnoredNames } from './variables.ts'

/** Runs the witness on a Postgres server of its own. */
export const hostWitnessOnPostgres = async (
  { tokens, env }: WitnessSpec,
  { folder, log }: HostContext,
): Promise<HostedService> => {
  await rejectIgnoredNames(env, 'lease-witness')
  const createProcess = (url: string) =>
    new ServiceProcess({
      kind: 'lease-witness',
      log,
      env: () => ({
        ...env,
        BEARER_TOKENS_CSV: tokens.join(','),
        PORT: '0',
        WITNESS_LISTEN_ADDRESS: '127.0.0.1',
        WITNESS_DATABASE_URL: url,
      }),
    })
  const database = await startDatabase('lease-witness', join(folder, 'postgres'), async url => {
    const service = createProcess(url)
    await service.start()
    await service.stop()
  })
  const service = createProcess(database.url)
  const start = async () => [readPort(await service.start(), 'port')]
  return {
    ports: await start(),
    address: { databaseUrl: database.url },
    setClock: aheadMs => setDatabaseClock(database.url, aheadMs),
    canSetBack: true,
    kill: async () => {
      await service.kill()
      return start()
    },
    stop: async () => {
      await service.kill()
      await database.stop()
    },
  }
}

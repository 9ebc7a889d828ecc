import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, readConfig } from 'allocation-api/src/config/config.ts'
import { type Cluster, type Database, startCluster } from './cluster.ts'
import { type ProviderName, type ProviderSite, startProviderSite } from './provider-site.ts'
import {
  type LeaseWorker,
  type Service,
  startApi,
  startBareNode,
  startEmptyRoute,
  startLeaseWorker,
} from './service.ts'
import { makeDataDir, startWholeStack, type WholeStack } from './whole-stack.ts'

/** What the sections are played on. Everything on it is gone when its cleanup is disposed of. */
export interface Stage {
  /** On the disk that everything here is stored on. */
  readonly folder: string
  /** Null: no section that is run asked for it. */
  readonly cluster: Cluster | null
  /** The API's own defaults. */
  readonly config: Config
  /** With as many connections as the API has to its database. */
  readonly database: () => Promise<Database>
  /** With the provider `local`, and its own defaults, but for `env`. */
  readonly api: (database: Database, env?: Readonly<Record<string, string>>) => Promise<Service>
  readonly providerSite: (name: ProviderName) => Promise<ProviderSite>
  readonly emptyRoute: () => Promise<Service>
  readonly bareNode: () => Promise<Service>
  /** A new folder for the data of `wholeStack`. */
  readonly dataDir: () => string
  /** What `pnpm start` runs, Postgres and all. */
  readonly wholeStack: (dataDir: string) => Promise<WholeStack>
  /** With storage of its own, in which nothing is. */
  readonly leaseWorker: (worker: LeaseWorker) => Promise<Service>
}

export const openStage = async (
  cleanup: AsyncDisposableStack,
  { withPostgres }: { readonly withPostgres: boolean },
): Promise<Stage> => {
  const folder = mkdtempSync(join(tmpdir(), 'pool-bench-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const cluster = withPostgres ? await startCluster(cleanup) : null
  const read = readConfig({ PDM_DATABASE_URL: 'postgres://127.0.0.1/' })
  if (!('config' in read)) throw new Error('the defaults of the API are refused by the API')
  const { config } = read
  return {
    folder,
    cluster,
    config,
    database: () => {
      if (!cluster) throw new Error('a section that did not say so needs Postgres')
      return cluster.database(config.database.poolSize)
    },
    api: (database, env) => startApi(database.url, cleanup, env),
    providerSite: name => startProviderSite(name, cleanup),
    emptyRoute: () => startEmptyRoute(cleanup),
    bareNode: () => startBareNode(cleanup),
    dataDir: () => makeDataDir(folder),
    wholeStack: dataDir => startWholeStack(dataDir, cleanup),
    leaseWorker: worker => startLeaseWorker(worker, folder, cleanup),
  }
}

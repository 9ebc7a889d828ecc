import { type Config, readConfig } from 'allocation-api/src/config.ts'
import { type Cluster, type Database, startCluster } from './cluster.ts'
import { type Service, startApi, startEmptyRoute } from './service.ts'

/** What the sections are played on. Everything on it is gone when its cleanup is disposed of. */
export interface Stage {
  readonly cluster: Cluster
  /** The API's own defaults. */
  readonly config: Config
  /** With as many connections as the API has to its database. */
  readonly database: () => Promise<Database>
  readonly api: (database: Database) => Promise<Service>
  readonly emptyRoute: () => Promise<Service>
}

export const openStage = async (cleanup: AsyncDisposableStack): Promise<Stage> => {
  const cluster = await startCluster(cleanup)
  const read = readConfig({ PDM_DATABASE_URL: 'postgres://127.0.0.1/' })
  if (!('config' in read)) throw new Error('the defaults of the API are refused by the API')
  const { config } = read
  return {
    cluster,
    config,
    database: () => cluster.database(config.database.poolSize),
    api: database => startApi(database.url, cleanup),
    emptyRoute: () => startEmptyRoute(cleanup),
  }
}

import { createDatabaseClient, createSessions, type DatabaseClientOptions } from '@pool/runtime/database/client'
import {
  countConnections,
  createHealthCheck,
  createWriteCheck,
  createWriteProbe,
  DURABILITIES,
} from '@pool/runtime/database/health'
import { createSchemaCheck } from '@pool/runtime/database/migrations'
import { prepareDatabase, waitForDatabase } from '@pool/runtime/database/startup'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter } from '@pool/runtime/database/writer'
import { type ConfigIssue, ConfigIssuesError, type Env } from '@pool/runtime/service/env'
import { type CoveredPool, createPoolRegistry } from '../allocation/pool-registry.ts'
import { toPoolSizes } from '../config/config.ts'
import { createRetention } from '../database/retention.ts'
import { readSchema, toExportVersion } from '../database/schema.ts'
import type { ServiceConfig } from '../service-config.ts'
import { createTransfer } from '../transfer/transfer.ts'
import type { Base } from './base.ts'
import { type Job, now, sleep } from './part.ts'

const URL_VARIABLE = 'PDM_DATABASE_URL'
/** Below the contract's 2 s, so that there is time for the response. */
const HEALTH_CHECK_TIMEOUT_MS = 1_500
/** Far below the 5 s in which the service is ready after the database accepts writes. */
const WRITE_CHECK_INTERVAL_MS = 1_000
/** Counting every row takes time in proportion to their number. No request waits for it. */
export const COUNT_TIMEOUT_MS = 60_000
/** How long a replica stays ready after a migration that requires a newer build. */
const SCHEMA_CHECK_INTERVAL_MS = 5_000
/** How long a process knows nothing of a pool that another replica has added. */
const POOL_REFRESH_MS = 5_000
/** An export or import whose client sends and reads nothing ends after this time. */
const TRANSFER_IDLE_MS = 90_000
/** Retention times are a day or longer, so nothing has to be deleted at once. */
export const RETENTION_INTERVAL_MS = 600_000
const WAITING_IDLE_S = 30

const toConfigIssue =
  (env: Env) =>
  ({ pool, name }: CoveredPool): ConfigIssue => ({
    variable: env.DNSPROVIDER_MANAGED_DOMAINS?.trim() ? 'DNSPROVIDER_MANAGED_DOMAINS' : 'DNSPROVIDER_DOMAIN',
    detail: `lists ${pool}, but ${name} is granted, and its holder would control that pool; release the name first`,
  })

export type Database = Awaited<ReturnType<typeof openDatabase>>

/**
 * The connections, and everything that needs nothing but the database. Waits until it is there and has the schema of this
 * build. Throws ConfigIssuesError if a pool would cover a granted name.
 */
export const openDatabase = async (config: ServiceConfig, { observer, phase }: Base) => {
  const { timeoutMs } = config.database
  const sessions = createSessions()
  const openPool = (
    applicationName: string,
    maxConnections: number,
    { maxStatementMs = timeoutMs, ...options }: Partial<DatabaseClientOptions> = {},
  ) =>
    createDatabaseClient(config.database.url, { applicationName, maxConnections, maxStatementMs, sessions, ...options })
  const sizes = toPoolSizes(config.database.poolSize)
  const writeSql = openPool('allocation-api write', sizes.write)
  const readSql = openPool('allocation-api read', sizes.read)
  const slowSql = openPool('allocation-api wait', sizes.waiting, {
    pipelines: false,
    idleTimeoutS: WAITING_IDLE_S,
  })
  const sql = openPool('allocation-api', sizes.background, { pipelines: false })
  const zoneSql = openPool('allocation-api zone', sizes.zones, { pipelines: false })
  const healthCheckSql = openPool('allocation-api probe', sizes.probe)
  const countSql = openPool('allocation-api count', sizes.count, { maxStatementMs: COUNT_TIMEOUT_MS })
  const clients = [sql, writeSql, readSql, slowSql, zoneSql, healthCheckSql, countSql]
  const writer = createWriter({
    fast: writeSql,
    slow: slowSql,
    clock: createServerClock(readSql, { timeoutMs }),
    timeoutMs,
  })
  const poolRegistry = createPoolRegistry(sql, { managedDomains: config.managedDomains, timeoutMs })
  const { pools } = poolRegistry
  const writeCheck = createWriteCheck({
    probe: createWriteProbe(healthCheckSql, 'write_probes', Math.random),
    sessions,
    onWeak: observer.onWeakDurability,
  })
  const acceptsWrites = createHealthCheck(writeCheck.check, {
    timeoutMs: HEALTH_CHECK_TIMEOUT_MS,
    keepMs: WRITE_CHECK_INTERVAL_MS,
  })
  const schema = await readSchema()
  const schemaCheck = createSchemaCheck(sql, schema, observer.onSchemaMisfit)
  const acceptsRequests = async () => schemaCheck.fits() && (await acceptsWrites())
  const isReady = async () => phase() === 'ready' && (await acceptsRequests())

  let remedy = ''
  let covered: readonly CoveredPool[] = []
  const start = async () => {
    remedy = await prepareDatabase({
      url: config.database.url,
      urlVariable: URL_VARIABLE,
      clients,
      probe: healthCheckSql,
      openPool: (name, maxConnections, options) => openPool(`allocation-api ${name}`, maxConnections, options),
      applicationName: 'allocation-api settings',
      timeoutMs,
      schema,
      onMigration: { onApplied: observer.onMigrated, onLocked: observer.onMigrationLocked },
    })
    covered = await poolRegistry.start()
    await writeCheck.check()
  }
  await waitForDatabase(start, {
    usesTls: config.database.usesTls,
    urlVariable: URL_VARIABLE,
    onWait: ({ reason, waitedMs }) => observer.onDatabaseWait(reason, waitedMs),
  })
  if (remedy !== '') observer.onMissingSessionSettings(remedy)
  if (covered.length > 0) throw new ConfigIssuesError(covered.map(toConfigIssue(config.env)))

  const deleteOldRows = createRetention(sql, {
    ...config.retention,
    timeoutMs,
    now,
    sleep,
    onDeleted: observer.onOldRowsDeleted,
  })
  const jobs: readonly Job[] = [
    { failure: 'deletion of old rows failed', intervalMs: RETENTION_INTERVAL_MS, run: deleteOldRows },
    { failure: 'pool refresh failed', intervalMs: POOL_REFRESH_MS, run: poolRegistry.refresh },
    { failure: 'schema check failed', intervalMs: SCHEMA_CHECK_INTERVAL_MS, run: schemaCheck.refresh },
  ]

  return {
    timeoutMs,
    sessions,
    /** For work in the background. */
    sql,
    /** For the statements that acquire, renew and release the locks of zones. None of them waits for another lock. */
    zoneSql,
    /** For the reads of requests. */
    readSql,
    countSql,
    writer,
    pools,
    isReady,
    routes: {
      health: {
        isDatabaseUp: createHealthCheck(() => healthCheckSql`select 1`, {
          timeoutMs: HEALTH_CHECK_TIMEOUT_MS,
          keepMs: 0,
        }),
        acceptsWrites: acceptsRequests,
        phase,
        pools,
      },
      transfer: createTransfer({
        connect: () => openPool('allocation-api transfer', 1, { maxStatementMs: COUNT_TIMEOUT_MS, expires: false }),
        schemaVersion: toExportVersion(schema),
        idleTimeoutMs: TRANSFER_IDLE_MS,
        pools,
        recordTemplate: config.dns.recordTemplate,
      }),
    },
    gauges: {
      drainingPools: () => pools().draining,
      managedPools: () => pools().managed,
      durability: async () => ((await acceptsWrites()) ? writeCheck.durability() : null),
      durabilities: DURABILITIES,
      isReady,
      acceptsWrites,
      countConnections: () => countConnections(healthCheckSql, HEALTH_CHECK_TIMEOUT_MS),
    },
    jobs,
    close: async () => void (await Promise.all(clients.map(client => client.end({ timeout: 1 })))),
  }
}

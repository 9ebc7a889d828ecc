import { randomUUID } from 'node:crypto'
import { createDatabaseClient, createSessions, type DatabaseClientOptions } from '@pool/runtime/database/client'
import { createHealthCheck, createWriteCheck, createWriteProbe } from '@pool/runtime/database/health'
import { createSchemaCheck } from '@pool/runtime/database/migrations'
import { prepareDatabase, waitForDatabase } from '@pool/runtime/database/startup'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter } from '@pool/runtime/database/writer'
import { ConfigIssuesError } from '@pool/runtime/service/env'
import { runPeriodically } from '@pool/runtime/service/run-periodically'
import { log, type WitnessLogLevel } from '../log.ts'
import { createEpochs } from '../postgres/epochs.ts'
import { createNotifications } from '../postgres/notifications.ts'
import { createLeaseRepository } from '../postgres/repository.ts'
import { readSchema } from '../postgres/schema.ts'
import { createPostgresLeaseService, type PostgresLeaseService } from '../postgres/service.ts'
import { type Config, LISTEN_URL_VARIABLE, URL_VARIABLE } from './config.ts'
import { createFailureLog } from './failure-log.ts'

export interface OpenLeases extends PostgresLeaseService {
  /** What an acknowledged write has survived, as of the last health check; null: the database accepted no write. */
  readonly durability: () => string | null
  /** Ends all waits and the background jobs. The service still responds. */
  readonly stop: () => Promise<void>
  /** Closes the connections to the database. */
  readonly close: () => Promise<void>
}

const HEALTH_CHECK_TIMEOUT_MS = 1_500
/** Far below the 5 s in which the witness is healthy after the database accepts writes. */
const WRITE_CHECK_INTERVAL_MS = 1_000
/** How long a replica stays healthy after a migration that requires a newer build. */
const SCHEMA_CHECK_INTERVAL_MS = 5_000
/** As many locked rows are waited for at a time. They are opened on demand. */
const WAITING_CONNECTIONS = 4
const WAITING_IDLE_S = 30
/** A lost connection of LISTEN is noticed after a few of them; until then waiters see changes with a delay of seconds. */
const HEARTBEAT_INTERVAL_MS = 2_000

const LOST_WRITES =
  'is required: the database has a standby that is not synchronous, so its promotion loses leases that were acknowledged, ' +
  'and a lease can have two holders until the older one expires; make the standby synchronous ' +
  '(synchronous_standby_names), or set the variable to true to accept this'

/**
 * Composes the leases on Postgres and waits for the database. Rejects if an operator has to correct the configuration or the
 * database.
 */
export const openLeases = async ({
  database,
  settings,
  allowsLostWrites,
}: Pick<Config, 'database' | 'settings' | 'allowsLostWrites'>): Promise<OpenLeases> => {
  const { url, listenUrl, usesTls, timeoutMs } = database
  const report = (level: WitnessLogLevel, msg: string, fields: object = {}) => log(settings, level, { msg, ...fields })
  const sessions = createSessions()
  const openPool = (
    name: string,
    maxConnections: number,
    { maxStatementMs = timeoutMs, ...options }: Partial<DatabaseClientOptions> = {},
  ) =>
    createDatabaseClient(url, {
      applicationName: `lease-witness ${name}`,
      maxConnections,
      maxStatementMs,
      sessions,
      ...options,
    })
  const writeSql = openPool('write', database.poolSize)
  const readSql = openPool('read', Math.max(2, Math.ceil(database.poolSize / 2)))
  const slowSql = openPool('wait', WAITING_CONNECTIONS, { pipelines: false, idleTimeoutS: WAITING_IDLE_S })
  const sql = openPool('background', 2, { pipelines: false })
  // Two, so that a write that hangs does not delay the health check.
  const probeSql = openPool('probe', 2)
  const clients = [writeSql, readSql, slowSql, sql, probeSql]

  const writeCheck = createWriteCheck({
    probe: createWriteProbe(probeSql, 'lease_write_probes', Math.random),
    sessions,
    onWeak: durability => report('error', 'acknowledged leases can be lost', { durability }),
  })
  const acceptsWrites = createHealthCheck(writeCheck.check, {
    timeoutMs: HEALTH_CHECK_TIMEOUT_MS,
    keepMs: WRITE_CHECK_INTERVAL_MS,
  })

  const schema = await readSchema()
  const schemaCheck = createSchemaCheck(sql, schema, misfit =>
    misfit === null
      ? report('info', 'the schema fits again')
      : report('error', 'schema does not fit', { reason: misfit }),
  )
  const epochs = createEpochs(sql, {
    timeoutMs,
    onStarted: ({ epoch, reason, generationBase }) =>
      report('error', 'the database may lack acknowledged leases; all generations have jumped', {
        epoch,
        reason,
        generationBase,
      }),
  })
  const writer = createWriter({
    fast: writeSql,
    slow: slowSql,
    clock: createServerClock(readSql, { timeoutMs }),
    timeoutMs,
  })
  const { leases, directory, waits } = createPostgresLeaseService({
    repository: createLeaseRepository({ writer, read: readSql, epochs, timeoutMs }),
    timeoutMs,
    onWritten: slot => notifications.notify(slot),
    checkHealth: async () => schemaCheck.fits() && (await acceptsWrites()),
  })
  const notifications = createNotifications({
    sql,
    openListener: () =>
      createDatabaseClient(listenUrl, { applicationName: 'lease-witness listen', maxConnections: 1, sessions }),
    now: () => performance.now(),
    sender: randomUUID(),
    onChanged: waits.onChanged,
    onAnyChanged: waits.onAnyChanged,
  })

  let remedy = ''
  const startDatabase = async (): Promise<void> => {
    remedy = await prepareDatabase({
      url,
      urlVariable: URL_VARIABLE,
      clients,
      probe: probeSql,
      openPool,
      applicationName: 'lease-witness settings',
      timeoutMs,
      schema,
      onMigration: {
        onApplied: ({ version, name }) => report('info', 'migration applied', { version, name }),
        onLocked: ({ version, name }) => report('info', 'a migration waits for a lock', { version, name }),
      },
    })
    await writeCheck.check()
    if (writeCheck.durability() === 'asynchronous' && !allowsLostWrites) {
      throw new ConfigIssuesError([{ variable: 'WITNESS_ALLOW_LOST_WRITES', detail: LOST_WRITES }])
    }
    await epochs.ensureCurrent()
  }
  const close = async (): Promise<void> => {
    await Promise.all([notifications.close(), ...clients.map(client => client.end({ timeout: 1 }))])
  }
  try {
    const onWait = ({ reason, waitedMs }: { readonly reason: string; readonly waitedMs: number }) =>
      report('error', 'waiting for the database', { reason, waitedMs })
    await waitForDatabase(startDatabase, { usesTls, urlVariable: URL_VARIABLE, onWait })
    await waitForDatabase(notifications.listen, { usesTls, urlVariable: LISTEN_URL_VARIABLE, onWait })
  } catch (error) {
    await close()
    throw error
  }
  if (remedy !== '') report('error', 'the sessions of the pooler lack settings', { remedy })

  const schemaLog = createFailureLog('schema check failed', report)
  const schemaJob = runPeriodically(() => schemaCheck.refresh().then(schemaLog.onSuccess), {
    intervalMs: SCHEMA_CHECK_INTERVAL_MS,
    onError: schemaLog.onError,
  })
  const listenLog = createFailureLog('listening for changes failed', report)
  const heartbeat = async () => {
    if (await notifications.heartbeat()) listenLog.onSuccess()
  }
  const heartbeatJob = runPeriodically(heartbeat, {
    intervalMs: HEARTBEAT_INTERVAL_MS,
    onError: listenLog.onError,
  })
  return {
    leases,
    directory,
    waits,
    durability: writeCheck.durability,
    async stop() {
      waits.stop()
      await Promise.all([schemaJob.stop(), heartbeatJob.stop()])
    },
    close,
  }
}

import { randomBytes, randomUUID } from 'node:crypto'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { migrate } from '@pool/runtime/database/migrations'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter } from '@pool/runtime/database/writer'
import postgres from 'postgres'
import { createEpochs, type Epoch } from '../../../src/postgres/epochs.ts'
import { createNotifications } from '../../../src/postgres/notifications.ts'
import { createLeaseRepository } from '../../../src/postgres/repository.ts'
import { readSchema } from '../../../src/postgres/schema.ts'
import { createPostgresLeaseService } from '../../../src/postgres/service.ts'

/** Far more than a busy machine needs. */
export const TIMEOUT_MS = 20_000

/** The Postgres on which tests create their databases. */
export const getTestDsn = (): string => {
  const dsn = process.env.PDM_TEST_DSN
  if (!dsn) throw new Error('PDM_TEST_DSN is not set. Run `npx -y pnpm@12 test`, which starts a Postgres.')
  return dsn
}

const runOnServer = async (statement: string): Promise<void> => {
  const sql = postgres(getTestDsn(), { max: 1, onnotice: () => {} })
  await sql.unsafe(statement)
  await sql.end()
}

export interface TestDatabase extends AsyncDisposable {
  readonly url: string
  readonly sql: Sql
}

/** Creates a database on the shared Postgres, with the schema unless `schema` is false. */
export const createTestDatabase = async ({ schema = true, connections = 10 } = {}): Promise<TestDatabase> => {
  const name = `test_${randomBytes(8).toString('hex')}`
  await runOnServer(`create database ${name}`)
  const url = Object.assign(new URL(getTestDsn()), { pathname: `/${name}` }).href
  const sql = createDatabaseClient(url, { maxConnections: connections, applicationName: 'tests' })
  if (schema) await migrate(sql, await readSchema())
  return {
    url,
    sql,
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 })
      await runOnServer(`drop database ${name} with (force)`)
    },
  }
}

/** Applies the schema to a database that is not on the shared Postgres. */
export const migrateDatabase = async (url: string): Promise<void> => {
  const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
  await migrate(sql, await readSchema())
  await sql.end()
}

/** A repository whose statements queue for locks at the server, until the timeout. */
export const createTestRepository = (sql: Sql, onStarted: (epoch: Epoch) => void = () => {}) => {
  const clock = createServerClock(sql, { timeoutMs: TIMEOUT_MS })
  const writer = createWriter({ fast: sql, slow: sql, clock, timeoutMs: TIMEOUT_MS, fastLockWaitMs: TIMEOUT_MS })
  const epochs = createEpochs(sql, { timeoutMs: TIMEOUT_MS, onStarted })
  return { epochs, ...createLeaseRepository({ writer, read: sql, epochs, timeoutMs: TIMEOUT_MS }) }
}

export interface TestReplica extends ReturnType<typeof createPostgresLeaseService> {
  /** The epochs that it has reported. */
  readonly epochsStarted: readonly Epoch[]
  readonly close: () => Promise<void>
}

/** The leases as one replica serves them, without HTTP. */
export const startTestReplica = async (
  url: string,
  { recheckMs = 60_000, listens = true, timeoutMs = TIMEOUT_MS, listenUrl = url, maxWaiters = 20_000 } = {},
): Promise<TestReplica> => {
  const open = (to = url) =>
    createDatabaseClient(to, { maxConnections: 2, applicationName: 'tests', maxStatementMs: timeoutMs })
  const [fast, slow, read] = [open(), open(), open()]
  const epochsStarted: Epoch[] = []
  const epochs = createEpochs(read, { timeoutMs, onStarted: epoch => void epochsStarted.push(epoch) })
  const writer = createWriter({ fast, slow, clock: createServerClock(read, { timeoutMs }), timeoutMs })
  const service = createPostgresLeaseService({
    repository: createLeaseRepository({ writer, read, epochs, timeoutMs }),
    timeoutMs,
    onWritten: slot => notifications.notify(slot),
    checkHealth: async () => true,
    recheckMs,
    maxWaiters,
  })
  const notifications = createNotifications({
    sql: read,
    openListener: () => open(listenUrl),
    sender: randomUUID(),
    onChanged: service.waits.onChanged,
    onAnyChanged: service.waits.onAnyChanged,
    now: () => performance.now(),
  })
  if (listens) {
    await notifications.listen()
    await notifications.heartbeat()
  }
  return {
    ...service,
    epochsStarted,
    async close() {
      service.waits.stop()
      await notifications.close()
      await Promise.all([fast, slow, read].map(sql => sql.end({ timeout: 0 })))
    },
  }
}

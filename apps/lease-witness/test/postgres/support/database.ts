import { randomBytes } from 'node:crypto'
import { createDatabaseClient, type Sql } from '@pool/database/client'
import { migrate } from '@pool/database/migrations'
import { createServerClock } from '@pool/database/server-clock'
import { createWriter } from '@pool/database/writer'
import postgres from 'postgres'
import { createEpochs, type Epoch } from '../../../src/postgres/epochs.ts'
import { createLeaseRepository } from '../../../src/postgres/repository.ts'
import { readSchema } from '../../../src/postgres/schema.ts'

export const TIMEOUT_MS = 5_000

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

/** A repository whose statements queue for locks at the server, until the timeout. */
export const createTestRepository = (sql: Sql, onStarted: (epoch: Epoch) => void = () => {}) => {
  const clock = createServerClock(sql, { timeoutMs: TIMEOUT_MS })
  const writer = createWriter({ fast: sql, slow: sql, clock, timeoutMs: TIMEOUT_MS, fastLockWaitMs: TIMEOUT_MS })
  const epochs = createEpochs(sql, { timeoutMs: TIMEOUT_MS, onStarted })
  return { epochs, ...createLeaseRepository({ writer, read: sql, epochs, timeoutMs: TIMEOUT_MS }) }
}

/** From now on the server's clock shows `ms` and stands still. */
export const setLeaseClock = (sql: Sql, ms: number) =>
  sql.unsafe(`create or replace function lease_clock() returns bigint language sql volatile as 'select ${ms}::bigint'`)

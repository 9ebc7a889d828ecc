import { randomBytes } from 'node:crypto'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter, type Writer } from '@pool/runtime/database/writer'
import postgres from 'postgres'
import { afterAll } from 'vitest'
import { migrateDatabase } from '../../src/database/schema.ts'

/** The Postgres on which tests create their databases. */
export const getTestDsn = (): string => {
  const dsn = process.env.PDM_TEST_DSN
  if (!dsn) throw new Error('PDM_TEST_DSN is not set. Run `npx -y pnpm@12 test`, which starts a Postgres.')
  return dsn
}

/** Options of an allocation repository whose limits do not matter to the test. */
export const repositoryOptions = { reservation: { ttlMs: 600_000, maxAgeMs: 86_400_000 }, timeoutMs: 5_000 }

/** A writer whose statements queue for locks at the server, until the timeout. */
export const createTestWriter = (
  sql: Sql,
  { timeoutMs }: { readonly timeoutMs: number } = repositoryOptions,
  clock = createServerClock(sql, { timeoutMs }),
): Writer =>
  createWriter({
    fast: sql,
    slow: sql,
    clock,
    timeoutMs,
    fastLockWaitMs: timeoutMs,
  })

export interface TestDatabase {
  readonly url: string
  readonly sql: Sql
  /** Simulates the passage of time. The clock of the database cannot be set, so this moves all timestamps back. */
  advance(ms: number): Promise<void>
  drop(): Promise<void>
}

/** Empties the tables of names. The history is append-only, so its trigger is off meanwhile. */
export const truncateAllocations = async (sql: Sql): Promise<void> => {
  await sql`alter table allocation_history disable trigger allocation_history_append_only`
  await sql`truncate pool_allocations, record_tokens, tenant_records, dns_names, allocation_history`
  await sql`alter table allocation_history enable trigger allocation_history_append_only`
}

const runOnServer = async (statement: string): Promise<void> => {
  const sql = postgres(getTestDsn(), { max: 1, onnotice: () => {} })
  await sql.unsafe(statement)
  await sql.end()
}

/** Creates a database on the shared Postgres, with the schema unless `schema` is false. */
export const createTestDatabase = async ({ schema = true, connections = 10 } = {}): Promise<TestDatabase> => {
  const name = `test_${randomBytes(8).toString('hex')}`
  const template = schema ? process.env.PDM_TEST_TEMPLATE : undefined
  await runOnServer(`create database ${name}${template ? ` template ${template}` : ''}`)
  const url = Object.assign(new URL(getTestDsn()), { pathname: `/${name}` }).href
  const sql = createDatabaseClient(url, { maxConnections: connections, applicationName: 'tests' })
  if (schema && !template) await migrateDatabase(sql)
  return {
    url,
    sql,
    async advance(ms) {
      const shift = sql`${ms}::float8 * interval '1 millisecond'`
      await Promise.all([
        sql`
          update pool_allocations set
            reserved_at = reserved_at - ${shift}, expires_at = expires_at - ${shift}, committed_at = committed_at - ${shift},
            cool_off_until = cool_off_until - ${shift}`,
        sql`update pools set listed_at = listed_at - ${shift}`,
        sql`update idempotency_keys set expires_at = expires_at - ${shift}`,
        sql`update domain_challenges set expires_at = expires_at - ${shift}`,
        sql`
          update dns_names set
            next_attempt_at = next_attempt_at - ${shift}, changed_at = changed_at - ${shift},
            applied_at = applied_at - ${shift}`,
        sql`
          update tenant_records set due_at = due_at - ${shift}, records = jsonb_set(records, '{challenges}', (
            select coalesce(jsonb_agg(jsonb_set(item, '{setAt}', to_jsonb((item ->> 'setAt')::float8 - ${ms}::float8)) order by position), '[]')
            from jsonb_array_elements(records -> 'challenges') with ordinality as challenge (item, position)))
          where records is not null`,
        sql`update record_tokens set created_at = created_at - ${shift}, expires_at = expires_at - ${shift}`,
        sql`update deployments set run_expires_at = run_expires_at - ${shift}`,
        sql`update dns_zone_writes set confirmed_at = confirmed_at - ${shift}`,
        sql`update dns_zones set next_drift_check_at = next_drift_check_at - ${shift}`,
      ])
    },
    async drop() {
      await sql.end({ timeout: 1 })
      await runOnServer(`drop database ${name} with (force)`)
    },
  }
}

/** A database for all tests of the calling file or block. */
export const useTestDatabase = async (options?: Parameters<typeof createTestDatabase>[0]): Promise<TestDatabase> => {
  const database = await createTestDatabase(options)
  afterAll(() => database.drop())
  return database
}

import { createDatabaseClient, type Sessions, type Sql } from '@pool/runtime/database/client'
import { parseConnectionString } from '@pool/runtime/database/connection-string'
import { toDurability } from '@pool/runtime/database/health'
import { listPendingMigrations, type Schema, SchemaVersionError } from '@pool/runtime/database/migrations'
import {
  applySessionSettings,
  createSessionSettings,
  findRejectedParameter,
  findUnusable,
  toAlterRole,
} from '@pool/runtime/database/session-settings'
import {
  checkPreparedStatements,
  checkTransactions,
  explainStartupError,
  StartupError,
  toRejectedParameterDetail,
} from '@pool/runtime/database/startup'
import { withTimeout } from '@pool/runtime/database/time'
import type { Config } from '../config/config.ts'
import { describeError } from '../observability/domain/redact.ts'
import { type DatabaseFacts, judgeDatabase } from './domain/database.ts'
import { judgeGrowth, NEWEST_ROWS, type TableFacts } from './domain/growth.ts'
import { bad, badWithAdvice, type Finding, good, notChecked } from './domain/report.ts'

const URL_VARIABLE = 'PDM_DATABASE_URL'
const APPLICATION_NAME = 'allocation-api doctor'
/** Seconds for which PgBouncer rejects clients after it could not log in to the server. Its default is 15. */
const MAX_LOGIN_RETRY_S = 2
/** No work holds one and waits for another. With two, a statement that waits for a row does not hold up all others. */
const MIN_SERVER_CONNECTIONS = 2

export interface DatabaseCheckOptions {
  readonly database: Config['database']
  readonly retention: Config['retention']
  /** Connections that one process of the service can open. */
  readonly connections: number
  readonly schema: Schema
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
  /** Milliseconds for one statement, or the opening of a connection. */
  readonly statementTimeoutMs: number
}

interface FactRow {
  readonly version: string
  readonly versionNumber: number
  readonly role: string
  readonly isSuperuser: boolean
  readonly roleConnectionLimit: number
  readonly maxConnections: number
  readonly schema: string | null
  readonly canCreate: boolean | null
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  readonly synchronousCommit: string
  readonly standbyNames: string
  readonly fsync: string
  readonly hasStandby: boolean
  readonly timeMs: number
  readonly pid: number
}

const readFacts = async (sql: Sql, wallClock: () => number, timeoutMs: number) => {
  const sentAt = wallClock()
  const rows = await withTimeout(
    sql<FactRow[]>`
      select current_setting('server_version') as version, current_setting('server_version_num')::int as "versionNumber",
        current_user as role, r.rolsuper as "isSuperuser", r.rolconnlimit as "roleConnectionLimit",
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          as "maxConnections",
        current_schema() as schema, has_schema_privilege(current_schema(), 'create') as "canCreate",
        pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only')::bool as "isReadOnly",
        current_setting('synchronous_commit') as "synchronousCommit",
        current_setting('synchronous_standby_names') as "standbyNames", current_setting('fsync') as fsync,
        exists (select from pg_stat_replication)
          or exists (select from pg_replication_slots where slot_type = 'physical') as "hasStandby",
        extract(epoch from clock_timestamp())::float8 * 1000 as "timeMs", pg_backend_pid() as pid
      from pg_roles r where r.rolname = current_user`,
    timeoutMs,
  )
  const [row] = rows
  if (!row) throw new Error('the database returned nothing about its role')
  const facts: DatabaseFacts = {
    ...row,
    roleConnectionLimit: row.roleConnectionLimit < 0 ? null : row.roleConnectionLimit,
    durability: toDurability(row),
    // The server read its clock in between.
    clockDifferenceMs: row.timeMs - (sentAt + wallClock()) / 2,
    // Only a pooler has process ids of its own.
    isPooled: rows.state.pid !== row.pid,
  }
  return { facts, canCreate: row.canCreate === true }
}

/** The tables that the migrations create. */
const toTables = ({ migrations }: Schema): readonly string[] =>
  migrations.flatMap(({ script }) => Array.from(script.matchAll(/^create table (\w+)/gm), ([, table]) => table ?? ''))

const checkSchema = async (
  sql: Sql,
  schema: Schema,
  { facts, canCreate }: { readonly facts: DatabaseFacts; readonly canCreate: boolean },
  limitMs: number,
): Promise<Finding[]> => {
  const check = 'database schema'
  const { role } = facts
  const grantCreate = `run migrate as the owner of the tables, or: grant usage, create on schema ${facts.schema ?? 'public'} to ${role}`
  const grantTables = `grant select, insert, update, delete on all tables in schema ${facts.schema ?? 'public'} to ${role}`
  try {
    const pending = await withTimeout(listPendingMigrations(sql, schema), limitMs)
    const missing = await withTimeout(
      sql<{ name: string }[]>`
        select name from jsonb_array_elements_text(${sql.json([...toTables(schema)])}) as name
        where to_regclass(name) is not null
          and not (has_table_privilege(name, 'select') and has_table_privilege(name, 'insert')
            and has_table_privilege(name, 'update') and has_table_privilege(name, 'delete'))
        order by 1`,
      limitMs,
    )
    const names = missing.map(({ name }) => name)
    const count = `${pending.length} migration${pending.length === 1 ? ' is' : 's are'} pending`
    return [
      pending.length === 0
        ? good(check, `it fits build ${schema.migrations.length}`)
        : canCreate
          ? good(check, `${count}; the start applies them`)
          : bad(check, `${count}, and ${role} may not create tables`, grantCreate),
      names.length === 0
        ? good('database privileges', `${role} may read and write the tables`)
        : bad(
            'database privileges',
            `${role} lacks privileges for ${names.length} tables, such as ${names[0]}`,
            grantTables,
          ),
    ]
  } catch (error) {
    if (error instanceof SchemaVersionError) return [badWithAdvice(check, error.message)]
    if (Object(error).code === '42501')
      return [bad('database privileges', `${role} may not read the tables`, grantTables)]
    throw error
  }
}

const checkGrowth = async (
  sql: Sql,
  schema: Schema,
  retention: Config['retention'],
  limitMs: number,
): Promise<readonly Finding[]> => {
  const newest = (table: string) => sql`(select at from ${sql(table)} order by id desc limit ${NEWEST_ROWS})`
  const tables = await withTimeout(
    sql<TableFacts[]>`
      with grown as (
        select 'allocation_history' as name, count(*)::int as newest, min(at) as oldest from ${newest('allocation_history')} a
        union all select 'deployment_history', count(*), min(at) from ${newest('deployment_history')} d
        union all select 'deployment_log_lines', count(*), min(at) from deployment_log_lines
          where deployment_id in (select id from deployments order by started_at desc limit 100))
      select relname as name, pg_total_relation_size(oid)::float8 as bytes, newest::float8,
        greatest(reltuples, pg_stat_get_live_tuples(oid))::float8 as rows,
        extract(epoch from clock_timestamp() - oldest)::float8 * 1000 as "ageMs"
      from pg_class left join grown on relname = grown.name where oid in (
        select to_regclass(name) from jsonb_array_elements_text(${sql.json([...toTables(schema)])}) as t (name))`,
    limitMs,
  )
  return judgeGrowth(tables, retention)
}

/** The sequences, and the columns that their values are in. */
const SEQUENCES = [
  { sequence: 'allocation_history_id_seq', table: 'allocation_history', column: 'id' },
  { sequence: 'deployments_number_seq', table: 'deployments', column: 'number' },
  { sequence: 'deployment_history_id_seq', table: 'deployment_history', column: 'id' },
  { sequence: 'dns_version', table: 'dns_names', column: 'version' },
]

/** Logical replication copies tables, not sequences. After a switch by it, every write would repeat a value. */
const checkSequences = async (sql: Sql, limitMs: number): Promise<readonly Finding[]> => {
  const check = 'database sequences'
  const rows = await withTimeout(
    sql<{ name: string; last: number }[]>`
      select sequencename::text as name, coalesce(last_value, 0) as last from pg_sequences
      where schemaname = current_schema()
        and has_sequence_privilege(format('%I.%I', schemaname, sequencename), 'usage, select')`,
    limitMs,
  )
  const lastValues = new Map(rows.map(({ name, last }) => [name, last]))
  const behind: string[] = []
  for (const { sequence, table, column } of SEQUENCES) {
    const last = lastValues.get(sequence)
    // Before the migrations, there is none.
    if (last === undefined) continue
    const [row] = await withTimeout(
      sql<{ max: number | null }[]>`select max(${sql(column)}) from ${sql(table)}`,
      limitMs,
    )
    if ((row?.max ?? 0) > last) behind.push(`select setval('${sequence}', (select max(${column}) from ${table}));`)
  }
  return [
    behind.length === 0
      ? good(check, 'they are not behind their tables')
      : bad(check, 'the next writes would repeat values and fail with 500', `as the owner: ${behind.join(' ')}`),
  ]
}

const checkSessionSettings = async (url: string, timeoutMs: number, limitMs: number): Promise<Finding> => {
  const check = 'database sessions'
  const applied = await applySessionSettings(url, createSessionSettings(timeoutMs), {
    applicationName: APPLICATION_NAME,
    timeoutMs: limitMs,
  })
  const unusable = findUnusable(applied)
  if (unusable !== null) return badWithAdvice(check, unusable)
  const remedy = toAlterRole(applied)
  return remedy === ''
    ? good(check, 'they have the encoding and the settings that the service relies on')
    : bad(check, 'the pooler does not pass on settings that end the work of clients that are gone', remedy)
}

const checkPrepared = async (sql: Sql, url: string, isPooled: boolean, limitMs: number): Promise<Finding> => {
  const check = 'database prepared statements'
  const open = (sessions: Pick<Sessions, 'add'>) =>
    createDatabaseClient(url, {
      applicationName: APPLICATION_NAME,
      maxConnections: 1,
      maxStatementMs: limitMs,
      sessions,
    })
  try {
    await checkTransactions(sql, open)
    if (!sql.options.prepare) return good(check, `turned off by prepare=false in ${URL_VARIABLE}`)
    if (!isPooled) return good(check, 'they work: no connection pooler is in between')
    await checkPreparedStatements(sql, { open, urlVariable: URL_VARIABLE })
    return good(check, 'they work through the connection pooler, across transactions')
  } catch (error) {
    if (error instanceof StartupError) return badWithAdvice(check, error.message)
    throw error
  }
}

/** The administration console of PgBouncer is a database of that name. It answers simple queries only. */
const toConsoleUrl = (url: string): string => url.replace(/^(postgres(?:ql)?:\/\/[^/?#]*)(?:\/[^?#]*)?/, '$1/pgbouncer')

const judgePoolSize = (size: number): readonly Finding[] => {
  const check = 'pgbouncer default_pool_size'
  const need = MIN_SERVER_CONNECTIONS
  const text = `${size} server connections; the service needs ${need}, however many pools and processes it has`
  if (Number.isNaN(size)) return []
  return [size < need ? bad(check, text, 'set default_pool_size = 20') : good(check, text)]
}

const checkPgbouncer = async (url: string, limitMs: number): Promise<readonly Finding[]> => {
  const check = 'pgbouncer server_login_retry'
  const advice = 'set server_login_retry = 1 in pgbouncer.ini'
  const sql = createDatabaseClient(toConsoleUrl(url), {
    applicationName: APPLICATION_NAME,
    maxConnections: 1,
    maxStatementMs: limitMs,
  })
  try {
    const rows = await withTimeout(sql.unsafe<{ key: string; value: string }[]>('show config').simple(), limitMs)
    const read = (name: string) => Number(rows.find(({ key }) => key === name)?.value ?? Number.NaN)
    const seconds = read('server_login_retry')
    if (Number.isNaN(seconds)) return [notChecked(check, 'the pooler does not report it', advice)]
    return [
      seconds > MAX_LOGIN_RETRY_S
        ? bad(check, `after a restart of Postgres, PgBouncer rejects every request for ${seconds} s`, advice)
        : good(check, `${seconds} s`),
      ...judgePoolSize(read('default_pool_size')),
    ]
  } catch {
    return [
      notChecked(
        check,
        'the user may not read the console of PgBouncer, or it is another pooler',
        `${advice}; list the user in stats_users to have it checked`,
      ),
    ]
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Everything that the service needs of its database. It writes nothing. */
export const checkDatabase = async ({
  database,
  retention,
  connections,
  schema,
  wallClock,
  statementTimeoutMs,
}: DatabaseCheckOptions): Promise<readonly Finding[]> => {
  const { url, usesTls, timeoutMs } = database
  const parsed = parseConnectionString(url)
  if ('issue' in parsed) return [bad('database', `${URL_VARIABLE} ${parsed.issue}`, 'correct it')]
  const sql = createDatabaseClient(url, {
    applicationName: APPLICATION_NAME,
    maxConnections: 1,
    maxStatementMs: statementTimeoutMs,
    pipelines: false,
  })
  const explain = (check: string, error: unknown): Finding => {
    const parameter = findRejectedParameter(url, error)
    if (parameter !== null) return badWithAdvice(check, `${URL_VARIABLE} ${toRejectedParameterDetail(parameter)}`)
    const { isFinal, text } = explainStartupError(error, { usesTls, urlVariable: URL_VARIABLE })
    if (isFinal || check === 'database') return badWithAdvice(check, text)
    const { code, name } = describeError(error)
    return bad(check, `the check failed (${code ?? name})`, 'look into the log of the database server')
  }
  /** A check that fails does not hide the others. */
  const attempt = async (check: string, run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> => {
    try {
      return await run()
    } catch (error) {
      return [explain(check, error)]
    }
  }
  try {
    const { facts, canCreate } = await readFacts(sql, wallClock, statementTimeoutMs)
    const client = {
      urlVariable: URL_VARIABLE,
      hosts: parsed.hosts.map(({ host }) => host),
      verify: parsed.tls?.verify ?? null,
      connections,
    }
    return [
      good('database', 'it can be reached'),
      ...judgeDatabase(facts, client),
      ...(await attempt('database schema', () => checkSchema(sql, schema, { facts, canCreate }, statementTimeoutMs))),
      ...(await attempt('database sequences', () => checkSequences(sql, statementTimeoutMs))),
      ...(await attempt('database prepared statements', async () => [
        await checkPrepared(sql, url, facts.isPooled, statementTimeoutMs),
      ])),
      ...(await attempt('database sessions', async () => [
        await checkSessionSettings(url, timeoutMs, statementTimeoutMs),
      ])),
      ...(await checkGrowth(sql, schema, retention, statementTimeoutMs).catch(() => [
        notChecked('database growth', 'the tables do not exist yet, cannot be read, or took too long'),
      ])),
      ...(facts.isPooled ? await checkPgbouncer(url, statementTimeoutMs) : []),
    ]
  } catch (error) {
    return [explain('database', error), notChecked('database role and schema', 'the database cannot be used')]
  } finally {
    await sql.end({ timeout: 0 })
  }
}

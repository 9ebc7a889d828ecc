import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '@pool/runtime/database/client'

/** What a server did for a service, from the start of the service to its end. */
export interface ServerCounts {
  /** Each is at least a part of a round trip. `begin` and `commit` are statements too. */
  readonly statements: number
  /** Those of the DNS provider `local`, whose zones are tables in the same database. */
  readonly providerStatements: number
  /** Calls that made the write-ahead log durable, by the connections of clients. */
  readonly walFlushes: number
}

/** Of the tables that only the provider `local` uses. */
const PROVIDER_TABLES = /\blocal_dns_(?:zones|records)\b/

/** Splits a log into entries: the lines of a statement after the first one have no prefix. */
const ENTRY = /^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \S+ \[\d+\] )/m

/**
 * Counts the statements in a server log that was written with `log_statement = all`. `begin` and `commit` around a statement of
 * the provider are counted as its own.
 */
export const countStatements = (log: string): Omit<ServerCounts, 'walFlushes'> => {
  let statements = 0
  let providerStatements = 0
  /** For each backend, the statements of its open transaction, and whether one of them is of the provider. */
  const open = new Map<string, { statements: number; isProvider: boolean }>()
  for (const entry of log.split(ENTRY)) {
    const [, backend = '', text] = /\[(\d+)\] LOG: {2}(?:statement|execute [^:]*): ([\s\S]*)$/.exec(entry) ?? []
    if (text === undefined) continue
    statements += 1
    const isProvider = PROVIDER_TABLES.test(text)
    const transaction = open.get(backend)
    if (/^begin\b/i.test(text)) open.set(backend, { statements: 1, isProvider: false })
    else if (transaction) {
      transaction.statements += 1
      transaction.isProvider ||= isProvider
      if (!/^(?:commit|rollback)\b(?! to)/i.test(text)) continue
      open.delete(backend)
      if (transaction.isProvider) providerStatements += transaction.statements
    } else if (isProvider) providerStatements += 1
  }
  return { statements, providerStatements }
}

const readWalFlushes = async (admin: Sql): Promise<number> => {
  const [row] = await admin<{ flushes: number }[]>`
    select coalesce(sum(fsyncs), 0)::float8 as flushes from pg_stat_io
    where object = 'wal' and backend_type = 'client backend'`
  return row?.flushes ?? Number.NaN
}

const MAX_EXIT_MS = 10_000

/** A backend reports its statistics at the latest when it exits; before, it may keep those of its last ten seconds. */
const waitUntilUnused = async (admin: Sql, database: string): Promise<void> => {
  const until = performance.now() + MAX_EXIT_MS
  for (;;) {
    const [row] = await admin<{ backends: number }[]>`
      select count(*)::int as backends from pg_stat_activity where datname = ${database}`
    if (row?.backends === 0) return
    if (performance.now() > until) throw new Error(`${database} still has connections`)
    await sleep(20)
  }
}

/** Counts what the server does during `work` in a database to which nothing is connected before and after it. */
export const countServerWork = async (
  { admin, log }: { readonly admin: Sql; readonly log: string },
  database: string,
  work: () => Promise<void>,
): Promise<ServerCounts> => {
  await admin.unsafe(`alter database ${database} set log_statement = 'all'`)
  // The parameters would be as long as the statements.
  await admin.unsafe(`alter database ${database} set log_parameter_max_length = 0`)
  await waitUntilUnused(admin, database)
  const flushes = await readWalFlushes(admin)
  const { length } = await readFile(log)
  await work()
  await waitUntilUnused(admin, database)
  const text = (await readFile(log)).toString('utf8', length)
  return { ...countStatements(text), walFlushes: (await readWalFlushes(admin)) - flushes }
}

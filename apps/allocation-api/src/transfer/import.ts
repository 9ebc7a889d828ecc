import { type ExportLine, exportLine, type SkippedName, target } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import postgres from 'postgres'
import * as z from 'zod'
import { validateTarget } from '../allocation/active-names.ts'
import { createRecords, type RecordTemplate } from '../dns/domain/target.ts'
import { createLineSplitter } from '../lib/text.ts'
import {
  type Caller,
  type NameRejection,
  type Pools,
  toFqdn,
  UNKNOWN_LINEAGE,
  validateName,
  validateOpenPool,
} from '../naming/naming.ts'
import { type MovedName, moveNames } from './move-names.ts'
import { OMITTED_TABLES, TRANSFERRED_TABLES } from './tables.ts'

export interface ImportedInstallation {
  readonly kind: 'imported'
  /** By table. */
  readonly rows: Readonly<Record<string, number>>
  readonly stoppedZones: readonly string[]
}

export interface ImportedNames {
  readonly kind: 'moved'
  readonly count: number
  /** The first `MAX_LISTED`, by name. */
  readonly skipped: readonly SkippedName[]
  readonly skippedCount: number
}

/** Nothing was changed. */
export interface RejectedImport {
  /** Not a complete export that this build can read; or the database has rows. */
  readonly kind: 'invalid-import' | 'not-empty'
  readonly detail: string
}

export interface MoveRequest {
  readonly from: string
  readonly to: string
  readonly caller: Caller
  readonly isDryRun: boolean
}

/** What decides which names a pool can give, and which records they get. */
export interface MoveRules {
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
}

export interface ImportOptions {
  /** A client with a single connection, which the import closes. */
  readonly connect: () => Sql
  readonly schemaVersion: number
  /** Milliseconds without data from the client, after which Postgres ends the transaction. */
  readonly idleTimeoutMs: number
}

type Row = Readonly<Record<string, unknown>>

/** Rows per statement. */
const BATCH_SIZE = 500
/** Skipped names that a result lists; the rest is only counted. */
const MAX_LISTED = 1_000
/** From this schema on, an export has the outcome of a key in the row of the key. The keys of an older one are left out. */
const FIRST_SCHEMA_WITH_KEYS = 21
/** A row can hold the plan-sized input of a deployment, but no more than this. */
const MAX_LINE_LENGTH = 8 * 1_024 * 1_024

const order = new Map(TRANSFERRED_TABLES.map(({ name }, index) => [name, index]))

class ImportError extends Error {
  override readonly name = 'ImportError'
  readonly kind: 'invalid-import' | 'not-empty'
  constructor(kind: 'invalid-import' | 'not-empty', message: string) {
    super(message)
    this.kind = kind
  }
}

const reject = (detail: string): never => {
  throw new ImportError('invalid-import', detail)
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The lines of an export with their numbers. Rejects with an `ImportError` unless it is complete. */
export async function* readExportLines(
  chunks: AsyncIterable<Uint8Array>,
  schemaVersion: number,
): AsyncGenerator<{ readonly number: number; readonly line: ExportLine }> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const texts: { text: string; isTruncated: boolean }[] = []
  const splitter = createLineSplitter(MAX_LINE_LENGTH, (text, isTruncated) => texts.push({ text, isTruncated }))
  let number = 0
  let rowCount = 0
  let end: number | null = null
  let schema = schemaVersion
  const isImported = ({ line }: { readonly line: ExportLine }) =>
    schema >= FIRST_SCHEMA_WITH_KEYS || line.type !== 'row' || !line.table.startsWith('idempotency_')
  const parse = ({ text, isTruncated }: { text: string; isTruncated: boolean }) => {
    number += 1
    const { data: line } = exportLine.safeParse(isTruncated ? undefined : parseJson(text))
    if (!line) return reject(`Line ${number} is not a line of an export of version 1.`)
    if ((line.type === 'header') !== (number === 1)) {
      return reject(`Line ${number}: an export has one header, in its first line.`)
    }
    if (line.type === 'header' && line.schema > schemaVersion) {
      return reject(
        `The export has schema version ${line.schema}, and this build knows ${schemaVersion}: run a newer build.`,
      )
    }
    if (line.type === 'header') schema = line.schema
    if (end !== null) return reject(`Line ${number} follows the end of the export.`)
    if (line.type === 'row') rowCount += 1
    if (line.type === 'end') end = line.rows
    return { number, line }
  }
  const decode = (chunk?: Uint8Array): string => {
    try {
      return chunk ? decoder.decode(chunk, { stream: true }) : decoder.decode()
    } catch {
      return reject(`The text after line ${number} is not UTF-8.`)
    }
  }
  for await (const chunk of chunks) {
    splitter.push(decode(chunk))
    yield* texts.splice(0).map(parse).filter(isImported)
  }
  splitter.push(decode())
  splitter.end()
  yield* texts.splice(0).map(parse).filter(isImported)
  if (end === null) reject(`The export is truncated: it has no end line after line ${number}. Export again.`)
  if (end !== rowCount) reject(`The export is incomplete: it has ${rowCount} rows instead of ${end}. Export again.`)
}

/** Class 22 of SQLSTATE is an invalid value, class 23 a violated constraint. */
const isInvalidRow = (error: unknown): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError && /^2[23]/.test(error.code)

const toSubject = (error: postgres.PostgresError): string => error.constraint_name ?? error.column_name ?? error.code

const rejectInvalidRow = (error: unknown): never => {
  if (isInvalidRow(error)) return reject(`An allocation is invalid (${toSubject(error)}).`)
  throw error
}

const listColumns = async (sql: Sql): Promise<ReadonlyMap<string, ReadonlySet<string>>> => {
  const rows = await sql<{ table: string; column: string }[]>`
    select relname as table, attname as column from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = current_schema()::regnamespace and attnum > 0 and not attisdropped`
  const columns = new Map(TRANSFERRED_TABLES.map(({ name }) => [name, new Set<string>()]))
  for (const { table, column } of rows) columns.get(table)?.add(column)
  return columns
}

const requireEmptyDatabase = async (sql: Sql): Promise<void> => {
  for (const { name, where = 'true' } of TRANSFERRED_TABLES) {
    const rows = await sql.unsafe(`select from ${name} where ${where} limit 1`)
    if (rows.length > 0) {
      throw new ImportError('not-empty', `The table ${name} has rows: import into a new database.`)
    }
  }
}

const insertRows = async (sql: Sql, table: string, rows: readonly Row[]): Promise<void> => {
  const columns = Object.keys(rows[0] ?? {})
    .map(name => `"${name}"`)
    .join(', ')
  // The export explains names that were unknown.
  if (table === 'pool_allocations' || table === 'dns_names') {
    await sql.unsafe(
      `delete from pool_allocations a
       using jsonb_to_recordset($1::text::jsonb) r (pool_domain text, zone text, subdomain text)
       where a.pool_domain = coalesce(r.pool_domain, r.zone) and a.subdomain = r.subdomain
         and a.lineage_id = '${UNKNOWN_LINEAGE}'`,
      [JSON.stringify(rows)],
    )
  }
  await sql.unsafe(
    `insert into ${table} (${columns}) overriding system value
     select ${columns} from jsonb_populate_recordset(null::${table}, $1::text::jsonb)`,
    [JSON.stringify(rows)],
  )
}

/** Collects rows of one table with the same columns, and inserts them in statements of bounded size. */
const createInserter = (sql: Sql, columns: ReadonlyMap<string, ReadonlySet<string>>) => {
  const counts: Record<string, number> = {}
  let table = ''
  let shape = ''
  let batch: Row[] = []
  let firstNumber = 0
  const flush = async () => {
    if (batch.length === 0) return
    await insertRows(sql, table, batch).catch((error: unknown) => {
      if (!isInvalidRow(error)) throw error
      reject(`A row of ${table} from line ${firstNumber} on is invalid (${toSubject(error)}).`)
    })
    counts[table] = (counts[table] ?? 0) + batch.length
    batch = []
  }
  return {
    counts,
    flush,
    async add(number: number, name: string, row: Row) {
      const known = columns.get(name)
      if (!known) reject(`Line ${number}: this build imports no rows of ${JSON.stringify(name)}.`)
      const unknown = Object.keys(row).find(column => !known?.has(column))
      if (unknown !== undefined) reject(`Line ${number}: ${name} has no column ${JSON.stringify(unknown)}.`)
      const keys = Object.keys(row).join()
      if (name !== table || keys !== shape || batch.length === BATCH_SIZE) {
        await flush()
        if ((order.get(name) ?? 0) < (order.get(table) ?? 0)) reject(`Line ${number}: rows of ${name} come earlier.`)
        Object.assign(counts, { [name]: counts[name] ?? 0 })
        table = name
        shape = keys
        firstNumber = number
      }
      batch.push(row)
    },
  }
}

const isRunning = ({ table, row }: { readonly table: string; readonly row: Row }): boolean =>
  table === 'deployments' && row.finished_at === null

/** The pool of a name in the export, if this service does not manage it: nobody could use the name. */
const findUnmanagedPool = (
  { table, row }: { readonly table: string; readonly row: Row },
  { managed }: Pools,
): string | null => {
  const pool = table === 'pool_allocations' ? row.pool_domain : table === 'dns_names' ? row.zone : null
  return typeof pool === 'string' && !managed.includes(pool) ? pool : null
}

/** Never sets a sequence back: numbers of this database that were given meanwhile stay unused. */
const advanceSequence = async (sql: Sql, number: number, name: string, value: number): Promise<void> => {
  const [sequence] = await sql<{ lastValue: number | null }[]>`
    select last_value as "lastValue" from pg_sequences
    where schemaname = current_schema() and sequencename = ${name}`
  if (!sequence) reject(`Line ${number}: this build has no sequence ${JSON.stringify(name)}.`)
  if (value > (sequence?.lastValue ?? 0)) await sql`select setval(${name}::text::regclass, ${value})`
}

/**
 * Stops every zone that the import brings: until an operator resumes it, nothing is written there, because another
 * installation may still be its writer.
 */
const stopZones = async (sql: Sql): Promise<string[]> => {
  const rows = await sql<{ zone: string }[]>`
    insert into dns_zone_writes as w (zone, stopped_cause, stopped_at)
    select zone, 'imported', statement_timestamp() from (
      select zone from dns_names union select zone from dns_zones
      union select pool_domain from pool_allocations where state <> 'pool'
    ) imported order by zone
    on conflict (zone) do update set stopped_cause = excluded.stopped_cause, stopped_at = excluded.stopped_at
    returning zone`
  return rows.map(row => row.zone)
}

type Work<Result> = (sql: Sql) => Promise<Result>

/** Milliseconds. Below the default `deadlock_timeout`, so that in a deadlock the import ends, and not a request. */
const LOCK_TIMEOUT_MS = 500

/** One transaction on a connection of its own; a rollback after an error and for a dry run. */
const inTransaction = async <Result>(
  { connect, idleTimeoutMs }: ImportOptions,
  isDryRun: boolean,
  work: Work<Result>,
): Promise<Result | RejectedImport> => {
  const sql = connect()
  try {
    await sql.unsafe(`
      begin; set local idle_in_transaction_session_timeout = ${idleTimeoutMs}; set local statement_timeout = 0;
      set local lock_timeout = ${LOCK_TIMEOUT_MS}; set local timezone = 'UTC'`)
    const result = await work(sql)
    await sql.unsafe(isDryRun ? 'rollback' : 'commit')
    return result
  } catch (error) {
    if (error instanceof ImportError) return { kind: error.kind, detail: error.message }
    throw error
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/**
 * Moves an installation into this database, in one transaction: all or nothing. No other transaction writes the tables in
 * the meantime. Every zone is stopped until an operator resumes it.
 */
export const importInstallation = async (
  options: ImportOptions & Pick<MoveRules, 'pools'>,
  chunks: AsyncIterable<Uint8Array>,
  { isDryRun }: { readonly isDryRun: boolean },
): Promise<ImportedInstallation | RejectedImport> =>
  inTransaction(options, isDryRun, async sql => {
    // Before the locks too: an import into a database in use must not delay its requests.
    await requireEmptyDatabase(sql)
    const tables = TRANSFERRED_TABLES.map(({ name }) => name).join(', ')
    await sql.unsafe(`lock table ${tables} in share row exclusive mode`)
    await requireEmptyDatabase(sql)
    const inserter = createInserter(sql, await listColumns(sql))
    for await (const { number, line } of readExportLines(chunks, options.schemaVersion)) {
      if (line.type === 'row') {
        if (isRunning(line)) {
          reject(`Line ${number}: a deployment was in progress. Wait until none is, stop the source and export again.`)
        }
        const unmanaged = findUnmanagedPool(line, options.pools())
        if (unmanaged !== null) {
          const advice = 'Add it to DNSPROVIDER_MANAGED_DOMAINS, restart the service and import again.'
          reject(`Line ${number} has a name of ${unmanaged}, which this service does not manage. ${advice}`)
        }
        await inserter.add(number, line.table, line.row)
      }
      if (line.type === 'sequence') {
        await inserter.flush()
        if (!isDryRun) await advanceSequence(sql, number, line.name, line.value)
      }
    }
    await inserter.flush()
    return { kind: 'imported', rows: inserter.counts, stoppedZones: await stopZones(sql) } as const
  })

/** The row of an allocation that a client has, in the pool `from`. */
const movedRow = z.looseObject({
  subdomain: z.string(),
  state: z.enum(['reserved', 'active']),
  load_balancer_ip: z.string().nullable(),
  target: target.nullish(),
})

/**
 * Moves the reservations and the active names of one pool to another pool of this service, in one transaction. Names that
 * the pool cannot give are skipped. They are published at once; their records in the former pool stay.
 */
export const importNames = async (
  options: ImportOptions & MoveRules,
  chunks: AsyncIterable<Uint8Array>,
  { from, to, caller, isDryRun }: MoveRequest,
): Promise<ImportedNames | NameRejection | RejectedImport> => {
  const rejection = validateOpenPool(to, options.pools())
  if (rejection) return rejection
  return inTransaction(options, isDryRun, async sql => {
    const skipped: SkippedName[] = []
    let count = 0
    let batch: MovedName[] = []
    const flush = async () => {
      if (batch.length === 0) return
      const detail = `Imported from the pool ${from}.`
      const moved = new Set(await moveNames(sql, { poolDomain: to, caller, detail }, batch).catch(rejectInvalidRow))
      const isTaken = 'The name is taken, or its reservation has expired.'
      for (const { row } of batch) {
        if (!moved.has(String(row.subdomain))) skipped.push({ subdomain: String(row.subdomain), detail: isTaken })
      }
      count += moved.size
      batch = []
    }
    for await (const { number, line } of readExportLines(chunks, options.schemaVersion)) {
      if (line.type !== 'row' || line.table !== 'pool_allocations' || line.row.pool_domain !== from) continue
      if (line.row.state !== 'reserved' && line.row.state !== 'active') continue
      const { data: row } = movedRow.safeParse(line.row)
      if (!row) return reject(`Line ${number} is not an allocation.`)
      const reserved = validateName(to, row.subdomain, options.pools())
      if (reserved) {
        skipped.push({ subdomain: row.subdomain, detail: reserved.detail })
        continue
      }
      const fqdn = toFqdn(to, row.subdomain)
      const points = row.target ?? { loadBalancerIP: row.load_balancer_ip?.replace(/\/32$/, '') }
      const invalid = validateTarget(fqdn, points, { acceptsLoopback: true, canDelegate: true })
      if (invalid) {
        skipped.push({ subdomain: row.subdomain, detail: invalid.detail })
        continue
      }
      batch.push({ row, records: row.state === 'active' ? createRecords(fqdn, points, options.recordTemplate) : [] })
      if (batch.length === BATCH_SIZE) await flush()
    }
    await flush()
    skipped.sort((a, b) => (a.subdomain < b.subdomain ? -1 : 1))
    return { kind: 'moved', count, skipped: skipped.slice(0, MAX_LISTED), skippedCount: skipped.length } as const
  })
}

/** For the test that compares the lists with the schema. */
export const listTransferTables = (): readonly string[] => [
  ...TRANSFERRED_TABLES.map(({ name }) => name),
  ...Object.keys(OMITTED_TABLES),
]

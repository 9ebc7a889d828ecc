import { type ExportLine, exportLine } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import postgres from 'postgres'
import { createLineSplitter } from '../lib/line-splitter.ts'
import { OMITTED_TABLES, TRANSFERRED_TABLES } from './tables.ts'

export type ImportOutcome =
  | {
      readonly kind: 'imported'
      readonly rows: Readonly<Record<string, number>>
      readonly stoppedZones: readonly string[]
    }
  /** The text is not a complete export that this build can read. Nothing was changed. */
  | { readonly kind: 'invalid-import'; readonly detail: string }
  /** The database has rows. Nothing was changed. */
  | { readonly kind: 'not-empty'; readonly detail: string }

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
/** A row can hold the plan-sized input of a deployment, but no more than this. */
const MAX_LINE_LENGTH = 8 * 1_024 * 1_024

const order = new Map(TRANSFERRED_TABLES.map(({ name }, index) => [name, index]))

export class ImportError extends Error {
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
    for (const text of texts.splice(0)) yield parse(text)
  }
  splitter.push(decode())
  splitter.end()
  for (const text of texts.splice(0)) yield parse(text)
  if (end === null) reject(`The export is truncated: it has no end line after line ${number}. Export again.`)
  if (end !== rowCount) reject(`The export is incomplete: it has ${rowCount} rows instead of ${end}. Export again.`)
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
      // Class 22: a value that is invalid; class 23: a violated constraint.
      if (!(error instanceof postgres.PostgresError) || !/^2[23]/.test(error.code)) throw error
      const subject = error.constraint_name ?? error.column_name ?? error.code
      reject(`A row of ${table} from line ${firstNumber} on is invalid (${subject}).`)
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
    insert into dns_zone_writes as w (zone, stopped_cause)
    select zone, 'imported' from (
      select zone from dns_names union select zone from dns_zones
      union select pool_domain from pool_allocations where state <> 'pool'
    ) imported order by zone
    on conflict (zone) do update set stopped_cause = excluded.stopped_cause
    returning zone`
  return rows.map(row => row.zone)
}

/**
 * Moves an installation into this database, in one transaction: all or nothing. No other transaction writes the tables in
 * the meantime. Every zone is stopped until an operator resumes it.
 */
export const importInstallation = async (
  { connect, schemaVersion, idleTimeoutMs }: ImportOptions,
  chunks: AsyncIterable<Uint8Array>,
  { isDryRun }: { readonly isDryRun: boolean },
): Promise<ImportOutcome> => {
  const sql = connect()
  const tables = TRANSFERRED_TABLES.map(({ name }) => name).join(', ')
  try {
    await sql.unsafe(`
      begin; set local idle_in_transaction_session_timeout = ${idleTimeoutMs}; set local statement_timeout = 0;
      set local lock_timeout = '2s'; set local timezone = 'UTC'`)
    await sql.unsafe(`lock table ${tables} in share row exclusive mode`)
    await requireEmptyDatabase(sql)
    const inserter = createInserter(sql, await listColumns(sql))
    for await (const { number, line } of readExportLines(chunks, schemaVersion)) {
      if (line.type === 'row') {
        if (isRunning(line)) {
          reject(`Line ${number}: a deployment was in progress. Wait until none is, stop the source and export again.`)
        }
        await inserter.add(number, line.table, line.row)
      }
      if (line.type === 'sequence') {
        await inserter.flush()
        if (!isDryRun) await advanceSequence(sql, number, line.name, line.value)
      }
    }
    await inserter.flush()
    const stoppedZones = await stopZones(sql)
    await sql.unsafe(isDryRun ? 'rollback' : 'commit')
    return { kind: 'imported', rows: inserter.counts, stoppedZones }
  } catch (error) {
    if (error instanceof ImportError) return { kind: error.kind, detail: error.message }
    throw error
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** For the test that compares the lists with the schema. */
export const listTransferTables = (): readonly string[] => [
  ...TRANSFERRED_TABLES.map(({ name }) => name),
  ...Object.keys(OMITTED_TABLES),
]

import type { ExportLine } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { TRANSFERRED_TABLES, type TransferredTable } from './tables.ts'

/** Enough to amortize the round trip, and little memory for a slow client. */
const ROWS_PER_FETCH = 500

export interface ExportOptions {
  /** A client with a single connection, which the export closes. */
  readonly connect: () => Sql
  readonly schemaVersion: number
  /** Milliseconds that a client may read nothing, after which Postgres ends the snapshot. */
  readonly idleTimeoutMs: number
}

const toLine = (line: ExportLine): string => `${JSON.stringify(line)}\n`

/** Postgres writes the JSON, so that no value passes through a JavaScript number. */
const selectLines = ({ name, order, where }: TransferredTable): string => `
  select '{"type":"row","table":"${name}","row":' || to_jsonb(t)::text || '}' as line
  from ${name} t ${where === undefined ? '' : `where ${where}`} order by ${order}`

/**
 * The lines of an export, in parts of several lines. All rows are of one snapshot. Sequences are read after it, so that
 * none is behind a row.
 */
export async function* exportLines({ connect, schemaVersion, idleTimeoutMs }: ExportOptions): AsyncGenerator<string> {
  const sql = connect()
  let rowCount = 0
  try {
    await sql.unsafe(`
      begin isolation level repeatable read, read only;
      set local idle_in_transaction_session_timeout = ${idleTimeoutMs};
      set local statement_timeout = 0;
      set local timezone = 'UTC'`)
    yield toLine({ type: 'header', format: 'pool-allocation-export', version: 1, schema: schemaVersion })
    for (const table of TRANSFERRED_TABLES) {
      await sql.unsafe(`declare exported no scroll cursor for ${selectLines(table)}`)
      for (;;) {
        const rows = await sql.unsafe<{ line: string }[]>(`fetch ${ROWS_PER_FETCH} from exported`)
        rowCount += rows.length
        if (rows.length > 0) yield rows.map(({ line }) => `${line}\n`).join('')
        if (rows.length < ROWS_PER_FETCH) break
      }
      await sql.unsafe('close exported')
    }
    const sequences = await sql<{ name: string; value: number }[]>`
      select s.sequencename as name, coalesce(s.last_value, 0) as value
      from pg_sequences s where s.schemaname = current_schema() order by name`
    yield sequences.map(({ name, value }) => toLine({ type: 'sequence', name, value })).join('')
    yield toLine({ type: 'end', rows: rowCount })
  } finally {
    // It also ends the transaction.
    await sql.end({ timeout: 0 })
  }
}

import type { Sql } from '@pool/database/client'
import { labelSql } from '../labels.ts'
import { type ListRead, readList } from '../load/read-list.ts'
import { readMemory, resetPeak } from '../memory.ts'
import { megabytes, spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import { targetOf, targetTable } from '../report/target.ts'
import type { Section } from '../section.ts'
import { type Spread, spreadOf } from '../statistics.ts'
import { POOL } from './standard.ts'

/** A list takes seconds: more rounds of it would say little more. */
const MOST_ROUNDS = 3
/** Megabytes above idle, however long the list is. */
const ABOVE_IDLE = 80

/** Half of the rows reserved, half active with their records applied. */
const seed = async (sql: Sql, rows: number): Promise<void> => {
  await sql.unsafe(
    `insert into pool_allocations
       (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by, sovereign_fqdn,
        load_balancer_ip, committed_at)
     select $1, label, case when active then 'active' else 'reserved' end, now(),
       case when not active then now() + interval '1 day' end, gen_random_uuid(), 'bench',
       case when active then label || '.' || $1 end, case when active then '203.0.113.10'::inet end,
       case when active then now() end
     from (select ${labelSql('n')} as label, n % 2 = 0 as active from generate_series(0::bigint, $2::bigint - 1) n) made`,
    [POOL, rows],
  )
  await sql`
    insert into dns_names (zone, subdomain, version, desired, changed_at, applied_version, next_attempt_at)
    select pool_domain, subdomain, 1, '[]', now(), 1, now() from pool_allocations where state = 'active'`
  await sql`vacuum analyze pool_allocations`
  await sql`vacuum analyze dns_names`
}

const NOTES = [
  'The whole pool in one answer, read as it comes and not kept. Memory is that of the API process (resident set): idle',
  'before the first list, and the peak during each. Half of the rows are active, each with its DNS state.',
].join('\n')

export const listSection: Section = {
  name: 'list',
  title: 'GET list of a large pool',
  on: 'postgres',
  async run({ stage, options, say }) {
    await using database = await stage.database()
    say(`list: writing ${options.rows} rows`)
    await seed(database.sql, options.rows)
    await using api = await stage.api(database)
    const idle = await readMemory(api.pid)
    const reads: ListRead[] = []
    const peaks: number[] = []
    const faults: string[] = []
    const rounds = Math.min(options.rounds, MOST_ROUNDS)
    for (let round = 1; round <= rounds; round += 1) {
      say(`list: round ${round} of ${rounds}`)
      await resetPeak(api.pid)
      const read = await readList(`http://127.0.0.1:${api.port}/api/v1/pool/${POOL}/list`)
      const memory = await readMemory(api.pid)
      reads.push(read)
      if (memory) peaks.push(memory.peakBytes)
      if (read.status !== 200) faults.push(`list: status ${read.status}`)
      if (read.brokenOff) faults.push(`list: broken off after ${read.rows} rows: ${read.brokenOff}`)
      else if (read.rows !== options.rows) faults.push(`list: ${read.rows} rows of ${options.rows}`)
    }

    const of = (field: 'firstByteMs' | 'totalMs' | 'bytes') => spreadOf(reads.map(read => read[field]))
    const [firstByteMs, totalMs, bytes] = [of('firstByteMs'), of('totalMs'), of('bytes')]
    const peak: Spread | null = peaks.length > 0 ? spreadOf(peaks) : null
    const aboveIdle = peak && idle ? peak.max - idle.residentBytes : null
    const unknown = 'unknown: needs Linux'
    const table: Table = {
      columns: [
        { title: `list of ${options.rows} rows`, align: 'left' },
        { title: 'median (min–max)', align: 'right' },
      ],
      rows: [
        ['first byte, ms', spread(firstByteMs)],
        ['total, ms', spread(totalMs)],
        ['size', megabytes(bytes.median)],
        ['memory idle', idle ? megabytes(idle.residentBytes) : unknown],
        ['memory at its peak, highest round', peak ? megabytes(peak.max) : unknown],
        ['above idle', aboveIdle === null ? unknown : megabytes(aboveIdle)],
      ],
    }
    const above = aboveIdle === null ? null : aboveIdle / 1e6
    const targets = [
      targetOf(
        `list of ${options.rows} rows`,
        'MB above idle, highest round,',
        'at most',
        ABOVE_IDLE,
        above === null ? null : spreadOf([above]),
      ),
    ]
    const figures = {
      rows: options.rows,
      rounds,
      firstByteMs,
      totalMs,
      bytes: bytes.median,
      idleBytes: idle?.residentBytes ?? null,
      peakBytes: peak,
      aboveIdleBytes: aboveIdle,
      targets,
    }
    return { notes: [NOTES], tables: [table, targetTable('target', targets)], figures, faults }
  },
}

import { readMemory, resetPeak } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import { left, right, spreadText, toFigure, toMegabytes, toSpread } from '../../shared/figures.ts'
import type { Database } from '../environment/environment.ts'
import { POOL, toLabelSql } from '../environment/names.ts'
import type { Section } from '../section.ts'

/** A list takes seconds: more rounds would add little. */
const MAX_ROUNDS = 3
/** Each row of the list starts with it, as the document itself does. */
const ROW = '{"poolDomain":'

/** Half of the rows are reserved, half are active with their records applied. */
const insertPool = async ({ sql }: Database, rows: number): Promise<void> => {
  await sql.unsafe(
    `insert into pool_allocations
       (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by, sovereign_fqdn,
        load_balancer_ip, committed_at)
     select $1, label, case when active then 'active' else 'reserved' end, now(),
       case when not active then now() + interval '1 day' end, sha256(gen_random_uuid()::text::bytea), 'bench',
       case when active then label || '.' || $1 end, case when active then '203.0.113.10'::inet end,
       case when active then now() end
     from (select ${toLabelSql('n')} as label, n % 2 = 0 as active
           from generate_series(0::bigint, $2::bigint - 1) n) numbered`,
    [POOL, rows],
  )
  await sql`
    insert into dns_names (zone, subdomain, version, desired, changed_at, applied_version, next_attempt_at)
    select pool_domain, subdomain, 1, '[]', now(), 1, now() from pool_allocations where state = 'active'`
  await sql`vacuum analyze pool_allocations`
  await sql`vacuum analyze dns_names`
}

interface ListRead {
  /** Milliseconds from the request to the first byte of the body, and to the last one. */
  readonly firstByteMs: number
  readonly totalMs: number
  readonly bytes: number
  readonly rows: number
}

/** Reads a list to its end without keeping it. Throws if it is truncated. */
const readList = async (url: string): Promise<ListRead> => {
  const started = performance.now()
  const response = await fetch(url)
  if (response.status !== 200 || !response.body) throw new Error(`status ${response.status}`)
  let firstByteMs = Number.NaN
  let bytes = 0
  let starts = 0
  let tail = ''
  for await (const chunk of response.body) {
    if (bytes === 0) firstByteMs = performance.now() - started
    bytes += chunk.length
    // The tail is too short for a match of its own.
    const text = tail + Buffer.from(chunk).toString('latin1')
    starts += text.split(ROW).length - 1
    tail = text.slice(1 - ROW.length)
  }
  return { firstByteMs, totalMs: performance.now() - started, bytes, rows: starts - 1 }
}

export const listSection: Section = {
  name: 'list',
  title: 'GET list of a large pool',
  note: [
    'The whole pool in one response, which the client reads without keeping it. Memory is the resident set of the API process:',
    'idle before the first list, and the peak during each. Half of the rows are active, each with its DNS state.',
  ].join('\n'),
  comparesWith: 'nothing',
  async run({ environment, options }) {
    await using database = await environment.createSchema()
    progress(`list: inserting ${options.rows} rows`)
    await insertPool(database, options.rows)
    await using api = await environment.startApi(database.url)
    const idle = readMemory(api.pid)?.residentBytes ?? Number.NaN
    const reads: ListRead[] = []
    const peaks: number[] = []
    const rounds = Math.min(options.rounds, MAX_ROUNDS)
    for (let round = 1; round <= rounds; round += 1) {
      progress(`list: round ${round} of ${rounds}`)
      await resetPeak(api.pid)
      reads.push(await readList(`http://127.0.0.1:${api.port}/api/v1/pool/${POOL}/list`))
      peaks.push(readMemory(api.pid)?.peakBytes ?? Number.NaN)
    }
    const spread = (field: keyof ListRead) => toSpread(reads.map(read => read[field]))
    const peak = toSpread(peaks).max
    return {
      tables: [
        {
          columns: [left(`list of ${options.rows} rows`), right('median (min–max)')],
          rows: [
            ['first byte, ms', spreadText(spread('firstByteMs'))],
            ['total, ms', spreadText(spread('totalMs'))],
            ['rows per second', toFigure((options.rows / spread('totalMs').median) * 1_000)],
            ['size', toMegabytes(spread('bytes').median)],
            ['memory idle', toMegabytes(idle)],
            ['memory peak, highest round', toMegabytes(peak)],
            ['above idle', toMegabytes(peak - idle)],
          ],
        },
      ],
      errors: reads.filter(({ rows }) => rows !== options.rows).map(({ rows }) => `${rows} rows of ${options.rows}`),
    }
  },
}

import { createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import type { Database } from '../environment/cluster.ts'
import type { Service } from '../environment/service.ts'
import { labelOf, labelSql } from '../labels.ts'
import { type Run, runOnce } from '../load/compare.ts'
import { readList } from '../load/read-list.ts'
import { openHttpCrew, type Subject } from '../load/subject.ts'
import { readMemory, resetPeak } from '../memory.ts'
import type { SectionContext } from '../section.ts'
import { checkTask, reserveTask } from './requests.ts'
import { seedPool } from './size-seed.ts'
import { POOL } from './standard.ts'

/** Rows that one statement of the sweeper takes here. */
const BATCH = 1_000
/** A list of more rows is left there: what its rows cost is known by then. */
export const LISTED = 50_000
/** A short list is read again and again until it has been so many rows. */
const LISTED_AT_LEAST = 10_000
/** What a round adds would make a small pool another one: it is taken away again. In a larger one it is a hundredth. */
const BROUGHT_BACK = 100_000
/** Far beyond any seeded name, in the same order. */
const NEVER_TAKEN = 2 ** 31

export interface ListPlay {
  readonly msPer1000: number
  /** The most that was resident above what was before; null: unknown. */
  readonly aboveBytes: number | null
}

/** A pool of one size, its API, and what can be asked of it. */
export interface Play extends AsyncDisposable {
  readonly rows: number
  readonly seededInMs: number
  readonly bytes: number
  readonly check: (connections: number, seconds: number) => Promise<Run>
  readonly reserve: (connections: number, seconds: number) => Promise<Run>
  /** Milliseconds for a batch of a thousand expired rows, by the sweeper's statement. */
  readonly sweep: () => Promise<number>
  readonly list: () => Promise<ListPlay>
  /** Milliseconds for a scrape; null: it came without the counts of rows. */
  readonly scrape: () => Promise<number | null>
}

const chosen = (rows: number) => Math.floor(Math.random() * rows)

const subjectOf = (name: string, { port }: Service, next: () => ReturnType<typeof checkTask>): Subject => ({
  name,
  open: callers => openHttpCrew(port, callers, next),
})

/** Makes a small pool what it was: no row that a round has added, and nothing of those that it has removed. */
const createBringBack = async ({ sql }: Database, rows: number): Promise<() => Promise<void>> => {
  const [last] = await sql<{ id: number }[]>`select coalesce(max(id), 0) as id from allocation_history`
  const id = last?.id ?? 0
  return async () => {
    if (rows > BROUGHT_BACK) return
    await sql.begin(async tx => {
      // The history refuses it to everybody else.
      await tx`set local session_replication_role = replica`
      await tx`
        delete from pool_allocations a using allocation_history h
        where h.id > ${id} and a.pool_domain = h.pool_domain and a.subdomain = h.subdomain`
      await tx`delete from allocation_history where id > ${id}`
    })
    await sql`vacuum pool_allocations`
    await sql`vacuum allocation_history`
  }
}

const openPlay = async (
  rows: number,
  database: Database,
  api: Service,
  seededInMs: number,
): Promise<Omit<Play, typeof Symbol.asyncDispose>> => {
  const { sql } = database
  const [size] = await sql<{ bytes: number }[]>`select pg_database_size(current_database()) as bytes`
  const bringBack = await createBringBack(database, rows)
  const store = createAllocationRepository(sql, { timeoutMs: 60_000 })
  let names = rows
  let turns = 0
  const checks = subjectOf('check', api, () => {
    const n = chosen(rows)
    return turns++ % 2 === 0
      ? checkTask(labelOf(n), n % 2 === 0 ? 'active' : 'reserved')
      : checkTask(labelOf(NEVER_TAKEN + n))
  })
  const reserves = subjectOf('reserve', api, () => reserveTask(labelOf(names++)))
  const base = `http://127.0.0.1:${api.port}`
  return {
    rows,
    seededInMs,
    bytes: size?.bytes ?? Number.NaN,
    check: (connections, seconds) => runOnce(checks, connections, seconds),
    reserve: async (connections, seconds) => {
      const run = await runOnce(reserves, connections, seconds)
      await bringBack()
      return run
    },
    async sweep() {
      await sql.unsafe(
        `insert into pool_allocations
           (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
         select $1, ${labelSql('n')}, 'reserved', now() - interval '2 hours', now() - interval '1 hour',
           gen_random_uuid(), 'bench'
         from generate_series($2::bigint, $2::bigint + ${BATCH - 1}) n`,
        [POOL, names],
      )
      names += BATCH
      const started = performance.now()
      const deleted = await store.deleteExpired(BATCH)
      const took = performance.now() - started
      if (deleted !== BATCH) throw new Error(`swept ${deleted} of ${BATCH} rows`)
      await bringBack()
      return took
    },
    async list() {
      await resetPeak(api.pid)
      const before = await readMemory(api.pid)
      let [totalMs, listed] = [0, 0]
      // Of a single page the request itself would be most of the cost.
      while (listed < LISTED_AT_LEAST) {
        const read = await readList(`${base}/api/v1/pool/${POOL}/list`, LISTED)
        if (read.status !== 200 || read.rows < Math.min(rows, LISTED)) throw new Error(`a list of ${read.rows} rows`)
        totalMs += read.totalMs
        listed += read.rows
      }
      const after = await readMemory(api.pid)
      return {
        msPer1000: (totalMs * 1_000) / listed,
        aboveBytes: before && after ? after.peakBytes - before.residentBytes : null,
      }
    },
    async scrape() {
      const started = performance.now()
      const text = await fetch(`${base}/metrics`).then(response => response.text())
      return text.includes('\npdm_allocations{') ? performance.now() - started : null
    },
  }
}

/** With the API's own defaults, but that it sweeps nothing by itself. */
export const startPlay = async ({ stage, say }: SectionContext, rows: number): Promise<Play> => {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await stage.database())
  say(`size: writing ${rows} rows`)
  const started = performance.now()
  await seedPool(database.sql, rows)
  const seededInMs = performance.now() - started
  const api = opened.use(await stage.api(database, { PDM_SWEEPER_INTERVAL: '24h' }))
  const play = await openPlay(rows, database, api, seededInMs)
  const kept = opened.move()
  return { ...play, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

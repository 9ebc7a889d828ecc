import type { Overview, OverviewQuery } from '@pool/contract'
import { SAMPLE_RETENTION_MINUTES } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import { type CounterSample, createGrid, sumSeries, toRateSeries } from './domain/series.ts'

/** What a process stores of itself. */
export interface ReplicaSample extends Omit<CounterSample, 'at'> {
  readonly isReady: boolean
  readonly circuitOpen: boolean
  readonly activeRuns: number
  readonly pendingNames: number
  readonly failingNames: number
}

export interface PoolCount {
  readonly poolDomain: string
  readonly state: string
  readonly count: number
}

export interface SamplesOptions {
  /** Of this process. */
  readonly replica: { readonly id: string; readonly version: string; readonly nodeVersion: string }
  readonly timeoutMs: number
}

interface ReplicaRow {
  readonly id: string
  readonly version: string
  readonly nodeVersion: string
  readonly startedAt: Date
  readonly lastSeenAt: Date
  readonly isReady: boolean
  readonly circuitOpen: boolean
}

interface SampleRow extends CounterSample {
  readonly replicaId: string
  readonly point: number
  readonly activeRuns: number
  readonly pendingNames: number
  readonly failingNames: number
}

interface PoolRow {
  readonly poolDomain: string
  readonly point: number
  readonly reserved: number
  readonly active: number
  readonly coolingOff: number
  readonly held: number
}

/** A pool is counted once a minute at most; a count stands for this long. */
const POOL_COUNT_SECONDS = 90

const toUnixTime = (at: Date): number => at.getTime() / 1_000

export type Samples = ReturnType<typeof createSamples>

/** Samples of the metrics of every replica, for the plots of the console. */
export const createSamples = (sql: Sql, { replica, timeoutMs }: SamplesOptions) => {
  const { now, milliseconds } = timeSql(sql)
  const oldest = sql`${now} - ${milliseconds(SAMPLE_RETENTION_MINUTES * 60_000)}`

  const deleteBefore = async (table: 'replica_samples' | 'pool_samples', limit: number): Promise<boolean> => {
    const deleted = await withTimeout(
      sql`
        delete from ${sql(table)} where ctid = any (array(
          select ctid from ${sql(table)} where at < ${oldest} order by at limit ${limit} for update skip locked))`,
      timeoutMs,
    )
    return deleted.count === limit
  }

  const listReplicas = (seconds: number) =>
    withTimeout(
      sql<ReplicaRow[]>`
        select id, version, node_version as "nodeVersion", started_at as "startedAt", last_seen_at as "lastSeenAt",
          is_ready as "isReady", circuit_open as "circuitOpen"
        from replicas where last_seen_at > ${now} - ${milliseconds(seconds * 1_000)} order by started_at, id`,
      timeoutMs,
    )

  /** The last sample of each replica in each interval. Point 0 is the interval before the first one. */
  const listSamples = (times: readonly number[], stepSeconds: number) =>
    withTimeout(
      sql<SampleRow[]>`
        select r.id as "replicaId", t.point::int, extract(epoch from s.at)::float8 as at, s.requests::float8, s.errors::float8,
          s.request_ms as "requestMs", s.event_loop_ms as "eventLoopMs", s.active_runs as "activeRuns",
          s.pending_names as "pendingNames", s.failing_names as "failingNames"
        from (
            select point, to_timestamp(until::float8) as until, ${milliseconds(stepSeconds * 1_000)} as step
            from jsonb_array_elements_text(${sql.json([(times[0] ?? 0) - stepSeconds, ...times])})
              with ordinality as input (until, point)
          ) t
          join replicas r on t.until >= r.started_at and t.until - t.step <= r.last_seen_at
          cross join lateral (
            select * from replica_samples s
            where s.replica_id = r.id and s.at > t.until - t.step and s.at <= t.until order by s.at desc limit 1
          ) s
        order by t.point`,
      timeoutMs,
    )

  const listPools = (times: readonly number[], stepSeconds: number) =>
    withTimeout(
      sql<PoolRow[]>`
        select p.pool_domain as "poolDomain", t.point::int, s.reserved, s.active, s.cooling_off as "coolingOff", s.held
        from (
            select point, to_timestamp(until::float8) as until,
              ${milliseconds(Math.max(stepSeconds, POOL_COUNT_SECONDS) * 1_000)} as step
            from jsonb_array_elements_text(${sql.json([...times])}) with ordinality as input (until, point)
          ) t
          cross join (
            select distinct pool_domain from pool_samples where at > ${now} - ${milliseconds(3_600_000)}
          ) p
          cross join lateral (
            select * from pool_samples s
            where s.pool_domain = p.pool_domain and s.at > t.until - t.step and s.at <= t.until order by s.at desc limit 1
          ) s
        order by p.pool_domain, t.point`,
      timeoutMs,
    )

  return {
    /** Stores a sample of this process. */
    async add({ isReady, circuitOpen, ...sample }: ReplicaSample): Promise<void> {
      await withTimeout(
        sql`
          with seen as (
            insert into replicas as r (id, version, node_version, started_at, last_seen_at, is_ready, circuit_open)
            values (${replica.id}, ${replica.version}, ${replica.nodeVersion},
              ${now} - ${milliseconds(performance.now())}, ${now}, ${isReady}, ${circuitOpen})
            on conflict (id) do update set last_seen_at = excluded.last_seen_at, is_ready = excluded.is_ready,
              circuit_open = excluded.circuit_open
            returning id
          )
          insert into replica_samples (replica_id, at, requests, errors, request_ms, event_loop_ms, active_runs,
            pending_names, failing_names)
          select id, ${now}, ${sample.requests}, ${sample.errors}, ${sample.requestMs}::float8,
            ${sample.eventLoopMs}::float8, ${sample.activeRuns}, ${sample.pendingNames}, ${sample.failingNames} from seen
          on conflict do nothing`,
        timeoutMs,
      )
    },

    /** Stores the counts of this minute, unless a replica has done so. `count` reads every row. */
    async addPools(count: () => Promise<readonly PoolCount[]>): Promise<void> {
      const minute = sql`date_trunc('minute', ${now})`
      const existing = await withTimeout(sql`select from pool_samples where at = ${minute} limit 1`, timeoutMs)
      if (existing.length > 0) return
      const counts = await count()
      const rows = Array.from(
        Map.groupBy(counts, ({ poolDomain }) => poolDomain),
        ([pool, states]) => {
          const find = (state: string) => states.find(entry => entry.state === state)?.count ?? 0
          return {
            pool,
            reserved: find('reserved'),
            active: find('active'),
            cooling: find('cooling-off'),
            held: find('held'),
          }
        },
      )
      await withTimeout(
        sql`
          insert into pool_samples (pool_domain, at, reserved, active, cooling_off, held)
          select pool, ${minute}, reserved, active, cooling, held
          from jsonb_to_recordset(${sql.json(rows)}) as item (pool text, reserved int, active int, cooling int, held int)
          on conflict do nothing`,
        timeoutMs,
      )
    },

    async readOverview({ minutes, points }: OverviewQuery): Promise<Overview> {
      const [clock] = await withTimeout(
        sql<{ now: number }[]>`select extract(epoch from ${now})::float8 as now`,
        timeoutMs,
      )
      const { times, stepSeconds } = createGrid(clock?.now ?? 0, minutes, points)
      const [replicas, samples, pools] = await Promise.all([
        listReplicas(minutes * 60),
        listSamples(times, stepSeconds),
        listPools(times, stepSeconds),
      ])
      const byReplica = Map.groupBy(samples, sample => sample.replicaId)
      const rates = replicas.map(({ id, startedAt }) => {
        const byPoint = new Map(byReplica.get(id)?.map(sample => [sample.point, sample]))
        const aligned = Array.from({ length: times.length + 1 }, (_, i) => byPoint.get(i + 1) ?? null)
        return { aligned: aligned.slice(1), series: toRateSeries(toUnixTime(startedAt), aligned) }
      })
      const sumRates = (read: (at: NonNullable<(typeof rates)[number]['series'][number]>) => number) =>
        sumSeries(
          times.length,
          rates.map(({ series }) => series.map(at => at && read(at))),
        )
      const perSecond = sumRates(at => at.requestsPerSecond)
      const busyMs = sumRates(at => at.requestsPerSecond * (at.meanMilliseconds ?? 0))
      /** Every replica reads them from the same tables. */
      const maximum = (field: 'pendingNames' | 'failingNames') =>
        times.map((_, i) => {
          const values = rates.flatMap(({ aligned }) => aligned[i]?.[field] ?? [])
          return values.length === 0 ? null : Math.max(...values)
        })
      return {
        times: [...times],
        stepSeconds,
        pools: Array.from(
          Map.groupBy(pools, row => row.poolDomain),
          ([poolDomain, rows]) => {
            const byPoint = new Map(rows.map(row => [row.point, row]))
            const toSeries = (field: 'reserved' | 'active' | 'coolingOff' | 'held') =>
              times.map((_, i) => byPoint.get(i + 1)?.[field] ?? null)
            return {
              poolDomain,
              reserved: toSeries('reserved'),
              active: toSeries('active'),
              coolingOff: toSeries('coolingOff'),
              held: toSeries('held'),
            }
          },
        ),
        requests: {
          perSecond: [...perSecond],
          errorsPerSecond: [...sumRates(at => at.errorsPerSecond)],
          meanMilliseconds: perSecond.map((count, i) => (count ? (busyMs[i] ?? 0) / count : null)),
        },
        dns: { pendingNames: maximum('pendingNames'), failingNames: maximum('failingNames') },
        deployments: {
          active: [
            ...sumSeries(
              times.length,
              rates.map(({ aligned }) => aligned.map(at => at?.activeRuns ?? null)),
            ),
          ],
        },
        replicas: replicas.map(({ startedAt, lastSeenAt, nodeVersion, ...row }, i) => ({
          ...row,
          node: nodeVersion,
          startedAt: startedAt.toISOString(),
          lastSeenAt: lastSeenAt.toISOString(),
          requestsPerSecond: (rates[i]?.series ?? []).map(at => at?.requestsPerSecond ?? null),
          eventLoopUtilization: (rates[i]?.series ?? []).map(at => at?.eventLoopUtilization ?? null),
        })),
      }
    },

    /** Deletes up to `limit` rows of each kind that are older than the retention. Returns whether there may be more. */
    async deleteOld(limit: number): Promise<boolean> {
      const [hasSamples, hasPools] = [
        await deleteBefore('replica_samples', limit),
        await deleteBefore('pool_samples', limit),
      ]
      await withTimeout(sql`delete from replicas where last_seen_at < ${oldest}`, timeoutMs)
      return hasSamples || hasPools
    },
  }
}

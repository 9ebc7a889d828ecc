import { randomUUID } from 'node:crypto'
import { SAMPLE_RETENTION_MINUTES } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { createAllocationReader } from 'allocation-api/src/allocation/reader.ts'
import { DELETE_BATCH_SIZE } from 'allocation-api/src/lib/delete-in-batches.ts'
import { SAMPLE_INTERVAL_S } from 'allocation-api/src/operator/domain/series.ts'
import { createSamples, type ReplicaSample } from 'allocation-api/src/operator/samples.ts'
import { progress } from '../../shared/cli.ts'
import { percentile, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure, toMegabytes } from '../../shared/table.ts'
import { insertNames, POOLS } from '../environment/seed.ts'
import { goalTable, type Section, type SectionResult, toGoal } from '../report.ts'

const REPLICAS = 3
const TIMEOUT_MS = 60_000
/** Samples that are stored in one round. */
const ADDED = 100
/** Autovacuum removes deleted rows when they are a fifth of the table: until then, a week and a fifth of it take space. */
const RETENTIONS_BEFORE_VACUUM = 1.2
/** Milliseconds of each process every ten seconds, and megabytes for each replica that runs all the time. */
const GOALS = { addMs: 10, megabytesPerReplica: 16 }

const SAMPLE: ReplicaSample = {
  requests: 1_000_000,
  errors: 1_000,
  requestMs: 5_000_000,
  eventLoopMs: 1_000_000,
  isReady: true,
  circuitOpen: false,
  activeRuns: 1,
  pendingNames: 1,
  failingNames: 1,
}

const NOTE = [
  `The samples of ${REPLICAS} replicas, one every ${SAMPLE_INTERVAL_S} s each, and the counts of ${POOLS.length} pools, one a minute for all replicas, for a`,
  'week: through the driver, without HTTP. Every insert is its own transaction. Count: what one replica runs once a minute; it',
  `reads every name. Deletion: of the rows of a fifth of a week, ${DELETE_BATCH_SIZE} per statement.`,
].join('\n')

/** Samples that are up to `minutes` old, in the order in which replicas store them. */
const insertSamples = async (sql: Sql, replicas: readonly string[], minutes: number): Promise<void> => {
  await sql`
    insert into replicas (id, version, node_version, started_at, last_seen_at, is_ready, circuit_open)
    select id::uuid, '1.0.0', 'v24', now() - ${minutes}::float8 * interval '1 min', now(), true, false
    from string_to_table(${replicas.join(' ')}, ' ') id`
  await sql`
    insert into replica_samples
    select id::uuid, now() - step * ${SAMPLE_INTERVAL_S}::int * interval '1 s', 1e9 - step, 1e6 - step, 1e9 - step, 1e8 - step, 1, 1, 1
    from generate_series(${Math.floor((minutes * 60) / SAMPLE_INTERVAL_S)}::int, 1, -1) step,
      string_to_table(${replicas.join(' ')}, ' ') id`
  await sql`
    insert into pool_samples
    select pool, date_trunc('minute', now()) - step * interval '1 min', 1000, 1000, 100, 10
    from generate_series(${Math.floor(minutes)}::int, 1, -1) step, string_to_table(${POOLS.join(' ')}, ' ') pool`
}

interface Sizes {
  readonly replicaRows: number
  readonly replicaBytes: number
  readonly poolRows: number
  readonly poolBytes: number
}

const readSizes = async (sql: Sql): Promise<Sizes> => {
  const [row] = await sql<Sizes[]>`
    select (select count(*)::int from replica_samples) as "replicaRows", (select count(*)::int from pool_samples) as "poolRows",
      pg_total_relation_size('replica_samples')::float8 as "replicaBytes", pg_total_relation_size('pool_samples')::float8 as "poolBytes"`
  if (!row) throw new Error('no sizes')
  return row
}

const timeEach = async (count: number, work: () => Promise<unknown>): Promise<number[]> => {
  const times: number[] = []
  for (let i = 0; i < count; i += 1) {
    const startedAt = performance.now()
    await work()
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)
}

export const samplesSection: Section = {
  name: 'samples',
  title: 'the samples behind the plots of the overview',
  needs: 'postgres',
  async run({ environment, options }): Promise<SectionResult> {
    const { rows, rounds } = options
    await using names = await environment.createSchema()
    progress(`samples: inserting ${rows} names`)
    await insertNames(names.sql, rows)
    const { countByState } = createAllocationReader(names.sql, { timeoutMs: TIMEOUT_MS })
    const ids = Array.from({ length: REPLICAS }, () => randomUUID())
    const open = (sql: Sql) =>
      createSamples(sql, { replica: { id: ids[0] ?? '', version: '1.0.0', nodeVersion: 'v24' }, timeoutMs: TIMEOUT_MS })

    await using week = await environment.createSchema()
    await insertSamples(week.sql, ids, SAMPLE_RETENTION_MINUTES)
    await week.sql`analyze replica_samples`
    const samples = open(week.sql)
    const sizes = await readSizes(week.sql)
    const readWal = async () => {
      const [row] = await week.sql<
        { bytes: number }[]
      >`select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes`
      return row?.bytes ?? 0
    }
    // The first write to each page after a checkpoint copies the page into the WAL.
    await timeEach(ADDED, () => samples.add(SAMPLE))
    const measure = async () => {
      const before = await readWal()
      const add = await timeEach(ADDED, () => samples.add(SAMPLE))
      const walBytes = ((await readWal()) - before) / ADDED
      const [countMs = Number.NaN] = await timeEach(1, countByState)
      const hour = await timeEach(5, () => samples.readOverview({ minutes: 60, points: 120 }))
      const all = await timeEach(5, () => samples.readOverview({ minutes: SAMPLE_RETENTION_MINUTES, points: 120 }))
      return {
        addMs: percentile(add, 50),
        addP99Ms: percentile(add, 99),
        walBytes,
        countMs,
        hourMs: percentile(hour, 50),
        weekMs: percentile(all, 50),
      }
    }
    const rates: Awaited<ReturnType<typeof measure>>[] = []
    for (let round = 1; round <= rounds; round += 1) {
      progress(`samples: round ${round} of ${rounds}`)
      rates.push(await measure())
    }
    const spread = (field: keyof (typeof rates)[number]) => toSpread(rates.map(rate => rate[field]))

    await using old = await environment.createSchema()
    await insertSamples(old.sql, ids, SAMPLE_RETENTION_MINUTES * RETENTIONS_BEFORE_VACUUM)
    await old.sql`analyze replica_samples`
    const largest = await readSizes(old.sql)
    const cleaned = open(old.sql)
    const batches: number[] = []
    for (let hasMore = true; hasMore; ) {
      const startedAt = performance.now()
      hasMore = await cleaned.deleteOld(DELETE_BATCH_SIZE)
      batches.push(performance.now() - startedAt)
    }
    batches.sort((a, b) => a - b)
    const afterDeletion = await readSizes(old.sql)

    const figures = {
      addMs: spread('addMs'),
      addP99Ms: spread('addP99Ms'),
      walBytesPerSample: spread('walBytes'),
      countMs: spread('countMs'),
      overviewOfAnHourMs: spread('hourMs'),
      overviewOfAWeekMs: spread('weekMs'),
      week: sizes,
      beforeVacuum: largest,
      afterDeletion,
      deletion: {
        batches: batches.length,
        medianMs: percentile(batches, 50),
        p99Ms: percentile(batches, 99),
        totalMs: batches.reduce((sum, ms) => sum + ms, 0),
      },
    }
    const table: Table = {
      columns: [left('samples'), right('median (min–max)')],
      rows: [
        ['one sample, ms', spreadText(figures.addMs)],
        ['one sample, p99 ms', spreadText(figures.addP99Ms)],
        ['one sample, WAL bytes', spreadText(figures.walBytesPerSample)],
        [`one count of ${rows} names, ms`, spreadText(figures.countMs)],
        ['overview of an hour, ms', spreadText(figures.overviewOfAnHourMs)],
        ['overview of a week, ms', spreadText(figures.overviewOfAWeekMs)],
        [
          'deletion, ms per statement',
          `${toFigure(figures.deletion.medianMs)}, p99 ${toFigure(figures.deletion.p99Ms)}`,
        ],
        ['deletion, all, ms', `${toFigure(figures.deletion.totalMs)} in ${figures.deletion.batches} statements`],
      ],
    }
    const sizeTable: Table = {
      columns: [left('tables with their indexes'), ...['rows of replicas', 'size', 'rows of pools', 'size'].map(right)],
      rows: (
        [
          ['a week', sizes],
          ['a week and a fifth, before the deletion', largest],
          ['after the deletion, before a vacuum', afterDeletion],
        ] as const
      ).map(([name, { replicaRows, replicaBytes, poolRows, poolBytes }]) => [
        name,
        toFigure(replicaRows),
        toMegabytes(replicaBytes),
        toFigure(poolRows),
        toMegabytes(poolBytes),
      ]),
    }
    const goals = [
      toGoal('one sample', 'ms', 'at most', GOALS.addMs, figures.addMs),
      toGoal(
        'a week of one replica',
        'MB',
        'at most',
        GOALS.megabytesPerReplica,
        toSpread([sizes.replicaBytes / 1e6 / REPLICAS]),
      ),
    ]
    return {
      notes: [NOTE],
      tables: [table, sizeTable, goalTable('goal', goals)],
      figures: { ...figures, goals },
      errors: [],
    }
  },
}

import { progress } from '../../shared/cli.ts'
import { left, right, type Table, toFigure, toMegabytes } from '../../shared/table.ts'
import type { Database } from '../environment/environment.ts'
import { insertNames, POOLS, reserveInSql } from '../environment/seed.ts'
import { type Comparison, compare, listErrors } from '../load/compare.ts'
import { pairTable, toComparedLoad } from '../load/pair.ts'
import type { Target } from '../load/target.ts'
import type { Section, SectionResult } from '../report.ts'
import { createCommitWorkload, createHttpTarget, createReserveWorkload } from '../workloads.ts'

/** The indexes that only the search of operators uses. */
const SEARCH_INDEXES = [
  'pool_allocations_address_idx',
  'pool_allocations_created_by_idx',
  'pool_allocations_reserved_idx',
  'pool_allocations_cool_off_idx',
  'pool_allocations_held_idx',
  'dns_names_unpublished_idx',
  'dns_names_failing_idx',
] as const

/** More than a run makes: the commits are of the names after these. */
const MAX_RESERVES = 100_000_000
const VIRTUAL_USERS = [1, 16, 64]
const SIDES = ['with', 'without'] as const

const NOTE = [
  'Two services over two databases with the same names, one of them without the indexes of the search, interleaved round by round;',
  'every other round runs in reverse order. Ratios are with / without, round by round: the geometric mean with its 95 % confidence',
  'interval. Below 1 for ops/s and above 1 for latencies is what the indexes cost.',
].join('\n')

export const indexesSection: Section = {
  name: 'indexes',
  title: 'what the indexes of the search cost a reserve and a commit',
  needs: 'postgres',
  async run({ environment, options }): Promise<SectionResult> {
    const { rows, seconds } = options
    progress(`indexes: inserting ${rows} names`)
    const withUrl = await (async () => {
      await using database = await environment.createSchema()
      await insertNames(database.sql, rows)
      return database.url
    })()
    const withoutUrl = await environment.copyDatabase(withUrl)
    await using stack = new AsyncDisposableStack()
    const withIndexes = stack.use(environment.connect(withUrl))
    const withoutIndexes = stack.use(environment.connect(withoutUrl))
    const relations = [...SEARCH_INDEXES, 'pool_allocations', 'pool_allocations_pkey', 'dns_names', 'dns_names_pkey']
    const sizes = await withIndexes.sql<{ name: string; bytes: number }[]>`
      select relname as name, pg_relation_size(oid)::float8 as bytes from pg_class
      where relname in ${withIndexes.sql(relations)}
      order by relname`
    for (const index of SEARCH_INDEXES) await withoutIndexes.sql.unsafe(`drop index ${index}`)

    const env = { DNSPROVIDER_MANAGED_DOMAINS: POOLS.join(','), PDM_DRIFT_INTERVAL: '24h' }
    const createTargets = async (name: (typeof SIDES)[number], { url, sql }: Database): Promise<readonly Target[]> => {
      const { port } = stack.use(await environment.startApi(url, env))
      return [
        createHttpTarget(name, port, createReserveWorkload(rows)),
        createHttpTarget(name, port, createCommitWorkload(reserveInSql(sql), seconds, rows + MAX_RESERVES)),
      ]
    }
    const sides = [await createTargets(SIDES[0], withIndexes), await createTargets(SIDES[1], withoutIndexes)]
    const loads = ['reserve', 'commit'].map((name, load) => ({
      name,
      targets: sides.flatMap(side => side[load] ?? []),
    }))
    const results: { readonly name: string; readonly comparisons: readonly Comparison[] }[] = []
    for (const { name, targets } of loads) {
      results.push({
        name,
        comparisons: await compare(targets, {
          name: `indexes, ${name}`,
          users: VIRTUAL_USERS,
          timing: options,
        }),
      })
    }
    const sizeTable: Table = {
      columns: [left(`size with ${rows} names`), right('MB'), right('bytes per name')],
      rows: sizes.map(({ name, bytes }) => [name, toMegabytes(bytes), toFigure(bytes / rows)]),
    }
    return {
      notes: [NOTE],
      tables: [...results.map(({ name, comparisons }) => pairTable(name, SIDES, comparisons)), sizeTable],
      figures: {
        rows,
        loads: results.map(({ name, comparisons }) => ({ name, ratios: comparisons.map(toComparedLoad) })),
        sizes,
      },
      errors: results.flatMap(({ name, comparisons }) =>
        comparisons.flatMap(comparison => listErrors(SIDES, `${name}, ${comparison.users} virtual users`, comparison)),
      ),
    }
  },
}

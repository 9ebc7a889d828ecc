import { progress } from '../../shared/cli.ts'
import { toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import { createDirectSql } from '../environment/direct-sql.ts'
import { type Reserve, reserveInSql } from '../environment/seed.ts'
import type { ServerCounts } from '../environment/server-counts.ts'
import { runClosedLoop } from '../load/closed-loop.ts'
import { type Comparison, type Load, loadTable, measureLoads, pickField } from '../load/compare.ts'
import { COST_NOTE, costTable, notCountedNote, summarizeCosts, toCostGoal } from '../load/cost.ts'
import { createLocalUsers, expectStatus, type ResponseError, type Target, type Task } from '../load/target.ts'
import { type Goal, goalTable, type Section, type SectionContext, type SectionResult, toGoal } from '../report.ts'
import {
  type Activate,
  commitOverHttp,
  createCheckWorkload,
  createCommitWorkload,
  createFloorTarget,
  createHttpTarget,
  createNotFoundWorkload,
  createReleaseWorkload,
  createReserveWorkload,
  type Workload,
} from '../workloads.ts'

/** One client, a busy replica, and more than the database connections can carry concurrently. */
const VIRTUAL_USERS = [1, 16, 64]
/** The load that the goals are about. */
const GOAL_USERS = 64
/** The largest p99 of a latency as a multiple of its median. */
const MAX_TAIL = 5

const API = 'API'
const SQL_ALONE = 'SQL alone'

const METHOD = [
  'Closed loop: each virtual user sends its next request when it has its response. Medians over the rounds (min–max).',
  'Ratios are calculated per round, API / this row: below 1 for ops/s and above 1 for latencies is what the API adds.',
  'SQL alone: the same statements through the driver, one request each, without HTTP, with as many callers and an equal',
  'connection pool; the API batches concurrent reserves and checks.',
].join('\n')

const COUNTS_NOTE = [
  'Counts of the server: another API on another database, whose statements the server logs, for one round per load. Of its figures',
  'those of a start and a stop without requests are subtracted. Statements: an upper bound of the round trips, because the driver can',
  'send several at once. WAL flushes: fsyncs of the write-ahead log by connections (pg_stat_io). The provider is `local`, whose zone',
  'is a table of the same database; the flush of each of its writes is among the flushes.',
].join('\n')

/** How a workload gets the rows that it needs. */
interface Seed {
  readonly reserve: Reserve
  readonly activate: Activate
}

/** A load on the API, and the statement that it executes. */
interface Subject<Item> {
  readonly name: string
  readonly createWorkload: (seed: Seed, seconds: number) => Promise<Workload<Item>> | Workload<Item>
  /** Absent: it executes none. */
  readonly toOperation?: (direct: ReturnType<typeof createDirectSql>) => (item: Item) => Promise<ResponseError>
}

/** With many virtual users: a share of the throughput of the bare statements, and no request that waits long. */
export const toApiGoals = (comparisons: readonly Comparison[], atLeast: number): readonly Goal[] => {
  const [api = [], sql = []] = comparisons.find(({ users }) => users === GOAL_USERS)?.runs ?? []
  const where = `${GOAL_USERS} virtual users`
  const throughput = toSpread(toRatios(pickField(api, 'perSecond'), pickField(sql, 'perSecond')))
  const tail = toSpread(toRatios(pickField(api, 'p99Ms'), pickField(api, 'p50Ms')))
  return [
    toGoal(where, 'ops/s, API / SQL alone,', 'at least', atLeast, throughput),
    toGoal(where, 'p99 / p50 of the API', 'at most', MAX_TAIL, tail),
  ]
}

/** So many seconds at least: the statements of timers, which differ from one start to the next, must be few beside those counted. */
const MIN_COUNTED_SECONDS = 0.5

/** What the server counts per request, for each load. */
const countPerRequest = async <Item>(
  { environment, options }: SectionContext,
  { name, createWorkload }: Subject<Item>,
) => {
  const url = await environment.createEmptySchema()
  const seconds = Math.max(options.seconds, MIN_COUNTED_SECONDS)
  const workload = await createWorkload(
    {
      // Nothing stays connected to the database.
      async reserve(from, count) {
        await using database = environment.connect(url)
        return await reserveInSql(database.sql)(from, count)
      },
      async activate(reservations) {
        await using api = await environment.startApi(url)
        await commitOverHttp(api.port)(reservations)
      },
    },
    seconds,
  )
  const idle = await environment.countServerWork(url, async () => {
    await using _ = await environment.startApi(url)
  })
  const counts: { users: number; perRequest: ServerCounts }[] = []
  for (const users of VIRTUAL_USERS) {
    progress(`${name}: ${users} virtual users, counting statements`)
    await workload.prepare?.()
    let operations = 0
    const work = await environment.countServerWork(url, async () => {
      await using api = await environment.startApi(url)
      using opened = await createHttpTarget(API, api.port, workload).open(users)
      operations = (await runClosedLoop(opened.users, seconds)).operations
    })
    const perRequest = (field: keyof ServerCounts) => (work[field] - idle[field]) / operations
    counts.push({
      users,
      perRequest: {
        statements: perRequest('statements'),
        providerStatements: perRequest('providerStatements'),
        walFlushes: perRequest('walFlushes'),
      },
    })
  }
  const table: Table = {
    columns: ['virtual users', 'statements per request', "of these, the provider's", 'WAL flushes per request'].map(
      right,
    ),
    rows: counts.map(({ users, perRequest }) => [
      String(users),
      ...[perRequest.statements, perRequest.providerStatements, perRequest.walFlushes].map(toFigure),
    ]),
  }
  return { counts, table }
}

interface Measured extends SectionResult {
  readonly comparisons: readonly Comparison[]
  readonly names: readonly string[]
  readonly loads: readonly Load[]
}

/**
 * The API, the bare statements and the floor, each with a database of its own: rows that one leaves behind do not slow
 * another. `counters` are those of the API.
 */
const measure = async <Item>(
  context: SectionContext,
  subject: Subject<Item>,
  changeApi: (port: number) => Pick<Target, 'counters'> & { readonly check?: Task['check'] } = () => ({}),
): Promise<Measured> => {
  const { environment, options } = context
  const { name, createWorkload, toOperation } = subject
  const { seconds } = options
  const timed = await (async () => {
    await using stack = new AsyncDisposableStack()
    const createSide = async () => {
      const database = stack.use(await environment.createSchema())
      const startApi = async () => stack.use(await environment.startApi(database.url))
      return { database, startApi }
    }
    const viaApi = await createSide()
    const api = await viaApi.startApi()
    const load = await createWorkload(
      { reserve: reserveInSql(viaApi.database.sql), activate: commitOverHttp(api.port) },
      seconds,
    )
    const targets: Target[] = [createHttpTarget(API, api.port, load, { pid: api.pid, ...changeApi(api.port) })]
    if (toOperation) {
      const viaSql = await createSide()
      const activate: Activate = async reservations => {
        await using preparing = await environment.startApi(viaSql.database.url)
        await commitOverHttp(preparing.port)(reservations)
      }
      const sqlLoad = await createWorkload({ reserve: reserveInSql(viaSql.database.sql), activate }, seconds)
      const operate = toOperation(createDirectSql(viaSql.database.sql))
      targets.push({
        name: SQL_ALONE,
        ...(sqlLoad.prepare ? { prepare: sqlLoad.prepare } : {}),
        open: async users =>
          createLocalUsers(users, () => {
            const item = sqlLoad.next()
            return item === undefined ? undefined : operate(item)
          }),
      })
    }
    targets.push(createFloorTarget(stack.use(await environment.startHonoFloor())))
    const names = targets.map(target => target.name)
    return { names, ...(await measureLoads(targets, { name, users: VIRTUAL_USERS, timing: options })) }
  })()
  const { counts, table } = await countPerRequest(context, subject)
  const costs = summarizeCosts(timed.names, timed.comparisons)
  return {
    ...timed,
    notes: [METHOD, COST_NOTE, ...notCountedNote(costs), COUNTS_NOTE],
    tables: [loadTable(timed.loads), costTable(costs), table],
    figures: { loads: timed.loads, costs, counts },
  }
}

const withGoals = (measured: Measured, goals: readonly Goal[]): SectionResult => ({
  ...measured,
  tables: [...measured.tables, goalTable('goal', goals)],
  figures: { ...measured.figures, goals },
})

/** CPU per request as a multiple of that of the floor. */
const costGoal = ({ names, comparisons }: Measured, atMost: number): Goal =>
  toCostGoal(names, comparisons, GOAL_USERS, atMost)

export const reserveSection: Section = {
  name: 'reserve',
  title: 'POST reserve of unused names',
  needs: 'postgres',
  async run(context) {
    const measured = await measure(context, {
      name: 'reserve',
      createWorkload: () => createReserveWorkload(),
      toOperation: direct => direct.reserve,
    })
    return withGoals(measured, [...toApiGoals(measured.comparisons, 0.7), costGoal(measured, 5)])
  },
}

export const checkSection: Section = {
  name: 'check',
  title: 'GET check of names, half of them reserved',
  needs: 'postgres',
  async run(context) {
    const measured = await measure(context, {
      name: 'check',
      createWorkload: ({ reserve }) => createCheckWorkload(reserve),
      toOperation:
        direct =>
        ({ subdomain, isReserved }) =>
          direct.check(subdomain, isReserved),
    })
    return withGoals(measured, [...toApiGoals(measured.comparisons, 0.8), costGoal(measured, 2.4)])
  },
}

export const notFoundSection: Section = {
  name: 'not-found',
  title: 'GET of a path that no route has: what every request costs',
  needs: 'postgres',
  async run(context) {
    const measured = await measure(context, { name: 'not-found', createWorkload: () => createNotFoundWorkload() })
    return withGoals(measured, [costGoal(measured, 1.8)])
  },
}

export const releaseSection: Section = {
  name: 'release',
  title: 'DELETE release of active names',
  needs: 'postgres',
  run: context =>
    measure(context, {
      name: 'release',
      createWorkload: ({ reserve, activate }, seconds) => createReleaseWorkload(reserve, activate, seconds),
      toOperation: direct => direct.release,
    }),
}

const COMMIT_NOTE = [
  'Commit waits until the records of its name are at the DNS provider: here `local`, whose zone is a table in the same',
  'database. SQL alone is the commit statement alone: the active row, its desired records and its history. The API adds',
  'the syncs of the zone, one at a time for all waiting commits.',
].join('\n')

/** Sums the samples of a metric (Prometheus text format 0.0.4) by the value of one of its labels. */
export const sumByLabel = (text: string, metric: string, label: string): Record<string, number> => {
  const sums: Record<string, number> = {}
  for (const line of text.split('\n')) {
    const [, name, labels, value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? []
    if (name !== metric) continue
    const [, key] = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels ?? '') ?? []
    if (key !== undefined) sums[key] = (sums[key] ?? 0) + Number(value)
  }
  return sums
}

export const commitSection: Section = {
  name: 'commit',
  title: 'POST commit, each of another reservation',
  needs: 'postgres',
  async run(context) {
    let accepted = 0
    const measured = await measure(
      context,
      {
        name: 'commit',
        createWorkload: ({ reserve }, seconds) => createCommitWorkload(reserve, seconds),
        toOperation: direct => direct.commit,
      },
      port => ({
        async counters() {
          const text = await fetch(`http://127.0.0.1:${port}/metrics`).then(response => response.text())
          return sumByLabel(text, 'pdm_dns_operation_duration_seconds_count', 'operation')
        },
        check(response) {
          if (response.status === 202) accepted += 1
          return expectStatus(200, 202)(response)
        },
      }),
    )
    const calls: Table = {
      columns: [left('virtual users'), right('provider reads per commit'), right('provider writes per commit')],
      rows: measured.loads.map(({ users, targets: [api] }) => [
        String(users),
        ...['read', 'apply'].map(operation => {
          const perCommit = api?.perOperation[operation]
          return perCommit ? spreadText(perCommit) : toFigure(0)
        }),
      ]),
    }
    return {
      ...measured,
      notes: [
        ...measured.notes,
        COMMIT_NOTE,
        `Answered 202 because the provider took longer than the API waits: ${accepted}.`,
      ],
      tables: [...measured.tables, calls],
      figures: { ...measured.figures, answered202: accepted },
    }
  },
}

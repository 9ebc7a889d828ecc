import { toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import { createDirectSql } from '../environment/direct-sql.ts'
import { reserveInSql } from '../environment/seed.ts'
import { type Comparison, type Load, loadTable, measureLoads, pickField } from '../load/compare.ts'
import { createLocalUsers, expectStatus, type ResponseError, type Target } from '../load/target.ts'
import { type Goal, goalTable, type Section, type SectionContext, type SectionResult, toGoal } from '../report.ts'
import {
  createCheckWorkload,
  createCommitWorkload,
  createHttpTarget,
  createReserveWorkload,
  type Workload,
} from '../workloads.ts'

/** One client, a busy replica, and more than the database connections can carry concurrently. */
const VIRTUAL_USERS = [1, 16, 64]
/** The load that the goals are about. */
const GOAL_USERS = 64
/** The largest p99 of a latency as a multiple of its median. */
const MAX_TAIL = 5

/** The first is the numerator of every ratio. */
const TARGETS = ['API', 'SQL alone', 'empty route'] as const

const METHOD = [
  'Closed loop: each virtual user sends its next request when it has its response. Medians over the rounds (min–max).',
  'Ratios are calculated per round, API / this row: below 1 for ops/s and above 1 for latencies is what the API adds.',
  'SQL alone: the same statements through the driver, one request each, without HTTP, with as many callers and an equal',
  'connection pool; the API batches concurrent reserves and checks. Empty route: a process that answers the same request',
  "with a constant, on the API's own adapter.",
].join('\n')

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

interface Measured extends SectionResult {
  readonly comparisons: readonly Comparison[]
  readonly loads: readonly Load[]
}

const measure = async (name: string, { options }: SectionContext, targets: readonly Target[]): Promise<Measured> => {
  const { rounds, seconds } = options
  const { comparisons, loads, errors } = await measureLoads(targets, { name, users: VIRTUAL_USERS, rounds, seconds })
  return { comparisons, loads, notes: [METHOD], tables: [loadTable(loads)], figures: { loads }, errors }
}

const withGoals = (measured: Measured, atLeast: number): SectionResult => {
  const goals = toApiGoals(measured.comparisons, atLeast)
  return {
    ...measured,
    tables: [...measured.tables, goalTable('goal', goals)],
    figures: { ...measured.figures, goals },
  }
}

/** The three targets of a section, each with a database of its own: rows that one leaves behind do not slow another. */
const createTargets = async <Item>(
  { environment }: SectionContext,
  stack: AsyncDisposableStack,
  createWorkload: (reserve: ReturnType<typeof reserveInSql>) => Promise<Workload<Item>> | Workload<Item>,
  toOperation: (direct: ReturnType<typeof createDirectSql>) => (item: Item) => Promise<ResponseError>,
) => {
  const viaApi = stack.use(await environment.createSchema())
  const viaSql = stack.use(await environment.createSchema())
  const apiLoad = await createWorkload(reserveInSql(viaApi.sql))
  const sqlLoad = await createWorkload(reserveInSql(viaSql.sql))
  const api = stack.use(await environment.startApi(viaApi.url))
  const empty = stack.use(await environment.startEmptyRoute())
  const operate = toOperation(createDirectSql(viaSql.sql))
  const sql: Target = {
    name: TARGETS[1],
    ...(sqlLoad.prepare ? { prepare: sqlLoad.prepare } : {}),
    open: async users =>
      createLocalUsers(users, () => {
        const item = sqlLoad.next()
        return item === undefined ? undefined : operate(item)
      }),
  }
  return { api, apiLoad, sql, empty }
}

export const reserveSection: Section = {
  name: 'reserve',
  title: 'POST reserve of unused names',
  needs: 'postgres',
  async run(context) {
    await using stack = new AsyncDisposableStack()
    const targets = await createTargets(
      context,
      stack,
      () => createReserveWorkload(),
      direct => direct.reserve,
    )
    const measured = await measure('reserve', context, [
      createHttpTarget(TARGETS[0], targets.api.port, targets.apiLoad),
      targets.sql,
      createHttpTarget(TARGETS[2], targets.empty.port, createReserveWorkload(), { check: expectStatus(200) }),
    ])
    return withGoals(measured, 0.7)
  },
}

export const checkSection: Section = {
  name: 'check',
  title: 'GET check of names, half of them reserved',
  needs: 'postgres',
  async run(context) {
    await using stack = new AsyncDisposableStack()
    const targets = await createTargets(
      context,
      stack,
      createCheckWorkload,
      direct =>
        ({ subdomain, isReserved }) =>
          direct.check(subdomain, isReserved),
    )
    const measured = await measure('check', context, [
      createHttpTarget(TARGETS[0], targets.api.port, targets.apiLoad),
      targets.sql,
      createHttpTarget(TARGETS[2], targets.empty.port, targets.apiLoad, { check: expectStatus(200) }),
    ])
    return withGoals(measured, 0.8)
  },
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
    await using stack = new AsyncDisposableStack()
    const { seconds } = context.options
    const targets = await createTargets(
      context,
      stack,
      reserve => createCommitWorkload(reserve, seconds),
      direct => direct.commit,
    )
    const countProviderCalls = async () => {
      const text = await fetch(`http://127.0.0.1:${targets.api.port}/metrics`).then(response => response.text())
      return sumByLabel(text, 'pdm_dns_operation_duration_seconds_count', 'operation')
    }
    let accepted = 0
    const anyReservation = { subdomain: 'bench', reservationToken: crypto.randomUUID() }
    const measured = await measure('commit', context, [
      createHttpTarget(TARGETS[0], targets.api.port, targets.apiLoad, {
        counters: countProviderCalls,
        check(response) {
          if (response.status === 202) accepted += 1
          return expectStatus(200, 202)(response)
        },
      }),
      targets.sql,
      createHttpTarget(
        TARGETS[2],
        targets.empty.port,
        { next: () => anyReservation, toTask: targets.apiLoad.toTask },
        { check: expectStatus(200) },
      ),
    ])
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
      notes: [METHOD, COMMIT_NOTE, `Answered 202 because the provider took longer than the API waits: ${accepted}.`],
      tables: [...measured.tables, calls],
      figures: { ...measured.figures, answered202: accepted },
      errors: measured.errors,
    }
  },
}

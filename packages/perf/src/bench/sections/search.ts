import { encodeCursor, type NamesQuery } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { createPrng } from '@pool/test-kit/prng.ts'
import {
  chooseNameOrder,
  formatNamePosition,
  type NameOrder,
  type TextRange,
  toNameFilter,
} from 'allocation-api/src/allocation/domain/name-filter.ts'
import { createNameSearch } from 'allocation-api/src/allocation/name-search.ts'
import { progress } from '../../shared/cli.ts'
import { toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import { insertNames, POOLS, toAddress, toCreator, toLabel, toPool } from '../environment/seed.ts'
import { type Comparison, compare, listErrors, pickField } from '../load/compare.ts'
import { createLocalUsers, openHttpUsers, type ResponseError, type Target, type Task } from '../load/target.ts'
import { goalTable, type Section, type SectionResult, toGoal } from '../report.ts'

/** Milliseconds from a search to its response, at most. */
const MAX_P95_MS = 100
/** A page of the console. */
const LIMIT = 50
/** Operators who search at the same time, for the searches of every kind in turn. */
const OPERATORS = 8
const TIMEOUT_MS = 60_000
const OPERATOR_TOKEN = 'operator-token-of-the-bench'

const TARGETS = ['API', 'its statement', 'plain SELECT'] as const

/** One request. `after`: the number of the name that a later page begins after, in the order of the search. */
interface Search extends NamesQuery {
  readonly after?: number
}

interface SearchKind {
  readonly name: string
  /** The next search of this kind. `pick` draws the number of any name. */
  readonly next: (pick: () => number) => Search
}

const KINDS: readonly SearchKind[] = [
  { name: 'no condition', next: () => ({}) },
  { name: 'prefix, as it is typed', next: pick => ({ q: toLabel(pick()).slice(0, 1 + (pick() % 9)) }) },
  { name: 'prefix that no name has', next: pick => ({ q: `x${toLabel(pick())}` }) },
  { name: 'FQDN', next: pick => toFqdnSearch(pick()) },
  { name: 'FQDN, its first part', next: pick => ({ q: `${toLabel(pick())}.` }) },
  { name: 'address', next: pick => ({ address: toAddress(pick()) }) },
  { name: 'address, its first three numbers', next: pick => ({ address: toAddress(pick()).replace(/\.\d+$/, '') }) },
  { name: 'address, its first number', next: () => ({ address: '10' }) },
  { name: 'address that no name has', next: pick => ({ address: `192.0.2.${pick() % 256}` }) },
  { name: 'creator', next: pick => ({ createdBy: toCreator(pick()) }) },
  { name: 'creator, its first letters', next: () => ({ createdBy: 'te' }) },
  { name: 'active', next: () => ({ state: 'active' }) },
  { name: 'reserved', next: () => ({ state: 'reserved' }) },
  { name: 'cooling off', next: () => ({ state: 'cooling-off' }) },
  { name: 'held', next: () => ({ state: 'held' }) },
  { name: 'DNS published', next: () => ({ dns: 'published' }) },
  { name: 'DNS pending', next: () => ({ dns: 'pending' }) },
  { name: 'DNS failing', next: () => ({ dns: 'failing' }) },
  { name: 'creator and cooling off', next: pick => ({ createdBy: toCreator(pick()), state: 'cooling-off' }) },
  { name: 'prefix and held', next: pick => ({ q: toLabel(pick()).slice(0, 3), state: 'held' }) },
  { name: 'a later page: no condition', next: pick => ({ after: pick() }) },
  { name: 'a later page: one pool', next: pick => toPoolSearch(pick()) },
  { name: 'a later page: address', next: pick => ({ address: '10', after: pick() }) },
  { name: 'a later page: creator', next: pick => ({ createdBy: 'team', after: pick() }) },
  { name: 'a later page: reserved', next: pick => ({ state: 'reserved', after: pick() }) },
  { name: 'a later page: DNS failing', next: pick => ({ dns: 'failing', after: pick() }) },
]

const toFqdnSearch = (n: number): Search => ({ q: `${toLabel(n)}.${toPool(n)}` })
const toPoolSearch = (n: number): Search => ({ pool: toPool(n), after: n })

/** The keys of a name in each order, as a cursor has them. */
const toKeys = (n: number, order: NameOrder): readonly string[] => {
  const name = [toPool(n), toLabel(n)]
  if (order === 'address') return [toAddress(n), ...name]
  return order === 'creator' ? [toCreator(n), ...name] : name
}

interface ReadySearch {
  readonly query: NamesQuery
  readonly order: NameOrder
  readonly keys: readonly string[] | null
}

const toReady = ({ after, ...query }: Search): ReadySearch => {
  const filter = toNameFilter(query, POOLS)
  if (!filter) throw new Error(`no name can meet ${JSON.stringify(query)}`)
  const order = chooseNameOrder(filter)
  return { query: { ...query, limit: LIMIT }, order, keys: after === undefined ? null : toKeys(after, order) }
}

const toTask = ({ query, order, keys }: ReadySearch): Task => {
  const cursor = keys && { cursor: encodeCursor(formatNamePosition({ order, keys })) }
  const values = Object.entries({ ...query, ...cursor }).map(([name, value]): [string, string] => [name, String(value)])
  return {
    request: {
      method: 'GET',
      path: `/api/v1/names?${new URLSearchParams(values)}`,
      headers: `Authorization: Bearer ${OPERATOR_TOKEN}\r\n`,
    },
    check: ({ status, text }) =>
      status === 200 && text.startsWith('{"names":[') ? null : `status ${status}: ${text.slice(0, 120)}`,
  }
}

/** The same names in the same order, without a bound on the rows that are read. */
const select = (sql: Sql, { query, order, keys }: ReadySearch) => {
  const filter = toNameFilter(query, POOLS)
  if (!filter) throw new Error('no name can meet the query')
  const isIn = (column: string, range: TextRange | null) => {
    if (range === null) return sql``
    const end = range.to === null ? sql`` : sql`and ${sql.unsafe(column)} < ${range.to}`
    return sql`and ${sql.unsafe(column)} >= ${range.from} ${end}`
  }
  const states = {
    active: sql`and a.state = 'active'`,
    reserved: sql`and a.state = 'reserved' and a.expires_at > now()`,
    held: sql`and a.state <> 'active' and a.lineage_id is not null and a.expires_at is null`,
    'cooling-off': sql`and a.state = 'released' and a.lineage_id is null and a.cool_off_until > now()`,
  }
  const statuses = {
    published: sql`and a.state = 'active' and d.applied_version >= d.version`,
    pending: sql`and d.applied_version < d.version and d.last_error is null`,
    failing: sql`and d.applied_version < d.version and d.last_error is not null`,
  }
  const leads: Partial<Record<NameOrder, string>> = {
    address: 'a.load_balancer_ip,',
    creator: 'a.created_by collate "C",',
  }
  const columns = sql.unsafe(`${leads[order] ?? ''} a.pool_domain, a.subdomain`)
  const [first = '', second = '', third = ''] = keys ?? []
  const lead = order === 'address' ? sql`${first}::text::inet` : sql`${first}`
  const position = leads[order] ? sql`${lead}, ${second}, ${third}` : sql`${first}, ${second}`
  return sql`
    select a.*, d.version, d.applied_version, d.last_error
    from pool_allocations a left join dns_names d on d.zone = a.pool_domain and d.subdomain = a.subdomain
    where a.pool_domain in ${sql([...filter.pools])} and a.state <> 'pool'
      ${isIn('a.subdomain', filter.subdomain)} ${isIn('a.created_by collate "C"', filter.createdBy)}
      ${filter.address ? sql`and a.state = 'active' and a.load_balancer_ip between ${filter.address.first}::text::inet and ${filter.address.last}::text::inet` : sql``}
      ${filter.state ? states[filter.state] : sql``} ${filter.dns ? statuses[filter.dns] : sql``}
      ${keys ? sql`and (${columns}) > (${position})` : sql``}
    order by ${columns} limit ${LIMIT}`
}

const NOTE = [
  'One operator, who sends the next search at the response of the last one; each search has other values. API: over HTTP, with a',
  'token, on the address of operators. Its statement: the same through the driver. Plain SELECT: the same names in the same order,',
  'as one would write it by hand, without the bound on the rows that one page reads. Interleaved; medians over the rounds',
  '(min–max); ratios round by round. A search of which few names meet every condition can have a short page and a cursor: then',
  'the SELECT has read further.',
].join('\n')

export const searchSection: Section = {
  name: 'search',
  title: 'GET names, the search of operators',
  needs: 'postgres',
  async run({ environment, options }): Promise<SectionResult> {
    const { rows } = options
    await using database = await environment.createSchema()
    progress(`search: inserting ${rows} names`)
    await insertNames(database.sql, rows)
    await using api = await environment.startApi(database.url, {
      PDM_OPERATOR_TOKENS: OPERATOR_TOKEN,
      PDM_OPERATOR_PORT: '0',
      DNSPROVIDER_MANAGED_DOMAINS: POOLS.join(','),
      // It reads every zone as a whole.
      PDM_DRIFT_INTERVAL: '24h',
    })
    const port = api.operatorPort
    if (port === null) throw new Error('the API has no operator address')
    const { sql } = database
    const search = createNameSearch(sql, { timeoutMs: TIMEOUT_MS, listPools: () => POOLS })
    const runStatement = async ({ query, order, keys }: ReadySearch): Promise<ResponseError> => {
      const cursor = keys && { cursor: formatNamePosition({ order, keys }) }
      const { kind } = await search({ ...query, ...cursor })
      return kind === 'found' ? null : kind
    }
    const runSelect = async (ready: ReadySearch): Promise<ResponseError> => {
      await select(sql, ready)
      return null
    }

    /** Each target gets the same searches in the same order. */
    const createTargets = (kinds: readonly SearchKind[]): readonly Target[] => {
      const createNext = () => {
        const prng = createPrng(1)
        let searches = 0
        return () => {
          const kind = kinds[searches++ % kinds.length] as SearchKind
          return toReady(kind.next(() => prng.below(rows)))
        }
      }
      const local = (name: string, run: (ready: ReadySearch) => Promise<ResponseError>): Target => {
        const next = createNext()
        return { name, open: async users => createLocalUsers(users, () => run(next())) }
      }
      const next = createNext()
      return [
        { name: TARGETS[0], open: users => openHttpUsers(port, users, () => toTask(next())) },
        local(TARGETS[1], runStatement),
        local(TARGETS[2], runSelect),
      ]
    }

    const loads = [
      ...KINDS.map(({ name, next }) => ({ name, kinds: [{ name, next }], users: 1 })),
      { name: 'all of these in turn', kinds: KINDS, users: 1 },
      { name: `all of these, ${OPERATORS} operators`, kinds: KINDS, users: OPERATORS },
    ]
    const results: { readonly name: string; readonly comparison: Comparison }[] = []
    for (const { name, kinds, users } of loads) {
      const plan = { name: `search, ${name}`, users: [users], timing: options }
      for (const comparison of await compare(createTargets(kinds), plan)) results.push({ name, comparison })
    }

    const figures = results.map(({ name, comparison: { users, runs } }) => {
      const [ours = [], ...baselines] = runs
      return {
        name,
        users,
        targets: runs.map((target, i) => ({
          name: TARGETS[i] ?? '',
          p50Ms: toSpread(pickField(target, 'p50Ms')),
          p95Ms: toSpread(pickField(target, 'p95Ms')),
        })),
        ratios: baselines.map(baseline => toSpread(toRatios(pickField(ours, 'p50Ms'), pickField(baseline, 'p50Ms')))),
      }
    })
    const table: Table = {
      columns: [
        left(`search of ${rows} names`),
        ...['API, p50 ms', 'p95 ms', 'its statement, p50 ms', 'p95 ms', 'plain SELECT, p50 ms', 'p95 ms'].map(right),
        ...['p50, API / its statement', 'API / SELECT'].map(right),
      ],
      rows: figures.map(({ name, targets, ratios }) => [
        name,
        ...targets.flatMap(({ p50Ms, p95Ms }, i) => [
          toFigure(p50Ms.median),
          i === 0 ? spreadText(p95Ms) : toFigure(p95Ms.median),
        ]),
        ...ratios.map(({ median }) => toFigure(median)),
      ]),
    }
    const goals = figures.map(({ name, targets }) =>
      toGoal(name, 'p95 ms of the API', 'at most', MAX_P95_MS, targets[0]?.p95Ms ?? null),
    )
    const missed = goals.filter(({ met }) => !met)
    const highest = goals.toSorted((a, b) => (b.measured?.median ?? 0) - (a.measured?.median ?? 0)).slice(0, 1)
    return {
      notes: [NOTE],
      tables: [
        table,
        goalTable('goal: the slowest kind, and every one that misses it', missed.length > 0 ? missed : highest),
      ],
      figures: { rows, searches: figures, goals },
      errors: results.flatMap(({ name, comparison }) => listErrors(TARGETS, name, comparison)),
    }
  },
}

import type { ListedName, NamesQuery, Target } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { toDnsState } from '../reconciler/domain/status.ts'
import {
  chooseNameOrder,
  formatNamePosition,
  type NameFilter,
  type NameOrder,
  type NamePosition,
  parseNamePosition,
  readsByPool,
  type TextRange,
  toNameFilter,
} from './domain/name-filter.ts'
import { toTarget } from './rows.ts'
import { COLUMNS, FREE_AT, IS_COOLING_OFF, IS_LIVE } from './sql.ts'

/** A row as JSON. */
export interface FoundRow {
  readonly poolDomain: string
  readonly subdomain: string
  /** Null: the name is free. */
  readonly heldState: Exclude<ListedName['state'], 'free'> | null
  readonly reservedAt: string | null
  readonly createdBy: string | null
  readonly expiresAt: string | null
  readonly availableAt: string | null
  readonly loadBalancerIP: string | null
  readonly target: Target | null
  readonly committedAt: string | null
  /** Null: no row in dns_names. */
  readonly version: number | null
  readonly appliedVersion: number | null
  readonly lastError: string | null
}

export type SearchOutcome =
  | { readonly kind: 'found'; readonly names: readonly ListedName[]; readonly next: string | null }
  | { readonly kind: 'invalid-cursor' }

const DEFAULT_LIMIT = 100

/** Rows of an index that one page reads, so that a search of which few names meet every condition takes bounded time. */
const MAX_SCANNED = 2_000

/** Pools that one page reads one after the other. */
const MAX_POOLS = 20

const toIso = (at: string): string => new Date(at).toISOString()

/** `allocation` of a row of `heldColumns`, as on the wire. */
export const toListedName = (row: FoundRow): ListedName => {
  const { poolDomain, subdomain, heldState, version, appliedVersion, lastError } = row
  const status = version === null ? null : { version, appliedVersion: appliedVersion ?? 0, lastError }
  // A reservation has no records, except those of an earlier holder that are not withdrawn yet.
  const hasDns =
    heldState === 'active' || (status !== null && (heldState !== 'reserved' || status.appliedVersion < status.version))
  const dns = hasDns ? { dns: toDnsState(status) } : {}
  if (heldState === null || row.reservedAt === null) return { poolDomain, subdomain, state: 'free', ...dns }
  const { expiresAt, availableAt, committedAt } = row
  return {
    poolDomain,
    subdomain,
    state: heldState,
    reservedAt: toIso(row.reservedAt),
    createdBy: row.createdBy ?? '',
    ...(heldState === 'reserved' && expiresAt ? { expiresAt: toIso(expiresAt) } : {}),
    ...(heldState === 'cooling-off' && availableAt ? { availableAt: toIso(availableAt) } : {}),
    ...(heldState === 'active' ? toTarget(row) : {}),
    ...(committedAt && heldState !== 'reserved' ? { committedAt: toIso(committedAt) } : {}),
    ...dns,
  }
}

/** The columns of a `FoundRow` from pool_allocations `a` left joined with dns_names `d`. */
export const foundColumns = (sql: Sql) => ({
  heldState: sql.unsafe(`case
    when a.state = 'pool' then null
    when ${IS_LIVE} then a.state
    when a.lineage_id is not null then 'held'
    when ${IS_COOLING_OFF} then 'cooling-off'
  end`),
  columns: sql.unsafe(`${COLUMNS}, ${FREE_AT} as "availableAt",
    d.version, d.applied_version as "appliedVersion", coalesce(d.last_error, d.leftover) as "lastError"`),
})

/** The rows of the index of a state. The words are those of the migration, or the server would not use the index. */
const inStateIndex = (sql: Sql, state: NameFilter['state']): Fragment => {
  if (state === 'held') return sql`t.lineage_id is not null and t.state <> 'active'`
  return state === 'cooling-off'
    ? sql`t.lineage_id is null and t.cool_off_until is not null`
    : sql`t.state = 'reserved'`
}
const inUnpublishedIndex = (sql: Sql, dns: NameFilter['dns']): Fragment =>
  dns === 'failing'
    ? sql`t.applied_version < t.version and t.last_error is not null`
    : sql`t.applied_version < t.version`

/** The filter as conditions, and the index that fits it. */
const createConditions = (sql: Sql) => {
  const isIn = (column: Fragment, range: TextRange | null): Fragment => {
    if (range === null) return sql``
    return range.to === null
      ? sql`and ${column} >= ${range.from}`
      : sql`and ${column} >= ${range.from} and ${column} < ${range.to}`
  }
  const hasAddress = (column: Fragment, address: NameFilter['address']): Fragment =>
    address === null ? sql`` : sql`and ${column} between ${address.first}::text::inet and ${address.last}::text::inet`
  const hasDns = (dns: NameFilter['dns']): Fragment => {
    if (dns === null) return sql``
    if (dns === 'published') {
      return sql`and a.state = 'active' and (d.version is null or d.applied_version >= d.version)`
    }
    return sql`and d.applied_version < d.version and (d.last_error is null) = ${dns === 'pending'}`
  }

  /** What an index has, from its table `t`. `lead`: the column before the pool and the name. */
  const toIndex = (filter: NameFilter, order: NameOrder) => {
    const allocations = { table: sql`pool_allocations`, pool: sql`t.pool_domain`, lead: null }
    const indexes = {
      name: { ...allocations, where: sql`true` },
      state: { ...allocations, where: inStateIndex(sql, filter.state) },
      unpublished: { table: sql`dns_names`, pool: sql`t.zone`, lead: null, where: inUnpublishedIndex(sql, filter.dns) },
      address: {
        ...allocations,
        lead: sql`t.load_balancer_ip`,
        where: sql`t.state = 'active' ${hasAddress(sql`t.load_balancer_ip`, filter.address)}`,
      },
      creator: {
        ...allocations,
        lead: sql`(t.created_by collate "C")`,
        where: sql`t.state <> 'pool' ${isIn(sql`t.created_by collate "C"`, filter.createdBy)}`,
      },
    }
    return indexes[order]
  }
  return { isIn, hasAddress, hasDns, toIndex }
}

/** One page of one index. `last`: the keys of the last row that was read; null if no row of the index follows. */
interface IndexPage {
  readonly rows: readonly FoundRow[]
  readonly last: readonly string[] | null
}

export type NameSearch = ReturnType<typeof createNameSearch>

/** The search of operators over the pools that `listPools` returns. */
export const createNameSearch = (
  sql: Sql,
  { timeoutMs, listPools }: { readonly timeoutMs: number; readonly listPools: () => readonly string[] },
) => {
  const { heldState, columns } = foundColumns(sql)
  const { isIn, hasAddress, hasDns, toIndex } = createConditions(sql)

  /**
   * Reads at most `MAX_SCANNED` rows of an index. Most pages read few, because the server stops at the `limit`. A row of the
   * index has the columns `lead`, `pool` and `sub`. `pool`: only its names; null: those of every pool.
   */
  const readPage = async (
    filter: NameFilter,
    order: NameOrder,
    {
      pool,
      after,
      limit,
    }: { readonly pool: string | null; readonly after: readonly string[] | null; readonly limit: number },
  ): Promise<IndexPage> => {
    const index = toIndex(filter, order)
    const { lead } = index
    const inPool = pool === null ? sql`` : sql`and ${index.pool} = ${pool} ${isIn(sql`t.subdomain`, filter.subdomain)}`
    const keys = lead ? sql`${lead}, ${index.pool}, t.subdomain` : sql`${index.pool}, t.subdomain`
    const [first = '', second = '', third = ''] = after ?? []
    const leadValue = order === 'address' ? sql`${first}::text::inet` : sql`${first}`
    const position = lead ? sql`${leadValue}, ${second}, ${third}` : sql`${first}, ${second}`
    // Within a pool, the server would begin with its first name if the position had the pool as well.
    const isAfter = pool === null ? sql`and (${keys}) > (${position})` : sql`and t.subdomain > ${second}`
    const scanned = sql`
      select ${lead ? sql`${lead} as lead,` : sql``} ${index.pool} as pool, t.subdomain as sub
      from ${index.table} t where ${index.where} ${inPool} ${after ? isAfter : sql``}
      order by ${keys} limit ${MAX_SCANNED}`
    // Exactly the order that the planner knows of the rows: it must not sort them, or it would read all of them first.
    const sorted = lead ? sql`s.lead, s.pool, s.sub` : pool !== null ? sql`s.sub` : sql`s.pool, s.sub`
    const hasPool = pool !== null ? sql`` : sql`and s.pool = any (string_to_array(${filter.pools.join(' ')}, ' '))`
    const leadText = order === 'address' ? sql`host(s.lead),` : sql`s.lead,`
    const texts = sql`jsonb_build_array(${lead ? leadText : sql``} s.pool, s.sub)`
    const [row] = await withTimeout(
      sql<{ rows: FoundRow[]; last: string[] | null }[]>`
        with page as materialized (
          select s.pool, s.sub, ${columns}, ${heldState} as "heldState", ${texts} as keys,
            row_number() over (order by ${sorted}) as position
          from (${scanned}) s
          left join lateral (
            select * from pool_allocations where pool_domain = s.pool and subdomain = s.sub limit 1) a on true
          left join lateral (
            select version, applied_version, last_error, leftover from dns_names
            where zone = s.pool and subdomain = s.sub limit 1) d on true
          where ${order === 'unpublished' ? sql`true` : sql`${heldState} is not null`}
            ${hasPool} ${isIn(sql`s.sub`, filter.subdomain)} ${isIn(sql`a.created_by collate "C"`, filter.createdBy)}
            ${hasAddress(sql`a.load_balancer_ip`, filter.address)} ${hasDns(filter.dns)}
            ${filter.state ? sql`and ${heldState} = ${filter.state}` : sql``}
          order by ${sorted} limit ${limit}
        )
        select coalesce((select jsonb_agg(
            to_jsonb(page) || jsonb_build_object('poolDomain', pool, 'subdomain', sub) order by position) from page), '[]') as rows,
          case when (select count(*) from page) < ${limit}
            then (select ${texts} from (${scanned}) s order by ${sorted} offset ${MAX_SCANNED - 1} limit 1)
            else (select keys from page order by position desc limit 1) end as last`,
      timeoutMs,
    )
    return { rows: row?.rows ?? [], last: row?.last ?? null }
  }

  /** Pages of an index, pool after pool. */
  const readPools = async (
    filter: NameFilter,
    order: NameOrder,
    start: NamePosition | null,
    limit: number,
  ): Promise<IndexPage> => {
    const [startPool = ''] = start?.keys ?? []
    const pools = filter.pools.filter(pool => pool >= startPool)
    const rows: FoundRow[] = []
    for (const [i, pool] of pools.entries()) {
      if (i === MAX_POOLS) return { rows, last: [pool, ''] }
      const after = start !== null && pool === startPool ? start.keys : null
      const page = await readPage(filter, order, { pool, after, limit: limit - rows.length })
      rows.push(...page.rows)
      if (page.last) return { rows, last: page.last }
    }
    return { rows, last: null }
  }

  return async (query: NamesQuery): Promise<SearchOutcome> => {
    const filter = toNameFilter(query, listPools().toSorted())
    if (!filter) return { kind: 'found', names: [], next: null }
    const order = chooseNameOrder(filter)
    const start = query.cursor === undefined ? null : parseNamePosition(query.cursor, order)
    if (query.cursor !== undefined && !start) return { kind: 'invalid-cursor' }
    const limit = query.limit ?? DEFAULT_LIMIT
    const { rows, last } = readsByPool(filter, order)
      ? await readPools(filter, order, start, limit)
      : await readPage(filter, order, { pool: null, after: start?.keys ?? null, limit })
    const next = last && formatNamePosition({ order, keys: last })
    return { kind: 'found', names: rows.map(toListedName), next }
  }
}

import type { Allocation } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { drainRows } from '@pool/database/drain-rows'
import { withTimeout } from '@pool/database/with-timeout'
import { grantedOf } from './domain/decision.ts'
import { allocationOf, type Row, type RowWithProgress } from './domain/mapping.ts'
import type { Granted, PoolName } from './domain/types.ts'
import { asUuid, fragmentsOf } from './sql.ts'

export interface Page {
  /** Subdomain after which the page begins; empty for the first. */
  readonly after: string
  readonly limit: number
  readonly state?: Allocation['state'] | undefined
}

export type Reader = ReturnType<typeof createReader>

/** What is asked of `pool_allocations` without changing it. An expired reservation is not there. */
export const createReader = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => {
  const { columns, columnsWithProgress, isLive, named } = fragmentsOf(sql)
  // One look-up a row, whatever the planner believes: joined freely, each page of a list would read the zone from its
  // beginning, and the list would cost the square of its length. None for a reservation, whose records are not shown.
  const progress = sql`
    left join lateral (
      select version, applied_version, last_error from dns_names
      where a.state = 'active' and zone = a.pool_domain and subdomain = a.subdomain limit 1
    ) d on true`

  /** What holds each of the names now, in their order; null where it is free. */
  const heldStates = async (names: readonly PoolName[]): Promise<(Allocation['state'] | null)[]> => {
    const rows = await withTimeout(
      sql<{ state: Allocation['state'] | null }[]>`
        select held.state from jsonb_array_elements(${sql.json(names.map(({ poolDomain, subdomain }) => [poolDomain, subdomain]))}) with ordinality as asked (name, position)
        left join lateral (
          select state from pool_allocations a
          where a.pool_domain = name ->> 0 and a.subdomain = name ->> 1 and ${isLive} limit 1
        ) held on true
        order by position`,
      timeoutMs,
    )
    return rows.map(({ state }) => state)
  }

  return {
    heldStates,

    /** What holds the name now; null when it is free. */
    async heldState(name: PoolName): Promise<Allocation['state'] | null> {
      const [state] = await heldStates([name])
      return state ?? null
    },

    /** The reservation of this token as it stands now, or null when it has ended in whatever way. */
    async reservation(name: PoolName, token: string): Promise<Granted | null> {
      const [row] = await withTimeout(
        sql<Row[]>`
          select ${columns} from pool_allocations a
          where ${named(name)} and reservation_token = ${asUuid(token)}::uuid and state = 'reserved' and ${isLive}`,
        timeoutMs,
      )
      return row ? grantedOf(row, token) : null
    },

    /** Whether the name is active by the reservation of this token. */
    async isActiveUnder(name: PoolName, token: string): Promise<boolean> {
      const rows = await withTimeout(
        sql`
          select from pool_allocations a
          where ${named(name)} and reservation_token = ${asUuid(token)}::uuid and state = 'active'`,
        timeoutMs,
      )
      return rows.length > 0
    },

    async get(name: PoolName): Promise<Allocation | null> {
      const [row] = await withTimeout(
        sql<RowWithProgress[]>`
          select ${columnsWithProgress} from pool_allocations a ${progress} where ${named(name)} and ${isLive}`,
        timeoutMs,
      )
      return row ? allocationOf(row) : null
    },

    /** In the order of the subdomains' bytes. */
    async page(poolDomain: string, { after, limit, state }: Page): Promise<Allocation[]> {
      const rows = await withTimeout(
        sql<RowWithProgress[]>`
          select ${columnsWithProgress} from (
            select * from pool_allocations a
            where a.pool_domain = ${poolDomain} and a.subdomain > ${after} and ${isLive}
              ${state ? sql`and a.state = ${state}` : sql``}
            order by a.subdomain limit ${limit}
          ) a ${progress} order by a.subdomain`,
        timeoutMs,
      )
      return drainRows(rows).map(allocationOf)
    },
  }
}

/** Live allocations by pool and state. It reads every row: 3 s for ten million of them in memory, longer from a disk. */
export const createCount = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => {
  const { isLive } = fragmentsOf(sql)
  return async (): Promise<readonly { poolDomain: string; state: Allocation['state']; count: number }[]> =>
    withTimeout(
      sql<{ poolDomain: string; state: Allocation['state']; count: number }[]>`
        select pool_domain as "poolDomain", state, count(*) from pool_allocations a where ${isLive} group by 1, 2`,
      timeoutMs,
    )
}

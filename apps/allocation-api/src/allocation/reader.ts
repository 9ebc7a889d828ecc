import type { Allocation, HistoryEntry } from '@pool/contract'
import { drainRows, type Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import type { PoolName } from '../naming/naming.ts'
import { NO_RECORDS, type StoredRecords } from '../records/domain/stored.ts'
import type { AllocationCount, EntryWithId, HistoryPage, ListPage, NameState } from './domain/types.ts'
import { type AllocationRowWithDns, type NameStateRow, toAllocation, toNameState } from './rows.ts'
import { AVAILABLE_AT, COLUMNS_WITH_DNS, IS_COOLING_OFF, IS_LIVE, NAME_STATE } from './sql.ts'
import {
  RELEASE_COLUMNS,
  RELEASE_OUTCOME,
  type ReleaseRequest,
  type ReleaseRow,
  toReleaseColumns,
} from './statements/release.ts'

interface HistoryRow {
  readonly id: number
  readonly poolDomain: string
  readonly subdomain: string
  readonly at: Date
  readonly event: HistoryEntry['event']
  readonly from: HistoryEntry['from']
  readonly to: HistoryEntry['to']
  readonly actor: HistoryEntry['actor']
  readonly address: string | null
  readonly createdBy: string
  readonly requestId: string | null
  readonly detail: string | null
  readonly deletedRecords: NonNullable<HistoryEntry['deletedRecords']> | null
  readonly renewalCount: number | null
  readonly renewedUntil: Date | null
}

const toHistoryEntry = ({
  id,
  at,
  address,
  requestId,
  detail,
  deletedRecords,
  renewalCount,
  renewedUntil,
  ...row
}: HistoryRow): EntryWithId => ({
  id,
  entry: {
    ...row,
    at: at.toISOString(),
    ...(address === null ? {} : { address }),
    ...(requestId === null ? {} : { requestId }),
    ...(detail === null ? {} : { detail }),
    ...(deletedRecords === null ? {} : { deletedRecords }),
    ...(renewalCount === null || renewedUntil === null
      ? {}
      : { renewalCount, renewedUntil: renewedUntil.toISOString() }),
  },
})

const whereName = (sql: Sql, { poolDomain, subdomain }: PoolName) =>
  sql`a.pool_domain = ${poolDomain} and a.subdomain = ${subdomain}`

/** What decisions need to know of a name. */
const createNameReader = (sql: Sql, timeoutMs: number) => {
  const isLive = sql.unsafe(IS_LIVE)
  const nameState = sql.unsafe(`${NAME_STATE} as state, ${AVAILABLE_AT} as "availableAt"`)

  /** A statement of its own, because it costs the server less without a list. */
  const findState = async (name: PoolName): Promise<NameState> => {
    const [row] = await withTimeout(
      sql<NameStateRow[]>`
        select ${nameState} from pool_allocations a where ${whereName(sql, name)}`,
      timeoutMs,
    )
    return row ? toNameState(row) : null
  }

  return {
    /** The state of each name, in the order of the names. */
    async findStates(names: readonly PoolName[]): Promise<NameState[]> {
      const [only] = names
      if (only && names.length === 1) return [await findState(only)]
      const pairs = names.map(({ poolDomain, subdomain }) => [poolDomain, subdomain])
      const rows = await withTimeout(
        sql<NameStateRow[]>`
          select allocation.state, allocation."availableAt" from jsonb_array_elements(${sql.json(pairs)}) with ordinality as input (name, position)
          left join lateral (
            select ${nameState} from pool_allocations a
            where a.pool_domain = name ->> 0 and a.subdomain = name ->> 1 limit 1
          ) allocation on true
          order by position`,
        timeoutMs,
      )
      return rows.map(toNameState)
    },

    /** The state of the name for the client with this token: `own` if the client has it; null if no client has it. */
    async findHolder(name: PoolName, tokenHash: Buffer): Promise<'own' | Allocation['state'] | null> {
      const [row] = await withTimeout(
        sql<{ holder: 'own' | Allocation['state'] }[]>`
          select case when token_hash = ${tokenHash} then 'own' else state end as holder
          from pool_allocations a where ${whereName(sql, name)} and ${isLive}`,
        timeoutMs,
      )
      return row?.holder ?? null
    },

    /** What the tenant of the name has set. */
    async findTenantRecords({ poolDomain, subdomain }: PoolName): Promise<StoredRecords> {
      const [row] = await withTimeout(
        sql<{ records: StoredRecords | null }[]>`
          select records from tenant_records where pool_domain = ${poolDomain} and subdomain = ${subdomain}`,
        timeoutMs,
      )
      return row?.records ?? NO_RECORDS
    },

    /** What a release would decide now. */
    async decideRelease(request: ReleaseRequest): Promise<ReleaseRow['outcome']> {
      const [row] = await withTimeout(
        sql<Pick<ReleaseRow, 'outcome'>[]>`
          select ${sql.unsafe(RELEASE_OUTCOME)} as outcome
          from jsonb_to_record(${sql.json(toReleaseColumns(request))}) as input (${sql.unsafe(RELEASE_COLUMNS)})`,
        timeoutMs,
      )
      return row?.outcome ?? 'not-found'
    },

    /** Whether the client with this token, or any client of the lineage, has the name. */
    async isLiveFor(name: PoolName, tokenHash: Buffer | undefined, lineageId: string): Promise<boolean> {
      const rows = await withTimeout(
        sql`select from pool_allocations a where ${whereName(sql, name)} and ${isLive}
          and (lineage_id = ${lineageId} or lineage_id is null and token_hash = ${tokenHash ?? null}::bytea)`,
        timeoutMs,
      )
      return rows.length > 0
    },

    /** Whether the name is active and was committed with this token. */
    async isActiveWithToken(name: PoolName, tokenHash: Buffer): Promise<boolean> {
      const rows = await withTimeout(
        sql`
          select from pool_allocations a
          where ${whereName(sql, name)} and token_hash = ${tokenHash} and state = 'active'`,
        timeoutMs,
      )
      return rows.length > 0
    },
  }
}

/** Names with all that clients see of them, their history, and their number. */
const createListReader = (sql: Sql, timeoutMs: number) => {
  const columnsWithDns = sql.unsafe(COLUMNS_WITH_DNS)
  const isLive = sql.unsafe(IS_LIVE)
  const isCoolingOff = sql.unsafe(IS_COOLING_OFF)
  /**
   * One lookup per row, whatever the planner estimates. With a plain join, each page of a list could read the zone from its
   * start, and the list would take quadratic time. A reservation has no records, so its lookup returns nothing.
   */
  const leftJoinDns = sql`
    left join lateral (
      select version, applied_version, last_error, leftover from dns_names
      where a.state = 'active' and zone = a.pool_domain and subdomain = a.subdomain limit 1
    ) d on true`

  return {
    async find(name: PoolName): Promise<Allocation | null> {
      const [row] = await withTimeout(
        sql<AllocationRowWithDns[]>`
          select ${columnsWithDns} from pool_allocations a ${leftJoinDns} where ${whereName(sql, name)} and ${isLive}`,
        timeoutMs,
      )
      return row ? toAllocation(row) : null
    },

    /** Sorted by the bytes of the subdomain. */
    async list(poolDomain: string, { after, limit, state }: ListPage): Promise<Allocation[]> {
      const rows = await withTimeout(
        sql<AllocationRowWithDns[]>`
          select ${columnsWithDns} from (
            select * from pool_allocations a
            where a.pool_domain = ${poolDomain} and a.subdomain > ${after} and ${isLive}
              ${state ? sql`and a.state = ${state}` : sql``}
            order by a.subdomain limit ${limit}
          ) a ${leftJoinDns} order by a.subdomain`,
        timeoutMs,
      )
      return drainRows(rows).map(toAllocation)
    },

    /** Newest first. */
    async listHistory(poolDomain: string, { subdomain, before, limit }: HistoryPage): Promise<EntryWithId[]> {
      const rows = await withTimeout(
        sql<HistoryRow[]>`
          select id, pool_domain as "poolDomain", subdomain, at, event, from_state as "from", to_state as "to",
            actor, address, created_by as "createdBy", request_id as "requestId", detail,
            deleted_records as "deletedRecords", renewal_count as "renewalCount", renewed_until as "renewedUntil"
          from allocation_history
          where pool_domain = ${poolDomain}
            ${subdomain === undefined ? sql`` : sql`and subdomain = ${subdomain}`}
            ${before === undefined ? sql`` : sql`and id < ${before}`}
          order by id desc limit ${limit}`,
        timeoutMs,
      )
      return drainRows(rows).map(toHistoryEntry)
    },

    /** Counts the names that are not free. It reads every row. */
    async countByState(): Promise<readonly AllocationCount[]> {
      return withTimeout(
        sql<AllocationCount[]>`
          select pool_domain as "poolDomain", state, count(*) from (
            select a.pool_domain, case
              when ${isLive} then a.state
              when a.lineage_id is not null then 'held'
              when ${isCoolingOff} then 'cooling-off'
            end as state from pool_allocations a
          ) counted where state is not null group by 1, 2`,
        timeoutMs,
      )
    },
  }
}

export type AllocationReader = ReturnType<typeof createAllocationReader>

/** The queries over pool_allocations and allocation_history. Each rejects with a `TimeoutError` after `timeoutMs`. */
export const createAllocationReader = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => ({
  ...createNameReader(sql, timeoutMs),
  ...createListReader(sql, timeoutMs),
})

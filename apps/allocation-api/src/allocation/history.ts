import type { HistoryEntry } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { drainRows } from '@pool/database/drain-rows'
import { withTimeout } from '@pool/database/with-timeout'
import type { EntryWithId } from './domain/types.ts'

export interface HistoryPage {
  /** One name only; absent: the whole pool. */
  readonly subdomain?: string | undefined
  /** Entries older than this one; absent: from the newest. */
  readonly before?: number | undefined
  readonly limit: number
}

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
}

const entryOf = ({ id, at, address, requestId, detail, ...row }: HistoryRow): EntryWithId => ({
  id,
  entry: {
    ...row,
    at: at.toISOString(),
    ...(address === null ? {} : { address }),
    ...(requestId === null ? {} : { requestId }),
    ...(detail === null ? {} : { detail }),
  },
})

export type HistoryReader = ReturnType<typeof createHistoryReader>

/** Reads what the store's statements wrote; nothing ever changes an entry. */
export const createHistoryReader = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  /** Newest first. */
  async page(poolDomain: string, { subdomain, before, limit }: HistoryPage): Promise<EntryWithId[]> {
    const rows = await withTimeout(
      sql<HistoryRow[]>`
        select id, pool_domain as "poolDomain", subdomain, at, event, from_state as "from", to_state as "to",
          actor, address, created_by as "createdBy", request_id as "requestId", detail
        from allocation_history
        where pool_domain = ${poolDomain}
          ${subdomain === undefined ? sql`` : sql`and subdomain = ${subdomain}`}
          ${before === undefined ? sql`` : sql`and id < ${before}`}
        order by id desc limit ${limit}`,
      timeoutMs,
    )
    return drainRows(rows).map(entryOf)
  },
})

import type { DeploymentHistoryEntry } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/with-timeout'
import type { Caller } from '../allocation/domain/types.ts'

export type DeploymentHistoryEvent = DeploymentHistoryEntry['event']

/**
 * Appends to deployment_history within the statement that makes the change. So there is an entry exactly if there was a
 * change.
 */
export const deploymentHistorySql = (sql: Sql) => ({
  /** The columns of deployments `d` that an entry needs. */
  columns: sql`d.id, d.lineage_id, d.sovereign_fqdn, d.request`,
  /**
   * One entry per row of `rows`, which has these columns. `caller`: `run` for what a run did without a request. `detail`
   * may be a column of `rows`.
   */
  append: (
    rows: Fragment,
    event: DeploymentHistoryEvent,
    caller: Caller | 'run',
    detail: string | Fragment | null = null,
  ) => {
    const { actor, address, requestId } =
      caller === 'run' ? { actor: 'deployment', address: null, requestId: null } : caller
    return sql`
      insert into deployment_history
        (event, deployment_id, lineage_id, sovereign_fqdn, org_name, actor, address, request_id, detail)
      select ${event}, id, lineage_id, sovereign_fqdn, request ->> 'orgName', ${actor}, ${address}, ${requestId},
        ${detail} from ${rows} changed
      returning 1`
  },
})

export interface DeploymentHistoryQuery {
  readonly deployment?: string | undefined
  readonly fqdn?: string | undefined
  readonly limit?: number | undefined
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined
}

export interface DeploymentHistoryPage {
  readonly entries: readonly DeploymentHistoryEntry[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

interface HistoryRow {
  readonly id: number
  readonly at: Date
  readonly event: DeploymentHistoryEvent
  readonly deploymentId: string
  readonly lineageId: string
  readonly sovereignFQDN: string
  readonly orgName: string
  readonly actor: DeploymentHistoryEntry['actor']
  readonly address: string | null
  readonly requestId: string | null
  readonly detail: string | null
}

const DEFAULT_PAGE_SIZE = 100
const MAX_PAGE_SIZE = 1_000

const toEntry = ({ id: _, at, address, requestId, detail, ...row }: HistoryRow): DeploymentHistoryEntry => ({
  ...row,
  at: at.toISOString(),
  ...(address === null ? {} : { address }),
  ...(requestId === null ? {} : { requestId }),
  ...(detail === null ? {} : { detail }),
})

/** The entries of one deployment, of one FQDN, or all; newest first. */
export const listDeploymentHistory = async (
  sql: Sql,
  { deployment, fqdn, limit = DEFAULT_PAGE_SIZE, cursor }: DeploymentHistoryQuery,
  timeoutMs: number,
): Promise<DeploymentHistoryPage> => {
  const size = Math.min(limit, MAX_PAGE_SIZE)
  const rows = await withTimeout(
    sql<HistoryRow[]>`
      select id, at, event, deployment_id as "deploymentId", lineage_id as "lineageId",
        sovereign_fqdn as "sovereignFQDN", org_name as "orgName", actor, address, request_id as "requestId", detail
      from deployment_history
      where true ${deployment === undefined ? sql`` : sql`and deployment_id = ${deployment}`}
        ${fqdn === undefined ? sql`` : sql`and sovereign_fqdn = ${fqdn}`}
        ${cursor === undefined ? sql`` : sql`and id < ${Number(cursor)}`}
      order by id desc limit ${size + 1}`,
    timeoutMs,
  )
  const page = rows.slice(0, size)
  const last = page.at(-1)
  const entries = page.map(toEntry)
  return rows.length > size && last ? { entries, nextCursor: String(last.id) } : { entries }
}

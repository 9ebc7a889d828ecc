import type { DeploymentHistoryEntry } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { type Page, type PageQuery, readPage } from '../lib/paginate.ts'
import type { Caller } from '../naming/naming.ts'

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

export interface DeploymentHistoryQuery extends PageQuery {
  readonly deployment?: string | undefined
  readonly fqdn?: string | undefined
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
  query: DeploymentHistoryQuery,
  timeoutMs: number,
): Promise<Page<DeploymentHistoryEntry>> => {
  const { deployment, fqdn, cursor } = query
  const read = (size: number) =>
    withTimeout(
      sql<HistoryRow[]>`
        select id, at, event, deployment_id as "deploymentId", lineage_id as "lineageId",
          sovereign_fqdn as "sovereignFQDN", org_name as "orgName", actor, address, request_id as "requestId", detail
        from deployment_history
        where true ${deployment === undefined ? sql`` : sql`and deployment_id = ${deployment}`}
          ${fqdn === undefined ? sql`` : sql`and sovereign_fqdn = ${fqdn}`}
          ${cursor === undefined ? sql`` : sql`and id < ${Number(cursor)}`}
        order by id desc limit ${size}`,
      timeoutMs,
    )
  const { items, nextCursor } = await readPage(query, read, ({ id }) => String(id))
  return { items: items.map(toEntry), nextCursor }
}

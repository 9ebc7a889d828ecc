import type { Sql } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import { type BatchOptions, deleteInBatches } from '../lib/delete-in-batches.ts'

export interface RetentionOptions extends Omit<BatchOptions, 'deleteBatch'> {
  /** Milliseconds for which entries of both histories are kept; null: indefinitely. */
  readonly historyMs: number | null
  /** Milliseconds for which the log of a finished deployment is kept after its end; null: as long as the deployment. */
  readonly deploymentLogMs: number | null
  readonly timeoutMs: number
  /** What a run deleted, if anything. */
  readonly onDeleted: (deleted: DeletedRows) => void
}

export interface DeletedRows {
  readonly allocationHistory: number
  readonly deploymentHistory: number
  readonly logLines: number
}

/**
 * Deletes what is older than its retention, in small batches. Requests wait for none of them: nothing else locks rows of
 * the histories or of the logs, except the removal of a deployment. Several replicas may do it at the same time. Only the
 * functions of the migration can delete history; they need no privileges except those on the tables.
 */
export const createRetention = (
  sql: Sql,
  { historyMs, deploymentLogMs, timeoutMs, onDeleted, ...options }: RetentionOptions,
) => {
  const { now, milliseconds } = timeSql(sql)

  const deleteHistory = async (
    table: 'allocation_history' | 'deployment_history',
    ageMs: number,
    signal: AbortSignal,
  ): Promise<number> => {
    let afterId: number | null = 0
    let total = 0
    const deleteBatch = async (limit: number) => {
      const [row] = await withTimeout(
        sql<{ lastId: number | null; deleted: number }[]>`
          select last_id as "lastId", deleted
          from ${sql(`delete_${table}`)}(${afterId}::bigint, ${now} - ${milliseconds(ageMs)}, ${limit}::integer)`,
        timeoutMs,
      )
      afterId = row?.lastId ?? null
      total += row?.deleted ?? 0
      return afterId !== null
    }
    await deleteInBatches({ ...options, deleteBatch }, signal)
    return total
  }

  /** Looks at the deployments in the order of their creation, a batch at a time. */
  const deleteLogs = async (ageMs: number, signal: AbortSignal): Promise<number> => {
    let afterNumber = 0
    let total = 0
    const deleteBatch = async (limit: number) => {
      const [row] = await withTimeout(
        sql<{ lastNumber: number | null; deleted: number }[]>`
          with page as (
              select id, number, finished_at from deployments where number > ${afterNumber} order by number limit ${limit}
            ),
            due as (
              select l.deployment_id, l.seq from page join deployment_log_lines l on l.deployment_id = page.id
              where page.finished_at < ${now} - ${milliseconds(ageMs)} limit ${limit} for update of l skip locked
            ),
            deleted as (
              delete from deployment_log_lines l using due
              where l.deployment_id = due.deployment_id and l.seq = due.seq
            )
          select (select max(number) from page having count(*) = ${limit}) as "lastNumber",
            (select count(*) from due) as deleted`,
        timeoutMs,
      )
      const deleted = row?.deleted ?? 0
      total += deleted
      if (deleted === limit) return true
      afterNumber = row?.lastNumber ?? afterNumber
      return row?.lastNumber != null
    }
    await deleteInBatches({ ...options, deleteBatch }, signal)
    return total
  }

  return async (signal: AbortSignal): Promise<void> => {
    const deleted: DeletedRows = {
      allocationHistory: historyMs === null ? 0 : await deleteHistory('allocation_history', historyMs, signal),
      deploymentHistory: historyMs === null ? 0 : await deleteHistory('deployment_history', historyMs, signal),
      logLines: deploymentLogMs === null ? 0 : await deleteLogs(deploymentLogMs, signal),
    }
    if (Object.values(deleted).some(count => count > 0)) onDeleted(deleted)
  }
}

import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { Line, Run, StoredLine } from './domain/types.ts'

export type LineStore = ReturnType<typeof createLineStore>

/** The logs of deployments. Only who holds the lease adds to one, so that its numbers have no gap. */
export const createLineStore = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => ({
  /**
   * Adds what follows the first `after` lines. Nothing when there are more already, so that the same call can be made
   * again when nobody knows what became of it; nothing either when the lease is lost.
   */
  async append({ id, generation }: Run, after: number, lines: readonly (Line & { readonly at: string })[]) {
    await withTimeout(
      sql`
        with held as (
          update deployments set line_count = line_count + ${lines.length}
          where id = ${id} and run_generation = ${generation} and finished_at is null and line_count = ${after}
          returning 1
        )
        insert into deployment_log_lines (deployment_id, seq, at, phase, level, message)
        select ${id}, ${after}::integer + position, (line ->> 'at')::timestamptz, line ->> 'phase', line ->> 'level',
          line ->> 'message'
        from held, jsonb_array_elements(${sql.json(lines as never)}) with ordinality as t (line, position)`,
      timeoutMs,
    )
  },

  /** Up to `limit` lines that follow `after`, in order. */
  async read(id: string, after: number, limit: number): Promise<StoredLine[]> {
    return withTimeout(
      sql<StoredLine[]>`
        select seq, at, phase, level, message from deployment_log_lines
        where deployment_id = ${id} and seq > ${after} order by seq limit ${limit}`,
      timeoutMs,
    )
  },
})

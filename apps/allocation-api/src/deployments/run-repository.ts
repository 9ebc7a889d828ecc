import type { DeploymentResult } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { isUniqueViolation } from '@pool/runtime/database/errors'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import { hold, letGo } from '../allocation/sql.ts'
import type { Operation } from './domain/lifecycle.ts'
import type { DeploymentLogLine, KnownState, RunLease, RunState, StateLock } from './domain/types.ts'
import { deploymentSql, type RunRow, toRunState } from './sql.ts'

/** Times in milliseconds. */
export interface DeploymentRepositoryOptions {
  readonly timeoutMs: number
  readonly leaseMs: number
  /** How long a name that was active cannot be reserved after it was freed. */
  readonly coolOffMs: number
}

export interface RenewedLease {
  readonly id: string
  readonly isCancelled: boolean
  readonly isForced: boolean
  /** Another transaction has locked the row: the lease is neither renewed nor lost. */
  readonly isLocked: boolean
}

/** `name-lost`: the name belongs to another client now. `fqdn-remains`: another lineage has infrastructure. */
export type BeginResult = 'begun' | 'lease-lost' | 'name-lost' | 'fqdn-remains'

export type RunRepository = ReturnType<typeof createRunRepository>

/**
 * The writes of runs, and their leases. Each write checks the lease in the same statement: once the lease is lost, the
 * write changes nothing and returns false. The clock of the database decides.
 */
export const createRunRepository = (sql: Sql, { timeoutMs, leaseMs, coolOffMs }: DeploymentRepositoryOptions) => {
  const { now, milliseconds } = timeSql(sql)
  const { runColumns, historyColumns, appendHistory, makeClaimPermanent, markBucketCreated, dropUnusedClaim } =
    deploymentSql(sql)
  const leaseEnd = sql`${now} + ${milliseconds(leaseMs)}`
  const ownedBy = ({ id, generation }: RunLease) =>
    sql`d.id = ${id} and d.run_generation = ${generation} and d.finished_at is null`
  /** The row of the run, locked: a statement that changes other tables must not act on a lease that is being lost. */
  const lockOwned = (lease: RunLease) =>
    sql`select d.id, d.lineage_id, d.request, d.reservation_token_hash from deployments d
        where ${ownedBy(lease)} for update of d`
  const changesRow = async (statement: PromiseLike<{ readonly count: number }>): Promise<boolean> =>
    (await withTimeout(statement, timeoutMs)).count > 0
  const finished = sql`finished_at = greatest(${now}, started_at), run_expires_at = null`

  return {
    /** Claims up to `limit` runs whose lease expired at least `forMs` milliseconds ago, each as a new generation. */
    async claimExpired(limit: number, forMs: number): Promise<RunState[]> {
      const rows = await withTimeout(
        sql<RunRow[]>`
          with orphaned as (
            select id from deployments where finished_at is null and run_expires_at <= ${now} - ${milliseconds(forMs)}
            order by run_expires_at, id limit ${limit} for update skip locked
          )
          update deployments d set run_generation = d.run_generation + 1, run_expires_at = ${leaseEnd}
          from orphaned, lineages l where d.id = orphaned.id and l.id = d.lineage_id
          returning ${runColumns}`,
        timeoutMs,
      )
      return rows.map(toRunState)
    },

    /** Renews these leases. Those missing from the result are lost. A locked row does not hold up the other leases. */
    async renewLeases(leases: readonly RunLease[]): Promise<RenewedLease[]> {
      return withTimeout(
        sql<RenewedLease[]>`
          with runs as (
            select d.id, d.run_generation from deployments d
              join jsonb_to_recordset(${sql.json(leases as never)}) as run (id uuid, generation integer)
                on d.id = run.id and d.run_generation = run.generation
            where d.finished_at is null
          ), free as (
            select d.id from deployments d where d.id in (select id from runs) for no key update skip locked
          ), renewed as (
            update deployments d set run_expires_at = ${leaseEnd} from runs join free using (id)
            where d.id = runs.id and d.run_generation = runs.run_generation and d.finished_at is null
            returning d.id, d.cancelled_at is not null as is_cancelled, d.is_forced
          )
          select id, is_cancelled as "isCancelled", is_forced as "isForced", false as "isLocked" from renewed
          union all
          select id, false, false, true from runs where id not in (select id from free)`,
        timeoutMs,
      )
    },

    /** Lets any process claim the run at once. */
    async releaseLease(lease: RunLease): Promise<boolean> {
      return changesRow(sql`update deployments d set run_expires_at = ${now} where ${ownedBy(lease)}`)
    },

    async markStarted(lease: RunLease, status: 'provisioning' | 'destroying'): Promise<boolean> {
      return changesRow(sql`update deployments d set status = ${status} where ${ownedBy(lease)}`)
    },

    /**
     * Records that the lineage may have infrastructure: it holds its name, and its bucket claim becomes permanent. Call it
     * before Terraform starts.
     */
    async beginInfrastructure(lease: RunLease, moduleVersion: string): Promise<BeginResult> {
      const statement = sql<{ hasBegun: boolean }[]>`
        with owned as (${lockOwned(lease)}), named as (
          select l.pool_domain, l.subdomain, owned.reservation_token_hash as token_hash, l.id as lineage_id
          from owned join lineages l on l.id = owned.lineage_id where l.subdomain is not null
        ), held as (${sql.unsafe(hold('named'))}), lineage as (
          update lineages l set has_infrastructure = true,
            infrastructure_changed_at = case when l.has_infrastructure then l.infrastructure_changed_at else ${now} end
          from owned where l.id = owned.lineage_id and (l.subdomain is null or exists (select from held))
          returning l.id
        ), claims as (${makeClaimPermanent(sql`lineage`)}), used as (
          update deployments d set module = ${moduleVersion} from owned, lineage where d.id = owned.id
        )
        select exists (select from lineage) as "hasBegun" from owned`
      try {
        const [row] = await withTimeout(statement, timeoutMs)
        if (!row) return 'lease-lost'
        return row.hasBegun ? 'begun' : 'name-lost'
      } catch (error) {
        if (isUniqueViolation(error, 'lineages_fqdn_unique')) return 'fqdn-remains'
        throw error
      }
    },

    /**
     * Records that the state is empty but for the kept bucket: the lineage lets go of its name, and without a bucket of the
     * claim of one.
     */
    async clearInfrastructure(lease: RunLease, hasBucket: boolean): Promise<boolean> {
      return changesRow(sql`
        with owned as (${lockOwned(lease)}), lineage as (
          update lineages l set has_infrastructure = false, infrastructure_changed_at = ${now}, known_state = null
          from owned where l.id = owned.lineage_id
          returning l.id as lineage_id, l.pool_domain, l.subdomain
        ), claims as (
          update bucket_claims c set is_permanent = false from lineage
          where c.lineage_id = lineage.lineage_id and not c.is_created and not ${hasBucket}
        ), free as (${sql.unsafe(letGo('lineage', coolOffMs))})
        select from lineage`)
    },

    async recordLock(lease: RunLease, lock: StateLock | null): Promise<boolean> {
      return changesRow(sql`
        with owned as (${lockOwned(lease)})
        update lineages l set state_lock = ${lock === null ? null : sql.json(lock as never)}
        from owned where l.id = owned.lineage_id`)
    },

    /** Call it with each state that Terraform has written or is about to change. */
    async recordState(lease: RunLease, known: KnownState): Promise<boolean> {
      return changesRow(sql`
        with owned as (${lockOwned(lease)})
        update lineages l set known_state = ${sql.json(known as never)} from owned where l.id = owned.lineage_id`)
    },

    /** Records that the bucket of the deployment exists and comes from this lineage. */
    async recordBucket(lease: RunLease): Promise<boolean> {
      return changesRow(sql`with owned as (${lockOwned(lease)}) ${markBucketCreated(sql`owned`)}`)
    },

    async saveResult(lease: RunLease, result: DeploymentResult): Promise<boolean> {
      return changesRow(sql`
        update deployments d set result = ${sql.json(result as never)}, is_applied = true where ${ownedBy(lease)}`)
    },

    /**
     * Decides that the operation fails, whichever process runs it from now on. So what the run does next, such as
     * releasing the name, is safe even if its lease is lost in the meantime.
     */
    async markFailing(lease: RunLease, reason: string): Promise<boolean> {
      return changesRow(sql`update deployments d set pending_error = ${reason} where ${ownedBy(lease)}`)
    },

    /** Returns false also if the run was cancelled: the client has been promised that it ends. */
    async markReady(lease: RunLease): Promise<boolean> {
      return changesRow(sql`
        with ready as (
          update deployments d set status = 'ready', ${finished}
          where ${ownedBy(lease)} and d.cancelled_at is null and d.pending_error is null returning ${historyColumns}
        ), history as (${appendHistory(sql`ready`, 'ready', 'run')})
        select from ready`)
    },

    async markDestroyed(lease: RunLease): Promise<boolean> {
      return changesRow(sql`
        with destroyed as (
          update deployments d set status = 'destroyed', result = null, pending_error = null, ${finished}
          where ${ownedBy(lease)} returning ${historyColumns}
        ), claims as (${dropUnusedClaim(sql`destroyed`)}), history as (${appendHistory(sql`destroyed`, 'destroyed', 'run')})
        select from destroyed`)
    },

    /**
     * Call after `markFailing`. A bucket that was never created is free again, unless infrastructure is to get it.
     * `operation`: the last one, if this one did nothing.
     */
    async markFailed(lease: RunLease, operation: Operation | null = null): Promise<boolean> {
      return changesRow(sql`
        with owned as (${lockOwned(lease)}), claims as (${dropUnusedClaim(sql`owned`)}), failed as (
          update deployments d set status = 'failed', error = d.pending_error,
            operation = coalesce(${operation}, d.operation), ${finished}
          from owned where d.id = owned.id returning ${historyColumns}, d.error
        ), history as (${appendHistory(sql`failed`, 'failed', 'run', sql`error`)})
        select from failed`)
    },

    /**
     * Adds the lines that follow the first `after`. Does nothing if there are more lines already, so a call of unknown
     * outcome can be repeated; nor if the lease is lost. So `seq` has no gaps.
     */
    async appendLog(
      { id, generation }: RunLease,
      after: number,
      lines: readonly (DeploymentLogLine & { readonly at: string })[],
    ): Promise<void> {
      await withTimeout(
        sql`
          with owned as (
            update deployments set line_count = line_count + ${lines.length}
            where id = ${id} and run_generation = ${generation} and finished_at is null and line_count = ${after}
            returning 1
          )
          insert into deployment_log_lines (deployment_id, seq, at, phase, level, message)
          select ${id}, ${after}::integer + position, (line ->> 'at')::timestamptz, line ->> 'phase',
            line ->> 'level', line ->> 'message'
          from owned, jsonb_array_elements(${sql.json(lines as never)}) with ordinality as t (line, position)`,
        timeoutMs,
      )
    },
  }
}

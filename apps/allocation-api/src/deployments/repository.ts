import type { Deployment, DeploymentResult } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { timeSql } from '@pool/database/time-sql'
import { withTimeout } from '@pool/database/with-timeout'
import { type DuplicateRequest, duplicateRequest, type IdempotencyClaim } from '../idempotency/idempotency.ts'
import { idempotencySql } from '../idempotency/sql.ts'
import { type DeploymentRow, deploymentOf } from './domain/mapping.ts'
import { type OrderRecord, orderOfRecord } from './domain/record.ts'
import type { DeploymentSpec, Job, Run } from './domain/types.ts'

/** What a creation came to, as it is remembered under its Idempotency-Key. */
export type CreateSaid =
  | { readonly outcome: 'created'; readonly id: string }
  | { readonly outcome: 'bucket-conflict' | 'fqdn-conflict' }

export interface NewDeployment {
  readonly id: string
  readonly order: DeploymentSpec
  /** What is stored of the request: the order, and its keys redacted. */
  readonly record: OrderRecord
  readonly reservationToken: string | null
}

/** A run as it stands after its lease was renewed. */
export interface Held {
  readonly id: string
  readonly isCancelled: boolean
}

export interface DeploymentsPage {
  readonly status?: Deployment['status'] | undefined
  /** The number before which the page begins; undefined: the newest. */
  readonly before?: number | undefined
  readonly limit: number
}

interface JobRow extends Omit<Job, 'order'> {
  readonly request: OrderRecord
}

export type DeploymentStore = ReturnType<typeof createDeploymentStore>

/**
 * Deployments and the leases of those who work on them. A lease is compared inside each write: whoever has lost it
 * changes nothing, and is told so by `false`. The database's clock decides.
 */
export const createDeploymentStore = (
  sql: Sql,
  { timeoutMs, leaseMs }: { readonly timeoutMs: number; readonly leaseMs: number },
) => {
  const { now, milliseconds } = timeSql(sql)
  const { claimKey, storeAndReturn } = idempotencySql(sql)
  const lease = sql`${now} + ${milliseconds(leaseMs)}`
  const heldBy = ({ id, generation }: Run) =>
    sql`d.id = ${id} and d.run_generation = ${generation} and d.finished_at is null`
  const shown = sql`
    d.id, d.number, d.status, d.request, d.started_at as "startedAt", d.finished_at as "finishedAt",
    d.line_count as "numEvents", d.error, d.result`
  const changed = async (update: PromiseLike<{ readonly count: number }>): Promise<boolean> =>
    (await withTimeout(update, timeoutMs)).count > 0

  return {
    /** The lease of the new deployment is the maker's, generation 1. */
    async create(
      { id, order, record, reservationToken }: NewDeployment,
      claim: IdempotencyClaim | null,
    ): Promise<CreateSaid | DuplicateRequest> {
      const bucket = order.storage?.bucket ?? null
      const [row] = await withTimeout(
        sql<{ result: CreateSaid }[]>`
          with claim as (${claimKey(claim)}), bucket as (
            insert into deployment_buckets as b (bucket, sovereign_fqdn)
            select ${bucket}, ${order.sovereignFQDN} from claim where ${bucket}::text is not null
            on conflict (bucket) do update set sovereign_fqdn = excluded.sovereign_fqdn
            where b.sovereign_fqdn = excluded.sovereign_fqdn
            returning bucket
          ), allowed as (
            select from claim where ${bucket}::text is null or exists (select from bucket)
          ), made as (
            insert into deployments
              (id, status, request, sovereign_fqdn, reservation_token, started_at, run_expires_at)
            select ${id}, 'pending', ${sql.json(record as never)}, ${order.sovereignFQDN},
              ${reservationToken}, ${now}, ${lease} from allowed
            on conflict (sovereign_fqdn) where status <> 'failed' do nothing
            returning id
          ), result as (
            select case
              when made.id is not null then 'created'
              when exists (select from allowed) then 'fqdn-conflict'
              else 'bucket-conflict'
            end as outcome, made.id
            from claim left join made on true
          ), ${storeAndReturn}`,
        timeoutMs,
      )
      return row ? row.result : duplicateRequest
    },

    /** Whether this reservation is that of a deployment. */
    async hasProof(reservationToken: string): Promise<boolean> {
      const rows = await withTimeout(
        sql`select from deployments where reservation_token = ${reservationToken} limit 1`,
        timeoutMs,
      )
      return rows.length > 0
    },

    /** Takes up to `limit` deployments whose lease has run out, each as a new generation. */
    async take(limit: number): Promise<Job[]> {
      const rows = await withTimeout(
        sql<JobRow[]>`
          with gone as (
            select id from deployments where finished_at is null and run_expires_at <= ${now}
            order by run_expires_at limit ${limit} for update skip locked
          )
          update deployments d set run_generation = d.run_generation + 1, run_expires_at = ${lease}
          from gone where d.id = gone.id
          returning d.id, d.run_generation as generation, d.request, d.reservation_token as "reservationToken",
            d.result, d.cancelled_at is not null as "isCancelled", d.pending_error as "failure", d.line_count as "lineCount"`,
        timeoutMs,
      )
      return rows.map(({ request, ...rest }) => ({ ...rest, order: orderOfRecord(request) }))
    },

    /** Renews the leases of these runs; those that are not in the answer are lost. */
    async hold(runs: readonly Run[]): Promise<Held[]> {
      return withTimeout(
        sql<Held[]>`
          update deployments d set run_expires_at = ${lease}
          from jsonb_to_recordset(${sql.json(runs as never)}) as run (id uuid, generation integer)
          where d.id = run.id and d.run_generation = run.generation and d.finished_at is null
          returning d.id, d.cancelled_at is not null as "isCancelled"`,
        timeoutMs,
      )
    },

    /** Lets anybody take it at once. */
    async giveUp(run: Run): Promise<boolean> {
      return changed(sql`update deployments d set run_expires_at = ${now} where ${heldBy(run)}`)
    },

    async begin(run: Run): Promise<boolean> {
      return changed(sql`update deployments d set status = 'provisioning' where ${heldBy(run)}`)
    },

    async recordResult(run: Run, result: DeploymentResult): Promise<boolean> {
      return changed(sql`update deployments d set result = ${sql.json(result as never)} where ${heldBy(run)}`)
    },

    /**
     * It is to fail, whoever works on it from now on. So what a run does after that, such as freeing the name, harms
     * nobody, even when its lease is lost by the time that it takes effect.
     */
    async condemn(run: Run, reason: string): Promise<boolean> {
      return changed(sql`update deployments d set pending_error = ${reason} where ${heldBy(run)}`)
    },

    /** False also when somebody has cancelled it: they have been told that it ends. */
    async ready(run: Run): Promise<boolean> {
      return changed(sql`
        update deployments d set status = 'ready', finished_at = greatest(${now}, started_at), run_expires_at = null
        where ${heldBy(run)} and d.cancelled_at is null and d.pending_error is null`)
    },

    /** Of one that is condemned. */
    async failed(run: Run): Promise<boolean> {
      return changed(sql`
        update deployments d set status = 'failed', error = d.pending_error, finished_at = greatest(${now}, started_at),
          run_expires_at = null
        where ${heldBy(run)}`)
    },

    /** Asks whoever works on it to stop; null when it is finished, or is not there. */
    async cancel(id: string): Promise<Deployment | null> {
      const [row] = await withTimeout(
        sql<DeploymentRow[]>`
          update deployments d set cancelled_at = coalesce(cancelled_at, ${now})
          where d.id = ${id} and d.finished_at is null returning ${shown}`,
        timeoutMs,
      )
      return row ? deploymentOf(row) : null
    },

    /** Forgets a finished one and its lines; the claim to its bucket stays. */
    async remove(id: string): Promise<boolean> {
      return changed(sql`delete from deployments where id = ${id} and finished_at is not null`)
    },

    async read(id: string): Promise<Deployment | null> {
      const [row] = await withTimeout(
        sql<DeploymentRow[]>`select ${shown} from deployments d where d.id = ${id}`,
        timeoutMs,
      )
      return row ? deploymentOf(row) : null
    },

    /** The name that a deployment holds and the proof of it; null: it has none, or is not there. */
    async heldName(id: string): Promise<Pick<Job, 'order' | 'reservationToken'> | null> {
      const [row] = await withTimeout(
        sql<{ request: OrderRecord; reservationToken: string | null }[]>`
          select request, reservation_token as "reservationToken" from deployments where id = ${id}`,
        timeoutMs,
      )
      return row ? { order: orderOfRecord(row.request), reservationToken: row.reservationToken } : null
    },

    /** Newest first, each with its number, by which the reading goes on. */
    async page({ status, before, limit }: DeploymentsPage): Promise<{ number: number; deployment: Deployment }[]> {
      const rows = await withTimeout(
        sql<DeploymentRow[]>`
          select ${shown} from deployments d
          where true ${status ? sql`and d.status = ${status}` : sql``}
            ${before === undefined ? sql`` : sql`and d.number < ${before}`}
          order by d.number desc limit ${limit}`,
        timeoutMs,
      )
      return rows.map(row => ({ number: row.number, deployment: deploymentOf(row) }))
    },

    async count(): Promise<{ status: Deployment['status']; count: number }[]> {
      return withTimeout(
        sql<{ status: Deployment['status']; count: number }[]>`select status, count(*) from deployments group by 1`,
        timeoutMs,
      )
    },
  }
}

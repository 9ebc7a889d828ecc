import type { Deployment, DeploymentResult, DeploymentStatus } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import { timeSql } from '@pool/database/time-sql'
import { withTimeout } from '@pool/database/with-timeout'
import { type DuplicateRequest, duplicateRequest, type IdempotencyClaim } from '../idempotency/idempotency.ts'
import type { SealedToken } from '../idempotency/sealed-token.ts'
import { idempotencySql } from '../idempotency/sql.ts'
import { type DeploymentRecord, fromRecord } from './domain/spec.ts'
import type { DeploymentLogLine, RunLease, RunState, StoredLogLine } from './domain/types.ts'

/** The decision on a request as stored under its Idempotency-Key. */
export type StoredCreateDecision =
  | { readonly outcome: 'created'; readonly id: string }
  | { readonly outcome: 'bucket-conflict' | 'fqdn-conflict' }

export interface NewDeployment {
  readonly id: string
  /** SHA-256 of the deployment token. */
  readonly tokenHash: Buffer
  readonly record: DeploymentRecord
  readonly reservationTokenHash: Buffer | null
}

export interface RenewedLease {
  readonly id: string
  readonly isCancelled: boolean
}

export interface DeploymentPageQuery {
  readonly status?: DeploymentStatus | undefined
  /** Only deployments with a lower number; undefined for the first page. */
  readonly before?: number | undefined
  readonly limit: number
}

export interface StatusCount {
  readonly status: DeploymentStatus
  readonly count: number
}

interface DeploymentRow {
  readonly id: string
  readonly number: number
  readonly status: DeploymentStatus
  readonly request: DeploymentRecord
  readonly startedAt: Date
  readonly finishedAt: Date | null
  readonly numEvents: number
  readonly error: string | null
  readonly result: DeploymentResult | null
}

interface RunRow extends Omit<RunState, 'spec'> {
  readonly request: DeploymentRecord
}

const toDeployment = (row: DeploymentRow): Deployment => {
  const { sovereignFQDN, region, storage } = row.request
  return {
    id: row.id,
    status: row.status,
    startedAt: row.startedAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
    sovereignFQDN,
    region,
    objectStorageRegion: storage?.region ?? '',
    objectStorageBucket: storage?.bucket ?? '',
    numEvents: row.numEvents,
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.result === null ? {} : { result: row.result }),
  }
}

export type DeploymentRepository = ReturnType<typeof createDeploymentRepository>

/**
 * Deployments, their logs and the leases of their runs. Each write of a run checks its lease in the same statement: once
 * the lease is lost, the write changes nothing and returns false. The clock of the database decides.
 */
export const createDeploymentRepository = (
  sql: Sql,
  { timeoutMs, leaseMs }: { readonly timeoutMs: number; readonly leaseMs: number },
) => {
  const { now, milliseconds } = timeSql(sql)
  const { claimKey, noClaim, storeAndReturn } = idempotencySql(sql)
  const leaseEnd = sql`${now} + ${milliseconds(leaseMs)}`
  const ownedBy = ({ id, generation }: RunLease) =>
    sql`d.id = ${id} and d.run_generation = ${generation} and d.finished_at is null`
  const columns = sql`
    d.id, d.number, d.status, d.request, d.started_at as "startedAt", d.finished_at as "finishedAt",
    d.line_count as "numEvents", d.error, d.result`
  const changesRow = async (statement: PromiseLike<{ readonly count: number }>): Promise<boolean> =>
    (await withTimeout(statement, timeoutMs)).count > 0

  return {
    /**
     * The new deployment is leased to the caller as generation 1. `token` is its deployment token, for a replay under the
     * key of the claim.
     */
    async insert(
      { id, tokenHash, record, reservationTokenHash }: NewDeployment,
      claim: IdempotencyClaim | null,
      token: SealedToken | null,
    ): Promise<StoredCreateDecision | DuplicateRequest> {
      const bucket = record.storage?.bucket ?? null
      const [row] = await withTimeout(
        sql<{ result: StoredCreateDecision }[]>`
          with claim as (${claim ? claimKey(claim) : noClaim}), bucket as (
            insert into deployment_buckets as b (bucket, sovereign_fqdn)
            select ${bucket}, ${record.sovereignFQDN} from claim where ${bucket}::text is not null
            on conflict (bucket) do update set sovereign_fqdn = excluded.sovereign_fqdn
            where b.sovereign_fqdn = excluded.sovereign_fqdn
            returning bucket
          ), allowed as (
            select from claim where ${bucket}::text is null or exists (select from bucket)
          ), inserted as (
            insert into deployments
              (id, token_hash, status, request, sovereign_fqdn, reservation_token_hash, started_at, run_expires_at)
            select ${id}, ${tokenHash}, 'pending', ${sql.json(record as never)}, ${record.sovereignFQDN},
              ${reservationTokenHash}, ${now}, ${leaseEnd} from allowed
            on conflict (sovereign_fqdn) where status <> 'failed' do nothing
            returning id
          ), result as (
            select case
              when inserted.id is not null then 'created'
              when exists (select from allowed) then 'fqdn-conflict'
              else 'bucket-conflict'
            end as outcome, inserted.id
            from claim left join inserted on true
          ), ${storeAndReturn(token && { success: 'created', token })}`,
        timeoutMs,
      )
      return row ? row.result : duplicateRequest
    },

    /** Whether a deployment has this reservation. */
    async hasReservation(reservationTokenHash: Buffer): Promise<boolean> {
      const rows = await withTimeout(
        sql`select from deployments where reservation_token_hash = ${reservationTokenHash} limit 1`,
        timeoutMs,
      )
      return rows.length > 0
    },

    /** Claims up to `limit` deployments whose lease has expired, each as a new generation. */
    async claimExpired(limit: number): Promise<RunState[]> {
      const rows = await withTimeout(
        sql<RunRow[]>`
          with orphaned as (
            select id from deployments where finished_at is null and run_expires_at <= ${now}
            order by run_expires_at limit ${limit} for update skip locked
          )
          update deployments d set run_generation = d.run_generation + 1, run_expires_at = ${leaseEnd}
          from orphaned where d.id = orphaned.id
          returning d.id, d.run_generation as generation, d.request, d.reservation_token_hash as "reservationTokenHash",
            d.result, d.cancelled_at is not null as "isCancelled", d.pending_error as "pendingError",
            d.line_count as "lineCount"`,
        timeoutMs,
      )
      return rows.map(({ request, ...state }) => ({ ...state, spec: fromRecord(request) }))
    },

    /** Renews these leases. Those missing from the result are lost. */
    async renewLeases(leases: readonly RunLease[]): Promise<RenewedLease[]> {
      return withTimeout(
        sql<RenewedLease[]>`
          update deployments d set run_expires_at = ${leaseEnd}
          from jsonb_to_recordset(${sql.json(leases as never)}) as run (id uuid, generation integer)
          where d.id = run.id and d.run_generation = run.generation and d.finished_at is null
          returning d.id, d.cancelled_at is not null as "isCancelled"`,
        timeoutMs,
      )
    },

    /** Lets any process claim the deployment at once. */
    async releaseLease(lease: RunLease): Promise<boolean> {
      return changesRow(sql`update deployments d set run_expires_at = ${now} where ${ownedBy(lease)}`)
    },

    async markProvisioning(lease: RunLease): Promise<boolean> {
      return changesRow(sql`update deployments d set status = 'provisioning' where ${ownedBy(lease)}`)
    },

    async saveResult(lease: RunLease, result: DeploymentResult): Promise<boolean> {
      return changesRow(sql`update deployments d set result = ${sql.json(result as never)} where ${ownedBy(lease)}`)
    },

    /**
     * Decides that the deployment fails, whichever process runs it from now on. So what the run does next, such as
     * releasing the name, is safe even if its lease is lost in the meantime.
     */
    async markFailing(lease: RunLease, reason: string): Promise<boolean> {
      return changesRow(sql`update deployments d set pending_error = ${reason} where ${ownedBy(lease)}`)
    },

    /** Returns false also if the deployment was cancelled: the client has been promised that it ends. */
    async markReady(lease: RunLease): Promise<boolean> {
      return changesRow(sql`
        update deployments d set status = 'ready', finished_at = greatest(${now}, started_at), run_expires_at = null
        where ${ownedBy(lease)} and d.cancelled_at is null and d.pending_error is null`)
    },

    /** Call after `markFailing`. */
    async markFailed(lease: RunLease): Promise<boolean> {
      return changesRow(sql`
        update deployments d set status = 'failed', error = d.pending_error,
          finished_at = greatest(${now}, started_at), run_expires_at = null
        where ${ownedBy(lease)}`)
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

    /** Up to `limit` lines that follow `after`, in order. */
    async readLog(id: string, after: number, limit: number): Promise<StoredLogLine[]> {
      return withTimeout(
        sql<StoredLogLine[]>`
          select seq, at, phase, level, message from deployment_log_lines
          where deployment_id = ${id} and seq > ${after} order by seq limit ${limit}`,
        timeoutMs,
      )
    },

    /** Marks an unfinished deployment as cancelled; null if it is finished or does not exist. */
    async cancel(id: string): Promise<Deployment | null> {
      const [row] = await withTimeout(
        sql<DeploymentRow[]>`
          update deployments d set cancelled_at = coalesce(cancelled_at, ${now})
          where d.id = ${id} and d.finished_at is null returning ${columns}`,
        timeoutMs,
      )
      return row ? toDeployment(row) : null
    },

    /** Deletes a finished deployment and its log. Its bucket stays bound to its FQDN. */
    async delete(id: string): Promise<boolean> {
      return changesRow(sql`delete from deployments where id = ${id} and finished_at is not null`)
    },

    async find(id: string): Promise<Deployment | null> {
      const [row] = await withTimeout(
        sql<DeploymentRow[]>`select ${columns} from deployments d where d.id = ${id}`,
        timeoutMs,
      )
      return row ? toDeployment(row) : null
    },

    async findReservation(id: string): Promise<Pick<RunState, 'spec' | 'reservationTokenHash'> | null> {
      const [row] = await withTimeout(
        sql<{ request: DeploymentRecord; reservationTokenHash: Buffer | null }[]>`
          select request, reservation_token_hash as "reservationTokenHash" from deployments where id = ${id}`,
        timeoutMs,
      )
      return row ? { spec: fromRecord(row.request), reservationTokenHash: row.reservationTokenHash } : null
    },

    /** Newest first, each with the number that continues the list. */
    async list({ status, before, limit }: DeploymentPageQuery): Promise<{ number: number; deployment: Deployment }[]> {
      const rows = await withTimeout(
        sql<DeploymentRow[]>`
          select ${columns} from deployments d
          where true ${status ? sql`and d.status = ${status}` : sql``}
            ${before === undefined ? sql`` : sql`and d.number < ${before}`}
          order by d.number desc limit ${limit}`,
        timeoutMs,
      )
      return rows.map(row => ({ number: row.number, deployment: toDeployment(row) }))
    },

    async countByStatus(): Promise<StatusCount[]> {
      return withTimeout(sql<StatusCount[]>`select status, count(*) from deployments group by 1`, timeoutMs)
    },
  }
}

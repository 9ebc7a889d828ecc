import type { Deployment, DeploymentHistoryEntry, DeploymentResult, DeploymentStatus } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { isUniqueViolation } from '@pool/runtime/database/errors'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import type { Execute, Guard, Writer } from '@pool/runtime/database/writer'
import { letGo } from '../allocation/sql.ts'
import {
  type DuplicateRequest,
  duplicateRequest,
  type IdempotencyClaim,
  IS_NEW_KEY,
  isDuplicateKey,
  storeOutcomes,
} from '../idempotency/idempotency.ts'
import { type Page, type PageQuery, readPage } from '../lib/paginate.ts'
import type { Caller, PoolName } from '../naming/naming.ts'
import type { Operation, Situation } from './domain/lifecycle.ts'
import { type DeploymentRecord, fromRecord } from './domain/spec.ts'
import type { DeploymentSpec, KnownState, RunState, StateLock, StoredLogLine } from './domain/types.ts'
import type { Proof } from './fqdn.ts'
import type { DeploymentRepositoryOptions } from './run-repository.ts'
import { deploymentSql, type RunRow, toRunState } from './sql.ts'

/** The decision on a request as stored under its Idempotency-Key. */
export type StoredCreateDecision =
  | { readonly outcome: 'created'; readonly id: string }
  | { readonly outcome: 'bucket-conflict' | 'fqdn-conflict' }

export interface NewDeployment {
  readonly id: string
  readonly lineageId: string
  readonly name: PoolName | null
  readonly record: DeploymentRecord
  readonly tokenHash: Buffer
  readonly reservationTokenHash: Buffer | null
  readonly proof: Proof | null
  /** Whether its bucket exists already. */
  readonly adoptsBucket: boolean
  /** Of the request, for the history. */
  readonly caller: Caller
}

export interface NewOperation {
  readonly operation: 'apply' | 'destroy'
  readonly record: DeploymentRecord
  readonly proof: Proof | null
  /** Whether its bucket exists already. */
  readonly adoptsBucket: boolean
  /** Whether the caller has removed what earlier runs created and the state does not have. */
  readonly unfinishedRemoved?: boolean
  /** Of the request, for the history. */
  readonly caller: Caller
}

/** A deployment as a call finds it. Its generation is an optimistic lock: each accepted call starts a new one. */
export interface DeploymentSituation extends Situation {
  readonly id: string
  readonly generation: number
  readonly spec: DeploymentSpec
  readonly lineageId: string
  readonly tokenHash: Buffer
  readonly reservationTokenHash: Buffer | null
  readonly stateLock: StateLock | null
  readonly knownState: KnownState | null
  /** Whether a run of the lineage is known to have created the bucket. */
  readonly hasCreatedBucket: boolean
  readonly isAbandoned: boolean
}

export interface DeploymentPageQuery {
  readonly status?: DeploymentStatus | undefined
  /** Part of the FQDN or of the organisation, in any case. */
  readonly search?: string | undefined
  /** Only deployments with a lower number; undefined for the first page. */
  readonly before?: number | undefined
  readonly limit: number
}

export interface StatusCount {
  readonly status: DeploymentStatus
  readonly count: number
}

/** `changed`: another call was accepted since the situation was read. */
export type AcceptResult =
  | { readonly kind: 'accepted'; readonly state: RunState }
  | { readonly kind: 'changed' | 'bucket-conflict' | 'fqdn-conflict' }

interface DeploymentRow {
  readonly id: string
  readonly number: number
  readonly status: DeploymentStatus
  readonly operation: Operation
  readonly request: DeploymentRecord
  readonly startedAt: Date
  readonly finishedAt: Date | null
  readonly numEvents: number
  readonly error: string | null
  readonly result: DeploymentResult | null
  readonly module: string | null
  readonly keptBucket: string | null
}

const toDeployment = (row: DeploymentRow): Deployment => {
  const { orgName, orgEmail, sovereignFQDN, providers, region, storage } = row.request
  return {
    id: row.id,
    status: row.status,
    operation: row.operation,
    startedAt: row.startedAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
    orgName,
    orgEmail,
    sovereignFQDN,
    providers: [...providers],
    region,
    ...(row.module === null ? {} : { module: row.module }),
    objectStorageRegion: storage?.region ?? '',
    objectStorageBucket: storage?.bucket ?? '',
    ...(row.keptBucket === null ? {} : { keptBucket: row.keptBucket }),
    numEvents: row.numEvents,
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.result === null ? {} : { result: row.result }),
  }
}

export interface DeploymentHistoryQuery extends PageQuery {
  readonly deployment?: string | undefined
  readonly fqdn?: string | undefined
}

interface HistoryRow {
  readonly id: number
  readonly at: Date
  readonly event: DeploymentHistoryEntry['event']
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

/** The rejection that a violated constraint means; rethrows every other error. */
const toConflict = (error: unknown): 'bucket-conflict' | 'fqdn-conflict' => {
  if (isUniqueViolation(error, 'bucket_claims_pkey')) return 'bucket-conflict'
  if (isUniqueViolation(error, 'deployments_fqdn_unique')) return 'fqdn-conflict'
  throw error
}

export type DeploymentRepository = ReturnType<typeof createDeploymentRepository>

/**
 * Deployments as requests create, find and change them. The clock of the database decides. No change takes effect after the
 * deadline of its request; its locks, in their order: deployments, domain_challenges, lineages,
 * pool_allocations, bucket_claims, idempotency_keys. A lineage has one deployment, whose row is locked first.
 */
export const createDeploymentRepository = (
  sql: Sql,
  writer: Pick<Writer, 'write'>,
  { timeoutMs, leaseMs, coolOffMs }: DeploymentRepositoryOptions,
) => {
  const { now, milliseconds } = timeSql(sql)
  const parts = deploymentSql(sql)
  const { runColumns, historyColumns, appendHistory, bindProof } = parts
  const { claimBucket, hasCreatedBucket, markBucketCreated, dropProvisionalClaim } = parts
  /** The first part of each statement. The others select from it. */
  const begin = ({ limitLockWait }: Guard) => sql`select where ${limitLockWait}`
  /** The same with an Idempotency-Key: a duplicate undoes the statement. `result` is stored, once per row of `rows`. */
  const beginWithKey = (guard: Guard, key: IdempotencyClaim | null) => sql`
    input as (
      select decode(${key?.keyHash ?? null}, 'hex') as key_hash, decode(${key?.fingerprint ?? null}, 'hex') as fingerprint,
        ${key?.expectedRevision ?? 0}::integer as revision, decode(${key?.salt ?? null}, 'hex') as salt
      where ${guard.limitLockWait}
    ), claim as (select * from input where case when ${sql.unsafe(IS_NEW_KEY)} then true else reject_duplicate_key() end)`
  const storeResult = (result: object, rows: Fragment) => sql`
    outcomes as (select claim.*, ${sql.json(result as never)}::jsonb as result from claim, ${rows}),
    stored as (${sql.unsafe(storeOutcomes('outcomes'))})`
  const detectDuplicate = (error: unknown): DuplicateRequest => {
    if (isDuplicateKey(error)) return duplicateRequest
    throw error
  }
  /** True, or an error that undoes the statement. `written` are all of its parts that write. */
  const assertInTime = (guard: Guard, written: readonly string[]) =>
    sql`in_time as materialized (select ${guard.assertInTime(written)})`
  const leaseEnd = sql`${now} + ${milliseconds(leaseMs)}`
  const columns = sql`
    d.id, d.number, d.status, d.operation, d.request, d.started_at as "startedAt", d.finished_at as "finishedAt",
    d.line_count as "numEvents", d.error, d.result, d.module, (
      select c.bucket from bucket_claims c where c.lineage_id = d.lineage_id and c.is_permanent order by c.bucket limit 1
    ) as "keptBucket"`
  /** A finished deployment that no call has changed since it was read. */
  const unchanged = ({ id, generation }: Pick<DeploymentSituation, 'id' | 'generation'>) =>
    sql`d.id = ${id} and d.run_generation = ${generation} and d.finished_at is not null`
  const write = <Result>(id: string, execute: Execute<Result>): Promise<Result> =>
    writer.write(`deployment ${id}`, execute)
  const changesRow = async (id: string, execute: Execute<{ readonly count: number }>): Promise<boolean> =>
    (await write(id, execute)).count > 0

  return {
    /**
     * The new deployment is leased to the caller as generation 1. It starts a lineage, which claims its bucket.
     */
    async insert(
      deployment: NewDeployment,
      claim: IdempotencyClaim | null,
    ): Promise<StoredCreateDecision | DuplicateRequest> {
      const { id, lineageId, name, record, tokenHash, reservationTokenHash, proof, adoptsBucket, caller } = deployment
      const statement: Execute<StoredCreateDecision[]> = (lane, guard) => lane`
        with ${beginWithKey(guard, claim)}, inserted as (
          insert into deployments
            (id, lineage_id, status, request, sovereign_fqdn, token_hash, reservation_token_hash, started_at, run_expires_at)
          select ${id}, ${lineageId}, 'pending', ${sql.json(record as never)}, ${record.sovereignFQDN}, ${tokenHash},
            ${reservationTokenHash}, ${now}, ${leaseEnd} from claim
          on conflict (sovereign_fqdn) where status in ('pending', 'provisioning', 'ready') do nothing
          returning id, lineage_id, sovereign_fqdn, request
        ), history as (${appendHistory(sql`inserted`, 'created', caller)}),
        challenges as (${bindProof(proof, sql`inserted`)}), lineage as (
          insert into lineages (id, sovereign_fqdn, pool_domain, subdomain, infrastructure_changed_at, created_at)
          select lineage_id, sovereign_fqdn, ${name?.poolDomain ?? null}, ${name?.subdomain ?? null}, ${now}, ${now}
          from inserted
          returning 1
        ), claimed as (${claimBucket(record.storage?.bucket ?? null, adoptsBucket, sql`inserted`)}), outcomes as (
          select claim.*, jsonb_build_object('outcome', 'created', 'id', id) as result from claim, inserted
        ), stored as (${sql.unsafe(storeOutcomes('outcomes'))}),
        ${assertInTime(guard, ['inserted', 'history', 'challenges', 'lineage', 'claimed', 'stored'])}
        select case when inserted.id is null then 'fqdn-conflict' else 'created' end as outcome, inserted.id
        from claim left join inserted on true, in_time`
      try {
        const [row] = await writer.write(`deployment of ${record.sovereignFQDN}`, statement)
        return row ?? duplicateRequest
      } catch (error) {
        if (isDuplicateKey(error)) return duplicateRequest
        return { outcome: toConflict(error) }
      }
    },

    /** Whether a deployment has this reservation. */
    async hasReservation(tokenHash: Buffer): Promise<boolean> {
      const rows = await withTimeout(
        sql`select from deployments where reservation_token_hash = ${tokenHash} limit 1`,
        timeoutMs,
      )
      return rows.length > 0
    },

    /** Whether another lineage has infrastructure under the FQDN. */
    async hasRemains(sovereignFQDN: string, exceptLineage: string): Promise<boolean> {
      const rows = await withTimeout(
        sql`
          select from lineages l
          where l.sovereign_fqdn = ${sovereignFQDN} and l.archived_at is null and l.has_infrastructure
            and l.id <> ${exceptLineage}::uuid
          limit 1`,
        timeoutMs,
      )
      return rows.length > 0
    },

    /**
     * What a new deployment of the FQDN would find: one that is ready or becomes ready, or else infrastructure of an earlier
     * one. Of one moment: between two reads, a deployment could begin, and its own infrastructure would be found.
     */
    async findOccupant(sovereignFQDN: string): Promise<'deployment' | 'infrastructure' | null> {
      const [row] = await withTimeout(
        sql<{ occupant: 'deployment' | 'infrastructure' | null }[]>`
          select case
            when exists (
              select from deployments
              where sovereign_fqdn = ${sovereignFQDN} and status in ('pending', 'provisioning', 'ready')) then 'deployment'
            when exists (
              select from lineages
              where sovereign_fqdn = ${sovereignFQDN} and archived_at is null and has_infrastructure) then 'infrastructure'
          end as occupant`,
        timeoutMs,
      )
      return row?.occupant ?? null
    },

    async findSituation(id: string): Promise<DeploymentSituation | null> {
      const [row] = await withTimeout(
        sql<(Omit<DeploymentSituation, 'spec'> & { request: DeploymentRecord })[]>`
          select d.id, d.run_generation as generation, d.status, d.operation, d.request, d.lineage_id as "lineageId",
            d.token_hash as "tokenHash", d.reservation_token_hash as "reservationTokenHash",
            d.abandoned_at is not null as "isAbandoned", l.state_lock as "stateLock",
            l.has_infrastructure as "hasInfrastructure", l.known_state as "knownState",
            ${hasCreatedBucket} as "hasCreatedBucket",
            exists (select from bucket_claims c where c.lineage_id = l.id and c.is_permanent) as "hasBucket"
          from deployments d join lineages l on l.id = d.lineage_id where d.id = ${id}`,
        timeoutMs,
      )
      if (!row) return null
      const { request, ...situation } = row
      return { ...situation, spec: fromRecord(request) }
    },

    /**
     * Accepts an apply or a destroy of a finished deployment: its first run is leased to the caller, and every run of it
     * has this input. An apply claims the bucket, which is new to the deployment or whose claim an operator lifted.
     */
    async accept(
      situation: DeploymentSituation,
      { operation, record, proof, adoptsBucket, unfinishedRemoved = false, caller }: NewOperation,
      key: IdempotencyClaim | null,
    ): Promise<AcceptResult | DuplicateRequest> {
      const bucket = operation === 'apply' ? (record.storage?.bucket ?? null) : null
      const details = [
        unfinishedRemoved && 'What was unfinished is removed.',
        record.plan && `Plan ${record.plan.hash}.`,
      ]
      const detail = details.filter(Boolean).join(' ') || null
      const statement: Execute<RunRow[]> = (lane, guard) => lane`
        with ${beginWithKey(guard, key)}, accepted as (
          update deployments d set operation = ${operation}, request = ${sql.json(record as never)}, status = ${operation === 'apply' ? 'pending' : 'destroying'},
            run_generation = d.run_generation + 1, operation_generation = d.run_generation + 1,
            reservation_token_hash = ${situation.reservationTokenHash}, run_expires_at = ${leaseEnd}, is_applied = false, pending_error = null, error = null, finished_at = null,
            cancelled_at = null, is_forced = false
          from claim where ${unchanged(situation)} and d.abandoned_at is null
          returning d.*
        ), history as (${appendHistory(sql`accepted`, `${operation}-requested`, caller, detail)}),
        confirmed as (
          update lineages l set known_state = l.known_state - 'unfinished'
          from accepted where ${unfinishedRemoved} and l.id = accepted.lineage_id returning 1
        ),
        challenges as (${bindProof(proof, sql`accepted`)}),
        claimed as (${claimBucket(bucket, adoptsBucket, sql`accepted`)}),
        adopted as (${markBucketCreated(sql`(select * from accepted where ${adoptsBucket})`)}),
        ${storeResult({ kind: 'started', status: operation === 'apply' ? 'provisioning' : 'destroying' }, sql`accepted`)},
        ${assertInTime(guard, ['accepted', 'history', 'confirmed', 'challenges', 'claimed', 'adopted', 'stored'])}
        select ${runColumns} from in_time, accepted d join lineages l on l.id = d.lineage_id`
      try {
        const [row] = await write(situation.id, statement)
        if (!row) return { kind: 'changed' }
        // The statement sees neither its own claim nor its own confirmation.
        const hasCreatedBucket = row.hasCreatedBucket || adoptsBucket
        const { unfinished, ...known } = row.knownState ?? {}
        const knownState = unfinished && unfinishedRemoved ? (known as KnownState) : row.knownState
        return { kind: 'accepted', state: { ...toRunState(row), hasCreatedBucket, knownState } }
      } catch (error) {
        if (isDuplicateKey(error)) return duplicateRequest
        return { kind: toConflict(error) }
      }
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

    /** Marks the run in progress as cancelled; null if there is none. The result for the key is that of either. The history has the first cancellation only. */
    async cancel(
      id: string,
      caller: Caller,
      key: IdempotencyClaim | null = null,
      isForced = false,
    ): Promise<Deployment | DuplicateRequest | null> {
      const rows = await write(
        id,
        (lane, guard) => lane<DeploymentRow[]>`
          with ${beginWithKey(guard, key)}, running as (
            select ${historyColumns}, d.cancelled_at is null as is_first from claim, deployments d
            where d.id = ${id} and d.finished_at is null for update of d
          ), history as (${appendHistory(sql`(select * from running where is_first)`, 'cancelled', caller)}),
          cancelled as (
            update deployments d set cancelled_at = coalesce(d.cancelled_at, ${now}), is_forced = d.is_forced or ${isForced}
            from running where d.id = running.id returning ${columns}
          ), ${storeResult({ kind: 'cancelling' }, sql`(select) always`)},
          ${assertInTime(guard, ['history', 'cancelled', 'stored'])}
          select cancelled.* from in_time left join cancelled on true`,
      ).catch(detectDuplicate)
      if ('kind' in rows) return rows
      return rows[0]?.id ? toDeployment(rows[0]) : null
    },

    /** From now on, only `delete` changes the deployment. Can be repeated. */
    async markAbandoned(situation: DeploymentSituation, caller: Caller): Promise<boolean> {
      return changesRow(
        situation.id,
        (lane, guard) => lane`
        with claim as (${begin(guard)}), abandoned as (
          select ${historyColumns}, d.abandoned_at is null as is_first from claim, deployments d
          where ${unchanged(situation)} for update of d
        ), history as (${appendHistory(sql`(select * from abandoned where is_first)`, 'abandoned', caller)}),
        updated as (
          update deployments d set abandoned_at = coalesce(d.abandoned_at, ${now})
          from abandoned where d.id = abandoned.id returning 1
        ), ${assertInTime(guard, ['history', 'updated'])}
        select from updated, in_time`,
      )
    },

    /**
     * Deletes a finished deployment and its log. Its lineage remains if it owns a bucket or, as the record of who owned
     * it, if its infrastructure was abandoned. An abandoned lineage lets go of its name. `detail`: for the history.
     */
    async delete(situation: DeploymentSituation, caller: Caller, detail: string | null): Promise<boolean> {
      return changesRow(
        situation.id,
        (lane, guard) => lane`
        with claim as (${begin(guard)}), deleted as (
          delete from deployments d using claim where ${unchanged(situation)} returning ${historyColumns}, d.abandoned_at
        ), history as (${appendHistory(sql`deleted`, 'deleted', caller, detail)}), claims as (${dropProvisionalClaim(sql`deleted`)}), archived as (
          update lineages l set archived_at = ${now}
          from deleted where l.id = deleted.lineage_id and l.has_infrastructure and deleted.abandoned_at is not null
          returning l.id as lineage_id, l.pool_domain, l.subdomain
        ), free as (${sql.unsafe(letGo('archived', coolOffMs))}), empty as (
          delete from lineages l using deleted
          where l.id = deleted.lineage_id and not l.has_infrastructure
            and not exists (select from bucket_claims c where c.lineage_id = l.id and c.is_permanent)
          returning 1
        ), ${assertInTime(guard, ['deleted', 'history', 'claims', 'archived', 'free', 'empty'])}
        select from deleted, in_time`,
      )
    },

    /** Of the lock that no longer exists. */
    async clearLock(
      { id, lineageId }: DeploymentSituation,
      lock: { readonly id: string; readonly isLifted: boolean },
      caller: Caller,
      key: IdempotencyClaim | null,
    ): Promise<DuplicateRequest | null> {
      const deployment = sql`(select ${historyColumns} from deployments d where d.id = ${id})`
      return write<DuplicateRequest | null>(id, (lane, guard) =>
        lane`
          with ${beginWithKey(guard, key)},
          history as (${appendHistory(sql`claim, ${deployment}`, 'unlocked', caller, `Lock ${lock.id}`)}),
          cleared as (update lineages set state_lock = null from claim where id = ${lineageId} returning 1),
          ${storeResult({ kind: 'unlocked', id, isLifted: lock.isLifted }, sql`(select) always`)},
          ${assertInTime(guard, ['history', 'cleared', 'stored'])}
          select from in_time`.then(() => null),
      ).catch(detectDuplicate)
    },

    async find(id: string): Promise<Deployment | null> {
      const [row] = await withTimeout(
        sql<DeploymentRow[]>`select ${columns} from deployments d where d.id = ${id}`,
        timeoutMs,
      )
      return row ? toDeployment(row) : null
    },

    /** Newest first, each with the number that continues the list. */
    async list({
      status,
      search = '',
      before,
      limit,
    }: DeploymentPageQuery): Promise<{ number: number; deployment: Deployment }[]> {
      const rows = await withTimeout(
        sql<DeploymentRow[]>`
          select ${columns} from deployments d
          where true ${status ? sql`and d.status = ${status}` : sql``}
            ${search === '' ? sql`` : sql`and position(lower(${search}) in lower(d.sovereign_fqdn || ' ' || (d.request ->> 'orgName'))) > 0`}
            ${before === undefined ? sql`` : sql`and d.number < ${before}`}
          order by d.number desc limit ${limit}`,
        timeoutMs,
      )
      return rows.map(row => ({ number: row.number, deployment: toDeployment(row) }))
    },

    /** What was done to one deployment, under one FQDN, or to all, also to deleted ones; newest first. */
    async listHistory(query: DeploymentHistoryQuery): Promise<Page<DeploymentHistoryEntry>> {
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
    },

    async countByStatus(): Promise<StatusCount[]> {
      return withTimeout(sql<StatusCount[]>`select status, count(*) from deployments group by 1`, timeoutMs)
    },
  }
}

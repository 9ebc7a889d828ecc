import type { DeploymentHistoryEntry } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { timeSql } from '@pool/runtime/database/time'
import type { Caller } from '../naming/naming.ts'
import { type DeploymentRecord, fromRecord } from './domain/spec.ts'
import type { RunState } from './domain/types.ts'
import type { Proof } from './fqdn.ts'

/** The columns `runColumns`. */
export interface RunRow extends Omit<RunState, 'spec' | 'plan'> {
  readonly request: DeploymentRecord
}

export const toRunState = ({ request, ...state }: RunRow): RunState => ({
  ...state,
  spec: fromRecord(request),
  plan: request.plan ?? null,
})

/** The parts that the statements over deployments (alias `d`) and lineages (`l`) share. */
export const deploymentSql = (sql: Sql) => {
  const { now } = timeSql(sql)
  /** Whether a run of lineage `l` is known to have created the bucket of deployment `d`. */
  const hasCreatedBucket = sql`exists (
    select from bucket_claims c
    where c.lineage_id = l.id and c.bucket = d.request -> 'storage' ->> 'bucket' and c.is_created)`
  return {
    hasCreatedBucket,
    /** The columns of a RunState. */
    runColumns: sql`
      d.id, d.run_generation as generation, d.request, d.lineage_id as "lineageId", d.operation,
      d.run_generation - d.operation_generation + 1 as attempt, d.reservation_token_hash as "reservationTokenHash",
      l.has_infrastructure as "hasInfrastructure", d.is_applied as "isApplied", d.result,
      l.state_lock as "stateLock", l.known_state as "knownState", ${hasCreatedBucket} as "hasCreatedBucket",
      d.cancelled_at is not null as "isCancelled", d.pending_error as "pendingError",
      d.line_count as "lineCount"`,

    /** The columns that an entry of the history needs. */
    historyColumns: sql`d.id, d.lineage_id, d.sovereign_fqdn, d.request`,
    /**
     * Appends to deployment_history within the statement that makes the change, so that there is an entry exactly if there
     * was a change: one per row of `rows`, which has `historyColumns`. `caller`: `run` for what a run did without a
     * request. `detail` may be a column of `rows`.
     */
    appendHistory: (
      rows: Fragment,
      event: DeploymentHistoryEntry['event'],
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

    /**
     * Binds the challenges of a proof to the lineage, so that a record that remains in DNS proves nothing for a later
     * tenant. `lineages` has the columns `lineage_id` and `sovereign_fqdn`.
     */
    bindProof: (proof: Proof | null, lineages: Fragment) => sql`
      update domain_challenges c set lineage_id = input.lineage_id from ${lineages} input
      where c.domain = input.sovereign_fqdn and c.lineage_id is null and c.value_hash in (
        select decode(proof.value, 'hex') from jsonb_array_elements_text(${sql.json([...(proof?.valueHashes ?? [])])}) as proof (value)
      )
      returning 1`,

    /**
     * The only place that claims a bucket. The claim is provisional until the bucket may exist. A claim of another lineage
     * violates `bucket_claims_pkey`, which rejects the whole statement. `lineages` has at most one row, with `lineage_id`
     * and `sovereign_fqdn`.
     */
    claimBucket: (bucket: string | null, exists: boolean, lineages: Fragment) => sql`
      insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, is_permanent, is_created, claimed_at)
      select ${bucket}, input.lineage_id, input.sovereign_fqdn, ${exists}, ${exists}, ${now} from ${lineages} input
      where ${bucket}::text is not null and not exists (
        select from bucket_claims c where c.bucket = ${bucket} and c.lineage_id = input.lineage_id
      )
      returning 1`,
    /** `lineages` has the column `id`. */
    makeClaimPermanent: (lineages: Fragment) => sql`
      update bucket_claims c set is_permanent = true from ${lineages} input where c.lineage_id = input.id
      returning 1`,
    /** `deployments` has the columns `lineage_id` and `request`. */
    markBucketCreated: (deployments: Fragment) => sql`
      update bucket_claims c set is_created = true from ${deployments} input
      where c.lineage_id = input.lineage_id and c.bucket = input.request -> 'storage' ->> 'bucket'
      returning 1`,
    /** `lineages` has the column `lineage_id`. */
    dropProvisionalClaim: (lineages: Fragment) => sql`
      delete from bucket_claims c using ${lineages} input where c.lineage_id = input.lineage_id and not c.is_permanent
      returning 1`,
    /** The same for deployments that remain: one with infrastructure keeps the claim of its input. */
    dropUnusedClaim: (lineages: Fragment) => sql`
      delete from bucket_claims c using ${lineages} input join lineages l on l.id = input.lineage_id
      where c.lineage_id = l.id and not c.is_permanent and not l.has_infrastructure
      returning 1`,
  }
}

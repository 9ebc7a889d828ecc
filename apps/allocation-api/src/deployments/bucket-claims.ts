import type { BucketClaim } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import type { Rejection } from '../allocation/domain/types.ts'
import { type Page, type PageQuery, readPage } from '../lib/paginate.ts'
import type { Caller } from '../naming/naming.ts'
import type { RejectionWithDetail } from './domain/types.ts'
import { deploymentSql } from './sql.ts'

export type LiftClaimOutcome =
  | { readonly kind: 'lifted' }
  | Rejection<'not-found'>
  | RejectionWithDetail<'in-progress' | 'still-up'>

/** The owner of a claim. A lineage has at most one deployment, and none after that one was deleted. */
interface ClaimOwner {
  readonly lineageId: string
  readonly sovereignFQDN: string
  readonly deploymentId: string | null
  readonly generation: number | null
  readonly isFinished: boolean
  readonly hasInfrastructure: boolean
}

interface ClaimRow {
  readonly bucket: string
  readonly sovereignFQDN: string
  readonly lineageId: string
  readonly deploymentId: string | null
  readonly isPermanent: boolean
  readonly claimedAt: Date
}

const toClaim = ({ claimedAt, deploymentId, ...claim }: ClaimRow): BucketClaim => ({
  ...claim,
  claimedAt: claimedAt.toISOString(),
  ...(deploymentId === null ? {} : { deploymentId }),
})

const toLiftObstacle = ({ deploymentId, isFinished, hasInfrastructure }: ClaimOwner): LiftClaimOutcome | null => {
  if (deploymentId === null) return null
  if (!isFinished) {
    const detail = `A run of deployment ${deploymentId} uses the bucket; wait for its end or cancel it.`
    return { kind: 'in-progress', detail }
  }
  if (!hasInfrastructure) return null
  const detail = `Infrastructure of deployment ${deploymentId} may use the bucket; destroy or abandon the deployment first.`
  return { kind: 'still-up', detail }
}

export type BucketClaims = ReturnType<typeof createBucketClaims>

/** The claims as an operator sees them. */
export const createBucketClaims = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => {
  const { appendHistory } = deploymentSql(sql)

  const findOwner = async (bucket: string): Promise<ClaimOwner | undefined> => {
    const [owner] = await withTimeout(
      sql<ClaimOwner[]>`
        select c.lineage_id as "lineageId", c.sovereign_fqdn as "sovereignFQDN", d.id as "deploymentId",
          d.run_generation as generation, d.finished_at is not null as "isFinished",
          l.has_infrastructure as "hasInfrastructure"
        from bucket_claims c join lineages l on l.id = c.lineage_id left join deployments d on d.lineage_id = l.id
        where c.bucket = ${bucket}`,
      timeoutMs,
    )
    return owner
  }

  /**
   * False if the owner has changed since it was read. The new generation makes a concurrent call to the deployment read
   * it again: an apply that has seen this claim must not rely on it.
   */
  const deleteClaim = async (bucket: string, owner: ClaimOwner, caller: Caller): Promise<boolean> => {
    const { lineageId, sovereignFQDN, deploymentId, generation } = owner
    const unchangedOwner =
      deploymentId === null
        ? sql`select ${lineageId}::uuid as lineage_id
            where not exists (select from deployments where lineage_id = ${lineageId})`
        : sql`update deployments set run_generation = run_generation + 1
            where id = ${deploymentId} and run_generation = ${generation} and finished_at is not null
            returning lineage_id`
    const deployment = sql`(
      select h.deployment_id as id, h.lineage_id, h.sovereign_fqdn, jsonb_build_object('orgName', h.org_name) as request
      from deployment_history h join deleted using (lineage_id)
      where h.sovereign_fqdn = ${sovereignFQDN} and h.event = 'created')`
    const deleted = await withTimeout(
      sql`
        with owner as (${unchangedOwner}), deleted as (
          delete from bucket_claims c using owner where c.bucket = ${bucket} and c.lineage_id = owner.lineage_id
          returning c.lineage_id
        ), empty as (
          delete from lineages l using deleted
          where l.id = deleted.lineage_id and not l.has_infrastructure and ${deploymentId}::uuid is null
            and not exists (select from bucket_claims c where c.lineage_id = l.id and c.bucket <> ${bucket})
        ), history as (${appendHistory(deployment, 'bucket-claim-lifted', caller, bucket)})
        select from deleted`,
      timeoutMs,
    )
    return deleted.count > 0
  }

  return {
    findOwner,

    /** By name of the bucket. */
    async list(query: PageQuery): Promise<Page<BucketClaim>> {
      const read = (size: number) =>
        withTimeout(
          sql<ClaimRow[]>`
            select c.bucket, c.sovereign_fqdn as "sovereignFQDN", c.lineage_id as "lineageId", d.id as "deploymentId",
              c.is_permanent as "isPermanent", c.claimed_at as "claimedAt"
            from bucket_claims c left join deployments d on d.lineage_id = c.lineage_id
            where c.bucket > ${query.cursor ?? ''} order by c.bucket limit ${size}`,
          timeoutMs,
        )
      const { items, nextCursor } = await readPage(query, read, ({ bucket }) => bucket)
      return { items: items.map(toClaim), nextCursor }
    },

    /** Gives up a claim, so that another deployment can have a bucket of this name. The bucket itself is not touched. */
    async lift(bucket: string, caller: Caller): Promise<LiftClaimOutcome> {
      for (;;) {
        const owner = await findOwner(bucket)
        if (!owner) return { kind: 'not-found' }
        const obstacle = toLiftObstacle(owner)
        if (obstacle) return obstacle
        if (await deleteClaim(bucket, owner, caller)) return { kind: 'lifted' }
      }
    },
  }
}

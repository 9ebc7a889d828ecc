import type { Rejection } from '../../allocation/domain/types.ts'
import type { Caller } from '../../naming/naming.ts'
import { type ClaimOwnership, decideBucket } from '../domain/bucket-use.ts'
import type { AccessKeyPair, BucketObstacle, DeploymentSpec } from '../domain/types.ts'
import type { CallDependencies } from './call.ts'

export interface BucketRequest {
  readonly spec: DeploymentSpec
  readonly credentials: AccessKeyPair | null
  readonly adoptBucket: boolean
  /** Null: a new lineage. */
  readonly lineageId: string | null
  /** Whether the lineage may have created the bucket already. */
  readonly hasBucket: boolean
}

/** Null: the operation uses no bucket, or the one that its lineage has. */
export type BucketUse = { readonly kind: 'new' | 'adopted'; readonly claim: ClaimOwnership } | null

const NO_BUCKET_MADE =
  'The deployment module makes no bucket (it has no output object_storage_bucket), so a deployment cannot have object storage; leave its provider out, or ask the operator for a module that makes one.'

const toOwnership = (
  owner: { readonly lineageId: string; readonly sovereignFQDN: string } | undefined,
  { spec, lineageId }: BucketRequest,
): ClaimOwnership => {
  if (!owner) return 'none'
  if (owner.lineageId === lineageId) return 'own'
  return owner.sovereignFQDN === spec.sovereignFQDN ? 'former' : 'other'
}

/** Decides before anything starts whether an apply can have its bucket. */
export const findBucketUse = async (
  { provisioner, findBucket, bucketClaims }: CallDependencies,
  request: BucketRequest,
): Promise<{ readonly kind: 'usable'; readonly use: BucketUse } | BucketObstacle> => {
  const { spec, credentials, adoptBucket, hasBucket } = request
  const { storage } = spec
  if (!storage || !credentials) return { kind: 'usable', use: null }
  if (!(await provisioner.makesBucket())) {
    return { kind: 'invalid-deployment', faults: [{ field: 'objectStorageRegion', detail: NO_BUCKET_MADE }] }
  }
  if (hasBucket && !adoptBucket) return { kind: 'usable', use: null }
  const { bucket, region } = storage
  const claim = toOwnership(await bucketClaims.findOwner(bucket), request)
  const found = await findBucket({ region, ...credentials }, bucket)
  if (found.kind === 'unavailable') return { kind: 'object-storage-unavailable', detail: found.message }
  const verdict = decideBucket({ bucket, claim, found: found.kind, adopts: adoptBucket })
  return verdict.kind === 'usable' ? { kind: 'usable', use: { kind: verdict.use, claim } } : verdict
}

/** Ends the claim of an earlier lineage of the same FQDN, whose deployment is over. */
export const endFormerClaim = async (
  { bucketClaims }: CallDependencies,
  { storage }: DeploymentSpec,
  use: BucketUse,
  caller: Caller,
): Promise<Rejection<'bucket-conflict'> | null> => {
  if (!storage || use?.claim !== 'former') return null
  const { kind } = await bucketClaims.lift(storage.bucket, caller)
  return kind === 'lifted' || kind === 'not-found' ? null : { kind: 'bucket-conflict' }
}

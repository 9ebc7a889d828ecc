import type { BucketLookup } from '../../credentials/domain/bucket-lookup.ts'

/** What the database knows of a bucket: claimed by this lineage, by an earlier one of the same FQDN, or by another FQDN. */
export type ClaimOwnership = 'none' | 'own' | 'former' | 'other'

export interface BucketSituation {
  readonly bucket: string
  readonly claim: ClaimOwnership
  readonly found: Exclude<BucketLookup['kind'], 'unavailable'>
  /** Whether the request has `adoptBucket: true`. */
  readonly adopts: boolean
}

/** `new`: Terraform creates it. `adopted`: Terraform imports it. */
export type BucketVerdict =
  | { readonly kind: 'usable'; readonly use: 'new' | 'adopted' }
  | { readonly kind: 'bucket-exists' | 'bucket-conflict'; readonly detail: string }

/** What an operation may do with the bucket of a deployment that has not created it. */
export const decideBucket = ({ bucket, claim, found, adopts }: BucketSituation): BucketVerdict => {
  if (claim === 'other') {
    const detail = `The bucket ${bucket} belongs to a deployment of another FQDN; choose another name.`
    return { kind: 'bucket-conflict', detail }
  }
  if (found === 'absent') return { kind: 'usable', use: 'new' }
  if (found === 'foreign') {
    const detail = `The bucket ${bucket} exists, and these credentials do not own it: send those of its owner with adoptBucket: true, or choose another name.`
    return { kind: 'bucket-conflict', detail }
  }
  if (adopts) return { kind: 'usable', use: 'adopted' }
  const detail = `The bucket ${bucket} exists, and these credentials own it: send adoptBucket: true to use it with its content, or choose another name.`
  return { kind: 'bucket-exists', detail }
}

/** What providers say if the state does not have a bucket that exists. */
const EXISTS = /bucket already exists|BucketAlready(?:Exists|OwnedByYou)/i

/** The reason for a failed apply, with what to do about a bucket that exists. */
export const explainFailure = (reason: string, bucket: string | null): string =>
  bucket !== null && EXISTS.test(reason)
    ? `The bucket ${bucket} exists already, and the state of this deployment does not have it. Apply again with adoptBucket: true to use it with its content, if these credentials own it; otherwise delete the bucket, or create a deployment of another name.`
    : reason

/** Why a deployment is not ready, although Terraform has ended; null if its bucket exists. */
export const explainMissingBucket = (bucket: string, lookup: BucketLookup): string | null => {
  switch (lookup.kind) {
    case 'owned':
      return null
    case 'absent':
      return `The module did not create the bucket ${bucket}: correct the module, then apply again.`
    case 'foreign':
      return `The bucket ${bucket} exists, but these credentials do not own it: apply again with those of its owner.`
    case 'unavailable':
      return `The bucket ${bucket} could not be looked up: ${lookup.message} Apply again.`
  }
}

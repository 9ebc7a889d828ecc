import { type CheckResult, firstViolation, subdomain as subdomainSchema } from '@pool/contract'
import { createBatcher } from '@pool/runtime/database/batcher'
import { type Pools, toBucketName, toFqdn, validateName } from '../naming/naming.ts'
import type { AllocationReader } from './reader.ts'

export interface CheckOptions {
  readonly reader: Pick<AllocationReader, 'findStates'>
  readonly pools: () => Pools
  /** Start of every bucket name. */
  readonly bucketPrefix: string
  readonly statementTimeoutMs: number
}

/**
 * Two statements in flight: one at the database while the next one is prepared. A higher limit makes the batches smaller and
 * their total cost higher.
 */
const BATCHING = { maxInFlight: 2, maxBatchSize: 100, slowMs: 100 }

/** Whether a tenant could reserve a name now. The contract defines which reason is reported first. */
export const createCheck = ({ reader, pools, bucketPrefix, statementTimeoutMs }: CheckOptions) => {
  const findStateInBatch = createBatcher({ ...BATCHING, timeoutMs: statementTimeoutMs, execute: reader.findStates })

  return async (poolDomain: string, sub: string | undefined): Promise<CheckResult> => {
    const parsed = subdomainSchema.safeParse(sub)
    if (!parsed.success) {
      const { detail } = firstViolation(parsed.error)
      const named = sub === undefined ? detail.replace('subdomain', 'The query parameter sub') : detail
      return { available: false, reason: 'invalid-format', detail: named }
    }
    const subdomain = parsed.data
    const fqdn = toFqdn(poolDomain, subdomain)
    const rejection = validateName(poolDomain, subdomain, pools())
    if (rejection) {
      const { kind: reason, detail } = rejection
      return { available: false, reason, detail, ...(reason === 'unsupported-pool' ? {} : { fqdn }) }
    }
    const state = await findStateInBatch({ poolDomain, subdomain })
    if (state === 'pool') {
      const detail = `"${subdomain}" is reserved; choose another name.`
      return { available: false, reason: 'reserved', detail, fqdn }
    }
    if (state === 'reserved') {
      return { available: false, reason: 'reserved-state', detail: `${fqdn} is reserved; it may become free.`, fqdn }
    }
    if (state === 'active') return { available: false, reason: 'active-state', detail: `${fqdn} is in use.`, fqdn }
    if (state !== null) {
      const { kind: reason, availableAt } = state
      const detail = `${fqdn} was released; it becomes available at ${availableAt}.`
      return { available: false, reason, detail, fqdn, availableAt }
    }
    const bucket = toBucketName(bucketPrefix, fqdn)
    if (bucket.kind === 'bucket') return { available: true, fqdn }
    // The name is valid, but a deployment with object storage would be rejected.
    const detail = `The name is free, but it cannot be used for a deployment with object storage. ${bucket.reason}`
    return { available: true, detail, fqdn }
  }
}

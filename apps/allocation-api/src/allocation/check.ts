import { type CheckResult, faultOf, subdomain as label } from '@pool/contract'
import { toBucketName } from '../naming/bucket-name.ts'
import { toFqdn, validateName } from '../naming/naming.ts'
import type { Reader } from './reader.ts'

export interface CheckDependencies {
  /** What holds the name now; null when it is free. */
  readonly heldState: Reader['heldState']
  readonly managedDomains: readonly string[]
  /** What the name of every bucket begins with. */
  readonly platformPrefix: string
}

/** That a free name gives no bucket is said where it is chosen: a deployment of it would be refused. */
const bucketNotice = (platformPrefix: string, fqdn: string): { detail?: string } => {
  const bucket = toBucketName(platformPrefix, fqdn)
  return bucket.kind === 'bucket'
    ? {}
    : { detail: `The name is free, but no deployment with object storage can have it. ${bucket.reason}` }
}

/** Whether the name is free. The order in which the reasons are decided is part of the contract. */
export const check =
  ({ heldState, managedDomains, platformPrefix }: CheckDependencies) =>
  async (poolDomain: string, sub: string | undefined): Promise<CheckResult> => {
    const parsed = label.safeParse(sub)
    if (!parsed.success) return { available: false, reason: 'invalid-format', detail: faultOf(parsed.error).detail }
    const subdomain = parsed.data
    const fqdn = toFqdn(poolDomain, subdomain)
    const refusal = validateName(poolDomain, subdomain, managedDomains)
    if (refusal) {
      const { kind: reason, detail } = refusal
      return { available: false, reason, detail, ...(reason === 'reserved' ? { fqdn } : {}) }
    }
    const state = await heldState({ poolDomain, subdomain })
    if (!state) return { available: true, ...bucketNotice(platformPrefix, fqdn), fqdn }
    return state === 'reserved'
      ? { available: false, reason: 'reserved-state', detail: `${fqdn} is reserved; it may become free.`, fqdn }
      : { available: false, reason: 'active-state', detail: `${fqdn} is in use.`, fqdn }
  }

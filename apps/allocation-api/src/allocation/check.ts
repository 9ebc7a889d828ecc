import { type CheckResult, faultOf, subdomain as label } from '@pool/contract'
import { fqdnOf, refuseName } from './names.ts'
import type { Reader } from './reader.ts'

export interface CheckDependencies {
  readonly reader: Pick<Reader, 'heldState'>
  readonly managedDomains: readonly string[]
}

/** Whether the name is free. The order in which the reasons are decided is part of the contract. */
export const check =
  ({ reader, managedDomains }: CheckDependencies) =>
  async (poolDomain: string, sub: string | undefined): Promise<CheckResult> => {
    const parsed = label.safeParse(sub)
    if (!parsed.success) return { available: false, reason: 'invalid-format', detail: faultOf(parsed.error).detail }
    const subdomain = parsed.data
    const fqdn = fqdnOf(poolDomain, subdomain)
    const refusal = refuseName(poolDomain, subdomain, managedDomains)
    if (refusal) {
      const { kind: reason, detail } = refusal
      return { available: false, reason, detail, ...(reason === 'reserved' ? { fqdn } : {}) }
    }
    const state = await reader.heldState({ poolDomain, subdomain })
    if (!state) return { available: true, fqdn }
    return state === 'reserved'
      ? { available: false, reason: 'reserved-state', detail: `${fqdn} is reserved; it may become free.`, fqdn }
      : { available: false, reason: 'active-state', detail: `${fqdn} is in use.`, fqdn }
  }

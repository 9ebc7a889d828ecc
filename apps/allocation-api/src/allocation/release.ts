import type { Allocation, DnsState } from '@pool/contract'
import type { Once } from '../idempotency/idempotency.ts'
import { type NameRejection, validatePool } from '../naming/naming.ts'
import type { Settle } from '../reconciler/reconciler.ts'
import { type ReleaseSaid, releaseDecisionOf } from './domain/decision.ts'
import type { Caller, Rejection, ReleaseCommand, ReleaseDecision } from './domain/types.ts'
import type { Store } from './repository.ts'

export interface ReleaseDependencies {
  readonly store: Pick<Store, 'release'>
  readonly once: Once
  readonly settle: Settle
  readonly managedDomains: readonly string[]
}

export type ReleaseOutcome =
  /** `withdrawal` is `published` once the records are gone from the provider. */
  | { readonly kind: 'released'; readonly freed: Allocation; readonly withdrawal: DnsState }
  | Rejection<'not-found' | 'token-mismatch' | 'idempotency-key-reused'>
  | NameRejection

/** Frees a name at once, then waits a bounded time for its records to go. */
export const release =
  ({ store, once, settle, managedDomains }: ReleaseDependencies) =>
  async (command: ReleaseCommand, caller: Caller, key: string | undefined): Promise<ReleaseOutcome> => {
    const { poolDomain, subdomain, reservationToken } = command
    const refusal = validatePool(poolDomain, managedDomains)
    if (refusal) return refusal
    const decision = await once<ReleaseDecision>(
      key === undefined ? null : { key, content: ['release', poolDomain, subdomain, reservationToken ?? null] },
      {
        decide: turn => store.release(command, caller, turn),
        isOneStatement: true,
        recall: said => releaseDecisionOf(said as ReleaseSaid),
      },
    )
    if (decision.kind !== 'released') return decision
    const { version } = decision
    const withdrawal: DnsState =
      version === null ? { status: 'published' } : await settle({ zone: poolDomain, subdomain, version })
    return { kind: 'released', freed: decision.allocation, withdrawal }
  }

import type { ActiveAllocation } from '@pool/contract'
import { type RecordTemplate, recordsOf } from '../dns/domain/rrset.ts'
import type { Once } from '../idempotency/idempotency.ts'
import { type NameRejection, toFqdn, validatePool } from '../naming/naming.ts'
import type { Settle } from '../reconciler/reconciler.ts'
import { type CommitSaid, commitDecisionOf } from './domain/decision.ts'
import type { Caller, CommitCommand, CommitDecision, Rejection, TokenRefusal } from './domain/types.ts'
import type { Store } from './repository.ts'

export interface CommitDependencies {
  readonly store: Pick<Store, 'commit'>
  readonly once: Once
  readonly settle: Settle
  readonly managedDomains: readonly string[]
  readonly template: RecordTemplate
}

export type CommitOutcome =
  | { readonly kind: 'committed'; readonly allocation: ActiveAllocation }
  | TokenRefusal
  | NameRejection
  | Rejection<'idempotency-key-reused'>

/** Makes a reservation active, then waits a bounded time for its records. */
export const commit =
  ({ store, once, settle, managedDomains, template }: CommitDependencies) =>
  async (command: CommitCommand, caller: Caller, key: string | undefined): Promise<CommitOutcome> => {
    const { poolDomain, subdomain, reservationToken, sovereignFQDN, loadBalancerIP } = command
    const refusal = validatePool(poolDomain, managedDomains)
    if (refusal) return refusal
    const desired = recordsOf(toFqdn(poolDomain, subdomain), loadBalancerIP, template)
    const decision = await once<CommitDecision>(
      key === undefined
        ? null
        : { key, content: ['commit', poolDomain, subdomain, reservationToken, sovereignFQDN, loadBalancerIP] },
      {
        decide: turn => store.commit(command, desired, caller, turn),
        isOneStatement: true,
        recall: said => commitDecisionOf(said as CommitSaid),
      },
    )
    if (decision.kind !== 'committed') return decision
    const dns = await settle({ zone: poolDomain, subdomain, version: decision.version })
    return { kind: 'committed', allocation: { ...decision.allocation, dns } }
  }

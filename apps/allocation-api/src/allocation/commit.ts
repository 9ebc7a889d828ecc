import type { ActiveAllocation } from '@pool/contract'
import type { Settle } from '../convergence/converge.ts'
import { type RecordTemplate, recordsOf } from '../dns/record-set.ts'
import type { Caller, CommitCommand, CommitDecision, Refusal, TokenRefusal } from './allocation.ts'
import { type CommitSaid, commitDecisionOf } from './decision.ts'
import { fqdnOf, type NameRefusal, refusePool } from './names.ts'
import type { Once } from './once.ts'
import type { Store } from './store.ts'

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
  | NameRefusal
  | Refusal<'idempotency-key-reused'>

/** Makes a reservation active, then waits a bounded time for its records. */
export const commit =
  ({ store, once, settle, managedDomains, template }: CommitDependencies) =>
  async (command: CommitCommand, caller: Caller, key: string | undefined): Promise<CommitOutcome> => {
    const { poolDomain, subdomain, reservationToken, sovereignFQDN, loadBalancerIP } = command
    const refusal = refusePool(poolDomain, managedDomains)
    if (refusal) return refusal
    const desired = recordsOf(fqdnOf(poolDomain, subdomain), loadBalancerIP, template)
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

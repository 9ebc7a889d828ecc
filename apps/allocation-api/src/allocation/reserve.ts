import type { Once } from '../idempotency/idempotency.ts'
import { type NameRejection, validateName } from '../naming/naming.ts'
import { type ReserveSaid, reserveDecisionOf } from './domain/decision.ts'
import type { Caller, Rejection, ReserveCommand, ReserveDecision } from './domain/types.ts'
import type { Reader } from './reader.ts'
import type { Store } from './repository.ts'

export interface ReserveDependencies {
  readonly decide: Store['reserve']
  readonly reader: Pick<Reader, 'reservation'>
  readonly once: Once
  readonly managedDomains: readonly string[]
  readonly ttlMs: number
}

export type ReserveOutcome = ReserveDecision | NameRejection | Rejection<'idempotency-key-reused'>

/** Takes a free name. A repeated key is given the same reservation while it lives, with its present expiry. */
export const reserve =
  ({ decide, reader, once, managedDomains, ttlMs }: ReserveDependencies) =>
  async (command: ReserveCommand, caller: Caller, key: string | undefined): Promise<ReserveOutcome> => {
    const { poolDomain, subdomain, createdBy } = command
    const refusal = validateName(poolDomain, subdomain, managedDomains)
    if (refusal) return refusal
    return once<ReserveDecision>(
      key === undefined ? null : { key, content: ['reserve', poolDomain, subdomain, createdBy] },
      {
        decide: turn => decide(command, ttlMs, caller, turn),
        isOneStatement: true,
        recall: said => {
          const first = reserveDecisionOf(said as ReserveSaid)
          return first.kind === 'granted' ? reader.reservation(command, first.reservationToken) : first
        },
      },
    )
  }

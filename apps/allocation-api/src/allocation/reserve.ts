import type { Caller, Refusal, ReserveCommand, ReserveDecision } from './allocation.ts'
import { type NameRefusal, refuseName } from './names.ts'
import type { Once } from './once.ts'
import type { Store } from './store.ts'

export interface ReserveDependencies {
  readonly once: Once<Store>
  readonly managedDomains: readonly string[]
  readonly ttlMs: number
}

export type ReserveOutcome = ReserveDecision | NameRefusal | Refusal<'idempotency-key-reused'>

/** Takes a free name. A repeated key is given the same reservation while it lives, with its present expiry. */
export const reserve =
  ({ once, managedDomains, ttlMs }: ReserveDependencies) =>
  async (command: ReserveCommand, caller: Caller, key: string | undefined): Promise<ReserveOutcome> => {
    const refusal = refuseName(command.poolDomain, command.subdomain, managedDomains)
    if (refusal) return refusal
    return once<ReserveDecision>(
      key === undefined
        ? null
        : { key, content: ['reserve', command.poolDomain, command.subdomain, command.createdBy] },
      store => store.reserve(command, ttlMs, caller),
      async (first, store) =>
        first.kind === 'granted' ? store.findReservation(command, first.reservationToken) : first,
    )
  }

import { type NameRejection, validatePool } from '../naming/naming.ts'
import type { Caller, RenewCommand, RenewDecision } from './domain/types.ts'
import type { Store } from './repository.ts'

export interface RenewDependencies {
  readonly store: Pick<Store, 'renew'>
  readonly managedDomains: readonly string[]
  readonly ttlMs: number
  readonly maxAgeMs: number
}

/** Extends a reservation. It needs no Idempotency-Key: doing it twice does no harm. */
export const renew =
  ({ store, managedDomains, ttlMs, maxAgeMs }: RenewDependencies) =>
  async (command: RenewCommand, caller: Caller): Promise<RenewDecision | NameRejection> =>
    validatePool(command.poolDomain, managedDomains) ?? store.renew(command, { ttlMs, maxAgeMs }, caller)

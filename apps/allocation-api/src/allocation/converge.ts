import type { Compared } from '../convergence/compare.ts'
import type { Busy, Repaired } from '../convergence/drift.ts'
import type { Unavailable } from '../dns/provider.ts'
import { type NameRefusal, refusePool } from './names.ts'

export interface ConvergeDependencies {
  readonly preview: (zone: string) => Promise<Compared | Unavailable | Busy>
  readonly repair: (zone: string) => Promise<Repaired | Unavailable | Busy>
  readonly managedDomains: readonly string[]
}

export type ConvergeOutcome = Compared | Repaired | Unavailable | Busy | NameRefusal

/** Brings a pool's zone to its desired records now, or only says what that would change. */
export const converge =
  ({ preview, repair, managedDomains }: ConvergeDependencies) =>
  async (poolDomain: string, { isDryRun }: { isDryRun: boolean }): Promise<ConvergeOutcome> => {
    const refusal = refusePool(poolDomain, managedDomains)
    if (refusal) return refusal
    return isDryRun ? preview(poolDomain) : repair(poolDomain)
  }

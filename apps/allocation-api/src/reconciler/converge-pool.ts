import type { Unavailable } from '../dns/provider.ts'
import { type NameRejection, validatePool } from '../naming/naming.ts'
import type { Compared } from './diff-zone.ts'
import type { Busy, Repaired } from './drift-detector.ts'

export interface ConvergeDependencies {
  readonly preview: (zone: string) => Promise<Compared | Unavailable | Busy>
  readonly repair: (zone: string) => Promise<Repaired | Unavailable | Busy>
  readonly managedDomains: readonly string[]
}

export type ConvergeOutcome = Compared | Repaired | Unavailable | Busy | NameRejection

/** Brings a pool's zone to its desired records now, or only says what that would change. */
export const converge =
  ({ preview, repair, managedDomains }: ConvergeDependencies) =>
  async (poolDomain: string, { isDryRun }: { isDryRun: boolean }): Promise<ConvergeOutcome> => {
    const refusal = validatePool(poolDomain, managedDomains)
    if (refusal) return refusal
    return isDryRun ? preview(poolDomain) : repair(poolDomain)
  }

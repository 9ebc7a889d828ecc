import pLimit from 'p-limit'
import type { ZoneLock, ZoneLocks } from './zone-lock.ts'

/** Runs `work` as the only one at the zone; null when others had it for longer than a claim is waited for. */
export type InTurn = <Result>(zone: string, work: (claim: ZoneLock) => Promise<Result>) => Promise<Result | null>

export interface TurnsDependencies {
  readonly claims: Pick<ZoneLocks, 'claim'>
  /** The provider takes one call at a time for all zones, from all replicas together. */
  readonly isOneAtATime: boolean
}

/** Zones worked on at a time, each with one call of the provider and one connection to the database. */
const ZONES_AT_ONCE = 16

/** The claim of a provider that takes one call at a time. No zone has this name. */
const WHOLE_ACCOUNT = '(account)'

/** How many zones a process works on at a time, and that nobody else does. */
export const createTurns = ({ claims, isOneAtATime }: TurnsDependencies): InTurn => {
  const limit = pLimit(isOneAtATime ? 1 : ZONES_AT_ONCE)
  return (zone, work) => limit(() => claims.claim(isOneAtATime ? WHOLE_ACCOUNT : zone, work))
}

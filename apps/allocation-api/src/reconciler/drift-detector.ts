import type { Unavailable } from '../dns/provider.ts'
import type { Compared, Intent } from './diff-zone.ts'
import type { ComparisonStore } from './drift-repository.ts'
import type { ZoneLock } from './zone-lock.ts'
import type { InTurn } from './zone-scheduler.ts'

export interface DriftDependencies {
  readonly zones: Pick<ComparisonStore, 'takeZones' | 'compared' | 'hurry' | 'unapplied'>
  readonly inTurn: InTurn
  readonly compare: (zone: string, claim: ZoneLock, intent: Intent) => Promise<Compared | Unavailable>
  /** Does what is due in the zone, in bounded time. */
  readonly run: (zone: string) => Promise<void>
  /** Milliseconds from one comparison of a zone to the next. */
  readonly everyMs: number
  /** From 0 to 1. */
  readonly random: () => number
  readonly onCompared: (zone: string, outcome: Compared | Unavailable) => void
  readonly onError: (zone: string, error: unknown) => void
}

/** Others write the zone, for longer than this waits. */
export interface Busy {
  readonly kind: 'busy'
}

export interface Repaired extends Omit<Compared, 'kind'> {
  readonly kind: 'repaired'
  /** Names that are not as desired by now, and of them those whose last attempt failed. */
  readonly pending: number
  readonly failing: number
}

/** A comparison that was begun and did not come to an end is begun again after this time, maybe by another replica. */
const PATIENCE_MS = 60_000

/** Finds what the provider no longer has as it was written, from time to time and when asked. */
export const createDrift = ({
  zones,
  inTurn,
  compare,
  run,
  everyMs,
  random,
  onCompared,
  onError,
}: DriftDependencies) => {
  const underWay = new Map<string, Promise<void>>()
  let stopping = false

  const reopen = async (zone: string, { isUrgent }: { isUrgent: boolean }): Promise<Compared | Unavailable | Busy> => {
    const outcome = (await inTurn(zone, async claim => {
      const compared = await compare(zone, claim, 'repair')
      if (isUrgent && compared.kind === 'compared') await zones.hurry(zone)
      return compared
    })) ?? { kind: 'busy' as const }
    // Replicas and zones spread over time by themselves.
    if (outcome.kind === 'compared') await zones.compared(zone, everyMs * (0.9 + 0.2 * random()))
    if (outcome.kind !== 'busy') onCompared(zone, outcome)
    return outcome
  }

  return {
    /** Starts a comparison of each zone whose turn it is; what differs is then due, and found by those who look for it. */
    async catchUp(): Promise<void> {
      if (stopping) return
      for (const zone of await zones.takeZones(Math.min(PATIENCE_MS, everyMs))) {
        if (underWay.has(zone)) continue
        const comparison = reopen(zone, { isUrgent: false })
          .then(
            () => {},
            (error: unknown) => onError(zone, error),
          )
          .finally(() => underWay.delete(zone))
        underWay.set(zone, comparison)
      }
    },

    /** What a repair would do, without doing it. */
    async preview(zone: string): Promise<Compared | Unavailable | Busy> {
      return (await inTurn(zone, claim => compare(zone, claim, 'show'))) ?? { kind: 'busy' }
    },

    /** Compares the zone now, and gives what differs, and what has failed before, a bounded time to be applied. */
    async repair(zone: string): Promise<Repaired | Unavailable | Busy> {
      const outcome = await reopen(zone, { isUrgent: true })
      if (outcome.kind !== 'compared') return outcome
      await run(zone)
      return { ...outcome, kind: 'repaired', ...(await zones.unapplied(zone)) }
    },

    /** Starts nothing more and waits for what is under way. */
    async stop(): Promise<void> {
      stopping = true
      await Promise.all(underWay.values())
    },
  }
}

import type { NameOperation, Reading, Seen } from './operations.ts'
import { describeTenure } from './ownership.ts'
import { byName, type OwnershipInterval, toOwnershipIntervals } from './ownership-intervals.ts'

const shown = (seen: Seen | null | undefined): string => (seen ? `${seen.state}, of ${seen.owner}` : 'free')

const faultOf = (tenure: OwnershipInterval, { by, start, end }: Reading, seen: Seen | null): string | undefined => {
  const { grant, commitment, from, to, mayBeActiveFrom } = tenure
  const fault = (what: string) => `${by} showed ${what} at ${new Date(end).toISOString()}; ${describeTenure(tenure)}`
  const isDuring = start >= Math.max(from, grant.end) && end < to
  if (isDuring && seen?.owner !== grant.owner) return fault(shown(seen))
  if (seen?.owner !== grant.owner) return undefined
  if (isDuring && commitment && start >= commitment.end && seen.address !== commitment.address)
    return fault(`${shown(seen)} at ${seen.address}, committed to ${commitment.address},`)
  return end < mayBeActiveFrom && seen.state === 'active' ? fault('it active before any commit') : undefined
}

/** Who was seen after the end of its ownership had been acknowledged. An attempt that comes late may reserve anew. */
const isGhost = (
  tenure: OwnershipInterval,
  acts: readonly NameOperation[],
  { start }: Reading,
  seen: Seen | null,
): boolean =>
  seen?.owner === tenure.grant.owner &&
  tenure.grant.attempts === 1 &&
  acts.some(act => act.kind === 'release' && act.isAnswered && act.token === tenure.grant.token && act.end < start)

/** What was acknowledged is seen by every later read, until it is superseded; and what was undone is not seen any more. */
export const readingFaults = (acts: readonly NameOperation[], readings: readonly Reading[]): string[] => {
  const tenures = new Map(
    [...byName(acts)].map(([name, ofName]) => [name, { ofName, tenures: toOwnershipIntervals(ofName) }]),
  )
  return readings.flatMap(reading =>
    [...(reading.isWhole ? tenures.keys() : reading.seen.keys())].flatMap(name => {
      const known = tenures.get(name)
      const seen = reading.seen.get(name) ?? null
      return (known?.tenures ?? []).flatMap(tenure => {
        const fault = faultOf(tenure, reading, seen)
        if (fault) return [fault]
        return known && isGhost(tenure, known.ofName, reading, seen)
          ? [`${reading.by} showed ${shown(seen)} after the release was acknowledged; ${describeTenure(tenure)}`]
          : []
      })
    }),
  )
}

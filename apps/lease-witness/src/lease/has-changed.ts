import { type Current, isExpired } from './lease.ts'
import { isKnown, type Known } from './precondition.ts'

/**
 * Whether a reader who knows some generations has to be told something: another generation, or that the lease which it
 * knows has expired. Generation 0 is a slot that was never written, so a standby can wait for the first lease too.
 */
export const isNews = (current: Current | undefined, known: Known, now: number): boolean => {
  if (!current) return known === 'any' || !isKnown(known, 0)
  return !isKnown(known, current.generation) || (current.kind === 'held' && isExpired(current, now))
}

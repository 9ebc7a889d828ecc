import type { Prng } from '@pool/test-kit/prng.ts'
import { type FaultName, faultKinds } from './kinds.ts'

export interface PlannedFault {
  readonly name: FaultName
  /** Of the replicas, of which the first is 0; without meaning where none is hit. */
  readonly replica: number
  readonly holdMs: number
  /** From 0 to 1: how far a clock goes, how slow a link gets. */
  readonly strength: number
  /** Milliseconds after the beginning of its round. */
  readonly afterMs: number
}

export interface Round {
  readonly faults: readonly PlannedFault[]
  /** Traffic pauses after it, and everything that is true at rest is checked. */
  readonly restsAfter: boolean
}

export interface ScheduleOptions {
  readonly dice: Prng
  readonly replicas: number
  /** What can be done here. */
  readonly names: readonly FaultName[]
  /** In a run of few minutes those that last long are left out: they would be all of it. */
  readonly minutes: number
}

/** The replica that is not ended after the beginning, so that its memory has time to grow. */
export const STEADY = 0
const PAIRED = 0.4
const LONG_MS = 10_000
const LONG_FROM_MINUTES = 4
/** Rounds in which every replica is ended. */
const FIRST_ROUNDS = 8

const ends = new Set<FaultName>(['replica killed', 'replica terminated'])

/**
 * Without end: each deal goes through all kinds in another order, one or two at a time, never two of one part.
 * What is dealt depends on the seed alone.
 */
export function* schedule({ dice, replicas, names, minutes }: ScheduleOptions): Generator<Round> {
  const dealt = names.filter(name => minutes >= LONG_FROM_MINUTES || faultKinds[name].holdMs[0] < LONG_MS)
  const deck: FaultName[] = []
  const refill = () => {
    // One of each, and never the same twice in a row across two deals.
    const last = deck.at(-1)
    const rest = [...dealt]
    const next: FaultName[] = []
    while (rest.length > 0) next.push(...rest.splice(dice.below(rest.length), 1))
    deck.push(...(next[0] === last ? next.toReversed() : next))
  }
  const planned = (name: FaultName, round: number): PlannedFault => {
    const [least, most] = faultKinds[name].holdMs
    const isSpared = ends.has(name) && round >= FIRST_ROUNDS && replicas > 1
    return {
      name,
      replica: isSpared ? 1 + dice.below(replicas - 1) : dice.below(replicas),
      holdMs: least + dice.below(most - least + 1),
      strength: dice.next(),
      afterMs: dice.below(1_000),
    }
  }
  for (let round = 0; ; round += 1) {
    if (deck.length < 2) refill()
    const first = deck.shift()
    if (first === undefined) return
    const faults = [planned(first, round)]
    if (dice.chance(PAIRED)) {
      const at = deck.findIndex(name => faultKinds[name].part !== faultKinds[first].part)
      const [second] = at < 0 ? [] : deck.splice(at, 1)
      // Each recovery is told by itself: two of one replica would hide each other's.
      const elsewhere = (fault: PlannedFault) =>
        fault.replica === faults[0]?.replica ? { ...fault, replica: 1 + (fault.replica % (replicas - 1)) } : fault
      if (second) faults.push(elsewhere(planned(second, round)))
    }
    yield { faults, restsAfter: round % 2 === 1 }
  }
}

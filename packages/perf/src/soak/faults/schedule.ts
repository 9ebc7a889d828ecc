import type { Prng } from '@pool/test-kit/prng.ts'
import { type FaultName, faultKinds } from './kinds.ts'

export interface PlannedFault {
  readonly name: FaultName
  /** Index of the replica. Ignored by faults that affect none. */
  readonly replica: number
  readonly durationMs: number
  /** From 0 to 1: scales the clock offset or the delay. */
  readonly strength: number
  /** Milliseconds after the start of its round. */
  readonly afterMs: number
}

export interface Round {
  readonly faults: readonly PlannedFault[]
  /** Traffic pauses after the round, and the invariants of quiescence are checked. */
  readonly quiesceAfter: boolean
}

export interface ScheduleOptions {
  readonly prng: Prng
  readonly replicas: number
  /** The faults that this environment supports. */
  readonly names: readonly FaultName[]
  /** Short runs skip long faults, which would fill the whole run. */
  readonly minutes: number
}

/** The replica that does not restart after the warm-up, so that a memory leak becomes visible. */
export const STEADY_REPLICA = 0
const PAIR_PROBABILITY = 0.4
const LONG_FAULT_MS = 10_000
const MIN_MINUTES_FOR_LONG_FAULTS = 4
/** Rounds in which every replica may restart. */
const WARM_UP_ROUNDS = 8

const restarts = new Set<FaultName>(['replica killed', 'replica terminated'])

/**
 * An endless schedule that depends on the seed only. It repeats all kinds in random order, one or two in a round, and never
 * combines two faults of the same part.
 */
export function* createSchedule({ prng, replicas, names, minutes }: ScheduleOptions): Generator<Round> {
  const enabled = names.filter(
    name => minutes >= MIN_MINUTES_FOR_LONG_FAULTS || faultKinds[name].durationMs[0] < LONG_FAULT_MS,
  )
  const queue: FaultName[] = []
  const refill = () => {
    // A shuffle of all kinds that does not start with the kind that ended the last one.
    const last = queue.at(-1)
    const remaining = [...enabled]
    const next: FaultName[] = []
    while (remaining.length > 0) next.push(...remaining.splice(prng.below(remaining.length), 1))
    queue.push(...(next[0] === last ? next.toReversed() : next))
  }
  const plan = (name: FaultName, round: number): PlannedFault => {
    const [min, max] = faultKinds[name].durationMs
    const skipsSteady = restarts.has(name) && round >= WARM_UP_ROUNDS && replicas > 1
    return {
      name,
      replica: skipsSteady ? 1 + prng.below(replicas - 1) : prng.below(replicas),
      durationMs: min + prng.below(max - min + 1),
      strength: prng.next(),
      afterMs: prng.below(1_000),
    }
  }
  for (let round = 0; ; round += 1) {
    if (queue.length < 2) refill()
    const first = queue.shift()
    if (first === undefined) return
    const faults = [plan(first, round)]
    if (prng.chance(PAIR_PROBABILITY)) {
      const at = queue.findIndex(name => faultKinds[name].part !== faultKinds[first].part)
      const [second] = at < 0 ? [] : queue.splice(at, 1)
      // On one replica, two faults would hide each other's recovery.
      const onOtherReplica = (fault: PlannedFault) =>
        fault.replica === faults[0]?.replica ? { ...fault, replica: 1 + (fault.replica % (replicas - 1)) } : fault
      if (second) faults.push(onOtherReplica(plan(second, round)))
    }
    yield { faults, quiesceAfter: round % 2 === 1 }
  }
}

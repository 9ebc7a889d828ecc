import { closedLoop, type Measured } from './closed-loop.ts'
import type { Subject } from './subject.ts'

export interface Run extends Measured {
  /** How far the subject's counters rose, for each operation. */
  readonly perOperation: Readonly<Record<string, number>>
}

/** All that was measured at one number of connections. */
export interface Comparison {
  readonly connections: number
  /** In the order of the subjects; of each, its rounds. */
  readonly runs: readonly (readonly Run[])[]
}

export interface Plan {
  readonly connections: readonly number[]
  readonly rounds: number
  readonly seconds: number
  readonly say: (line: string) => void
}

/** Enough connections for every path to be compiled before anything is measured. */
const WARM_UP_CONNECTIONS = 16

export const runOnce = async (subject: Subject, connections: number, seconds: number): Promise<Run> => {
  await subject.prepare?.()
  const crew = await subject.open(connections)
  const before = await subject.counters?.()
  const measured = await closedLoop(crew.callers, seconds).finally(crew.close)
  const after = await subject.counters?.()
  const perOperation = Object.fromEntries(
    Object.entries(after ?? {}).map(([name, count]) => [name, (count - (before?.[name] ?? 0)) / measured.operations]),
  )
  return { ...measured, perOperation }
}

/** The subjects take turns, round after round: what changes on the machine over time meets all of them alike. */
export const compare = async (subjects: readonly Subject[], plan: Plan): Promise<Comparison[]> => {
  plan.say('warming up')
  for (const subject of subjects) await runOnce(subject, WARM_UP_CONNECTIONS, plan.seconds)
  const comparisons: Comparison[] = []
  for (const connections of plan.connections) {
    const runs: Run[][] = subjects.map(() => [])
    for (let round = 1; round <= plan.rounds; round += 1) {
      plan.say(`connections ${connections}, round ${round} of ${plan.rounds}`)
      for (const [index, subject] of subjects.entries()) {
        runs[index]?.push(await runOnce(subject, connections, plan.seconds))
      }
    }
    comparisons.push({ connections, runs })
  }
  return comparisons
}

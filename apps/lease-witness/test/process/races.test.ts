import { type LeaseConnection, openLeaseConnections } from '@pool/test-kit/lease-connection.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningWorker, startNaive } from './support/naive.ts'
import { type Outcome, run } from './support/race.ts'
import { plan, type State, states } from './support/race-plans.ts'
import { type RunningWitness, startWitness, temporaryFolder } from './support/witness.ts'

/** A decision that awaits anything between its read and its write is caught in a third of the rounds, and more. */
const ROUNDS = 100
const CONNECTIONS = 32

/** Every round has connections of its own, so as many run side by side as there are connections for. */
const races = async (
  wires: readonly LeaseConnection[],
  state: State,
  writers: number,
  rounds: number,
): Promise<Outcome[]> => {
  const outcomes: Outcome[] = []
  const planned = (await plan(wires, state, writers, rounds)).values()
  const lane = async (own: readonly LeaseConnection[]) => {
    for (const race of planned) outcomes.push(await run(own, race))
  }
  const lanes = Array.from({ length: wires.length / writers }, (_, i) => wires.slice(i * writers, (i + 1) * writers))
  await Promise.all(lanes.map(lane))
  return outcomes
}

const connect = async (port: number) => {
  const wires = await openLeaseConnections(port, CONNECTIONS)
  const close = () => {
    for (const wire of wires) wire[Symbol.dispose]()
  }
  return { wires, [Symbol.dispose]: close }
}

describe('concurrent writers', () => {
  const folder = temporaryFolder()
  let witness: RunningWitness

  beforeAll(async () => {
    witness = await startWitness(folder.path)
  })
  afterAll(async () => {
    await witness[Symbol.asyncDispose]()
    folder[Symbol.dispose]()
  })

  test.each(states.flatMap(state => [2, 8, 32].map(writers => [state, writers] as const)))(
    `of a slot that is %s, %i at once: one is granted it, the others are told so, ${ROUNDS} times`,
    async (state, writers) => {
      using connected = await connect(witness.port)
      const outcomes = await races(connected.wires, state, writers, ROUNDS)
      expect(outcomes.flatMap(({ faults }) => faults)).toEqual([])
      expect(outcomes.map(({ grants }) => grants)).toEqual(Array(ROUNDS).fill(1))
    },
  )
})

describe('a worker that reads and then writes', () => {
  const NAIVE_ROUNDS = 30

  let naive: RunningWorker

  beforeAll(async () => {
    naive = await startNaive()
  })
  afterAll(() => naive[Symbol.asyncDispose]())

  test.each(states)('is caught on a slot that is %s', async state => {
    using connected = await connect(naive.port)
    const outcomes = await races(connected.wires, state, CONNECTIONS, NAIVE_ROUNDS)
    const caught = outcomes.filter(({ grants, faults }) => grants > 1 && faults.length > 0)
    process.stdout.write(
      `read-then-write, ${state}: ${caught.length} double grants in ${NAIVE_ROUNDS} rounds of ${CONNECTIONS}\n`,
    )
    expect(caught).not.toEqual([])
  })
})

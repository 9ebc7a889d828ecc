import { proofSize } from '@pool/test-kit/proof-size.ts'
import { startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  connect,
  describeRaces,
  MAX_WRITERS,
  prepareRaces,
  runRaces,
  SLOT_STATES,
  waitForExpiry,
} from './support/race.ts'
import { type RunningWorker, startReadThenWrite } from './support/read-then-write.ts'
import { temporaryDirectory } from './support/witness.ts'

describeRaces('concurrent writers', async () => {
  await using stack = new AsyncDisposableStack()
  const { path } = stack.use(temporaryDirectory())
  const { port } = stack.use(await startLocalWitness(path))
  const resources = stack.move()
  return { ports: [port], [Symbol.asyncDispose]: () => resources.disposeAsync() }
})

describe('a worker that reads and then writes', () => {
  /** On a held slot only every other round can have a double grant. */
  const UNSAFE_ROUNDS = proofSize(60, 6)

  let worker: RunningWorker

  beforeAll(async () => {
    worker = await startReadThenWrite()
  })
  afterAll(() => worker[Symbol.asyncDispose]())

  test.each(SLOT_STATES)('fails on a slot that is %s', async state => {
    using client = await connect([worker.port])
    const races = await prepareRaces(client.connections, state, MAX_WRITERS, UNSAFE_ROUNDS)
    await waitForExpiry(races)
    const results = await runRaces(client.connections, races, MAX_WRITERS)
    const failed = results.filter(({ grants, violations }) => grants > 1 && violations.length > 0)
    process.stdout.write(
      `read-then-write, ${state}: ${failed.length} double grants in ${UNSAFE_ROUNDS} rounds of ${MAX_WRITERS} writers\n`,
    )
    expect(failed).not.toEqual([])
  })
})

import { checkLinearizability } from '@pool/test-kit/linearizability/check.ts'
import { type Operation, summarizeHistory } from '@pool/test-kit/linearizability/history.ts'
import { staleRejection } from '@pool/test-kit/linearizability/tamper.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startReadThenWrite } from './support/read-then-write.ts'
import { expectLinearizable, recordHistory } from './support/record-history.ts'
import { temporaryDirectory } from './support/witness.ts'

const OPERATIONS = proofSize(100_000, 4_000)
/** On an idle machine, three violations in a hundred operations. */
const UNSAFE_OPERATIONS = proofSize(8_000, 800)
const MIN_LATE_RENEWALS = proofSize(20, 2)
/** Far more than a busy machine needs. */
const LOAD_TIMEOUT_MS = 120_000 + 10 * OPERATIONS

/** Different in every run, and printed with every failure. */
const seed = Date.now() % 2 ** 31

describe('a recorded history', () => {
  let history: Operation[] = []

  beforeAll(async () => {
    using directory = temporaryDirectory()
    await using witness = await startLocalWitness(directory.path)
    history = await recordHistory({ ports: [witness.port], operations: OPERATIONS, seed, timeoutMs: LOAD_TIMEOUT_MS })
    reportProof(`linearizability, seed ${seed}: ${summarizeHistory(history)}`)
  }, LOAD_TIMEOUT_MS + 30_000)

  afterAll(() => {
    history = []
  })

  test('is complete, and has every kind of request with every kind of response', () => {
    expect(history.length).toBeGreaterThanOrEqual(OPERATIONS)
    const kinds = new Set(history.map(({ invocation, completion }) => `${invocation.kind} ${completion?.status}`))
    for (const kind of ['acquire 200', 'acquire 412', 'renew 200', 'renew 412', 'release 204', 'release 412']) {
      expect(kinds).toContain(kind)
    }
    for (const kind of ['read 200', 'read 304', 'read 404']) expect(kinds).toContain(kind)
    const late = history.filter(
      ({ invocation, completion }) =>
        invocation.kind === 'renew' &&
        completion?.status === 412 &&
        completion.lease.holder === invocation.holder &&
        completion.lease.generation === invocation.generation,
    )
    expect(late.length, 'renewals by holders that paused for longer than the TTL').toBeGreaterThanOrEqual(
      MIN_LATE_RENEWALS,
    )
  })

  test('is linearizable', () => expectLinearizable(history, seed))

  test('with a 412 that shows an older state is not', () => {
    expect(checkLinearizability(staleRejection(history)).map(({ rule }) => rule)).toContain('real-time')
  })
})

test(
  'the check rejects the history of a worker that reads and then writes',
  async () => {
    await using worker = await startReadThenWrite()
    const findRules = (of: readonly Operation[]) => checkLinearizability(of).map(({ rule }) => rule)
    const history = await recordHistory({
      ports: [worker.port],
      operations: UNSAFE_OPERATIONS,
      isComplete: recorded => findRules(recorded).includes('duplicate'),
      seed,
      timeoutMs: LOAD_TIMEOUT_MS,
    })
    const rules = findRules(history)
    const counts = [...Map.groupBy(rules, rule => rule)].map(([rule, { length }]) => `${rule}: ${length}`)
    process.stdout.write(`read-then-write, ${summarizeHistory(history)}; violations by rule: ${counts.join(', ')}\n`)
    expect(rules).toContain('duplicate')
  },
  LOAD_TIMEOUT_MS + 30_000,
)

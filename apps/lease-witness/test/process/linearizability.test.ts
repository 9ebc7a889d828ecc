import { check, describeFault, type Rule } from '@pool/test-kit/linearizability/check.ts'
import type { Operation } from '@pool/test-kit/linearizability/history.ts'
import { summary } from '@pool/test-kit/linearizability/summary.ts'
import {
  doubleGrant,
  generationBack,
  lostRelease,
  staleRead,
  staleRefusal,
  type Tamper,
} from '@pool/test-kit/linearizability/tamper.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startReadThenWrite } from './support/read-then-write.ts'
import { recordHistory } from './support/record-history.ts'
import { startWitness, temporaryDirectory } from './support/witness.ts'

const OPERATIONS = proofSize(100_000, 10_000)
/** On an idle machine, three violations in a hundred operations. */
const UNSAFE_OPERATIONS = proofSize(8_000, 800)
const MIN_LATE_RENEWALS = proofSize(33)
const MAX_SHOWN_VIOLATIONS = 5

/** Different in every run, and printed with every failure. */
const seed = Date.now() % 2 ** 31

describe('a recorded history', () => {
  let history: Operation[] = []

  beforeAll(async () => {
    using directory = temporaryDirectory()
    await using witness = await startWitness(directory.path)
    history = await recordHistory({ port: witness.port, operations: OPERATIONS, seed, timeoutMs: 10 * OPERATIONS })
    reportProof(`linearizability, seed ${seed}: ${summary(history)}`)
  }, 11 * OPERATIONS)

  afterAll(() => {
    history = []
  })

  test('is complete, and has every kind of request with every kind of response', () => {
    expect(history.length).toBeGreaterThanOrEqual(OPERATIONS)
    const kinds = new Set(history.map(({ asked, told }) => `${asked.kind} ${told?.status}`))
    for (const kind of ['acquire 200', 'acquire 412', 'renew 200', 'renew 412', 'release 204', 'release 412']) {
      expect(kinds).toContain(kind)
    }
    for (const kind of ['read 200', 'read 304', 'read 404']) expect(kinds).toContain(kind)
    const late = history.filter(
      ({ asked, told }) =>
        asked.kind === 'renew' &&
        told?.status === 412 &&
        told.lease.holder === asked.holder &&
        told.lease.generation === asked.generation,
    )
    expect(late.length, 'renewals by holders that paused for longer than the TTL').toBeGreaterThan(MIN_LATE_RENEWALS)
  })

  test('is linearizable', () => {
    const violations = check(history)
    expect(violations.slice(0, MAX_SHOWN_VIOLATIONS).map(describeFault), `seed ${seed}`).toEqual([])
  })

  const tampers: readonly (readonly [name: string, rule: Rule, tamper: Tamper])[] = [
    ['a stale read', 'order', staleRead],
    ['a 412 that shows an older state', 'order', staleRefusal],
    ['a double grant', 'repeat', doubleGrant],
    ['a generation that went back', 'repeat', generationBack],
    ['a lost release', 'order', lostRelease],
  ]
  test.each(tampers)('with %s is not', (_, rule, tamper) => {
    expect(check(tamper(history)).map(violation => violation.rule)).toContain(rule)
  })
})

test('the check rejects the history of a worker that reads and then writes', async () => {
  await using worker = await startReadThenWrite()
  const history = await recordHistory({ port: worker.port, operations: UNSAFE_OPERATIONS, seed, timeoutMs: 60_000 })
  const violations = check(history)
  const rules = [...Map.groupBy(violations, ({ rule }) => rule)].map(([rule, { length }]) => `${rule}: ${length}`)
  process.stdout.write(`read-then-write, ${summary(history)}; violations by rule: ${rules.join(', ')}\n`)
  expect(violations.map(({ rule }) => rule)).toContain('repeat')
}, 90_000)

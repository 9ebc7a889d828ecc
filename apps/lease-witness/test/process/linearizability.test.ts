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
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { record } from './linearizability/load.ts'
import { startNaive } from './support/naive.ts'
import { startWitness, temporaryFolder } from './support/witness.ts'

const OPERATIONS = 30_000
/** Enough to catch a worker that is wrong a dozen times, on a machine that is busy too. */
const NAIVE_OPERATIONS = 2_500
const FAULTS_SHOWN = 5

/** Another one in every run; of a failure it tells what the clients did. */
const seed = Date.now() % 2 ** 31

describe('a recorded history', () => {
  let history: Operation[] = []

  beforeAll(async () => {
    using folder = temporaryFolder()
    await using witness = await startWitness(folder.path)
    history = await record({ port: witness.port, operations: OPERATIONS, seed, withinMs: 100_000 })
    process.stdout.write(`history of seed ${seed}: ${summary(history)}\n`)
  }, 120_000)

  afterAll(() => {
    history = []
  })

  test('is long, and has every kind of call with every kind of answer', () => {
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
    expect(late.length, 'renewals by holders who had paused for too long').toBeGreaterThan(10)
  })

  test('could have come from slots that do one call at a time', () => {
    const faults = check(history)
    expect(faults.slice(0, FAULTS_SHOWN).map(describeFault), `seed ${seed}`).toEqual([])
  })

  const tampers: readonly (readonly [name: string, rule: Rule, tamper: Tamper])[] = [
    ['a stale read', 'order', staleRead],
    ['a 412 that shows what was current before it began', 'order', staleRefusal],
    ['a double grant', 'repeat', doubleGrant],
    ['a generation that went back', 'repeat', generationBack],
    ['a release that was lost', 'order', lostRelease],
  ]
  test.each(tampers)('with %s in it could not', (_, rule, tamper) => {
    expect(check(tamper(history)).map(fault => fault.rule)).toContain(rule)
  })
})

test('what a worker that reads and then writes does under the same load is caught', async () => {
  await using naive = await startNaive()
  const history = await record({ port: naive.port, operations: NAIVE_OPERATIONS, seed, withinMs: 60_000 })
  const faults = check(history)
  const rules = [...Map.groupBy(faults, ({ rule }) => rule)].map(([rule, { length }]) => `${rule}: ${length}`)
  process.stdout.write(`read-then-write, ${summary(history)}; faults by rule: ${rules.join(', ')}\n`)
  expect(faults.map(({ rule }) => rule)).toContain('repeat')
}, 90_000)

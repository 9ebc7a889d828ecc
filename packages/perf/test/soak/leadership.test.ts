import { beforeEach, describe, expect, test } from 'vitest'
import { type Candidate, LeadershipChecker } from '../../src/soak/checks/leadership.ts'
import { InvariantChecker } from '../../src/soak/invariants.ts'

const DURATIONS = { leaseDuration: 2_000, renewDeadline: 1_300 }

let invariants: InvariantChecker
let checker: LeadershipChecker
let leading: Set<string>

const createCandidate = (identity: string): Candidate => ({
  slot: 'pair',
  identity,
  isLeader: () => leading.has(identity),
})
const a = createCandidate('a')
const b = createCandidate('b')

beforeEach(() => {
  invariants = new InvariantChecker(() => {})
  checker = new LeadershipChecker(DURATIONS, invariants)
  leading = new Set()
  checker.add(a)
  checker.add(b)
})

const violations = () => invariants.results.flatMap(result => result.violations)
/** Gives the candidate a lease and starts its tenure. */
const start = (candidate: Candidate, fencingToken: number) => {
  checker.observe('pair', { holder: candidate.identity }, DURATIONS.leaseDuration, performance.now())
  leading.add(candidate.identity)
  checker.started(candidate, { fencingToken })
}
const stop = (candidate: Candidate) => {
  leading.delete(candidate.identity)
  checker.stopped(candidate)
}

describe('one leader per slot', () => {
  test('tenures one after the other', () => {
    start(a, 1)
    checker.sample()
    stop(a)
    start(b, 3)
    checker.sample()
    stop(b)
    expect(violations()).toEqual([])
    expect(checker.tenures).toBe(2)
  })

  test.each<[string, () => void, RegExp]>([
    [
      'a start before the other has stopped',
      () => {
        start(a, 1)
        start(b, 2)
      },
      /b started before a stopped/,
    ],
    [
      'two that report leadership',
      () => {
        start(a, 1)
        leading.add('b')
        checker.sample()
      },
      /a and b report leadership/,
    ],
    [
      'a report outside of a tenure',
      () => {
        leading.add('a')
        checker.observe('pair', { holder: 'a' }, DURATIONS.leaseDuration, performance.now())
        checker.sample()
      },
      /outside of a tenure/,
    ],
    [
      'a report after the deadline',
      () => {
        checker.observe('pair', { holder: 'a' }, DURATIONS.leaseDuration, performance.now() - DURATIONS.renewDeadline)
        leading.add('a')
        checker.started(a, { fencingToken: 1 })
        checker.sample()
      },
      /after its deadline/,
    ],
    [
      'a fencing token that does not increase',
      () => {
        start(a, 4)
        stop(a)
        start(b, 4)
      },
      /started with token 4 after 4/,
    ],
    [
      'a leader in its own onStoppedLeading',
      () => {
        start(a, 1)
        checker.stopped(a)
      },
      /still leader in onStoppedLeading/,
    ],
    ['a stop without a start', () => checker.stopped(a), /stopped without a start/],
  ])('finds %s', (_, act, message) => {
    act()
    expect(violations()).toContainEqual(expect.stringMatching(message))
  })
})

test('a late write of a former leader is rejected by the resource, and counted', () => {
  checker.write('pair', 1)
  checker.write('pair', 3)
  checker.write('pair', 1)
  expect(violations()).toEqual([])
  expect(checker.rejectedLateWrites).toBe(1)
})

import type { Lease } from '@pool/contract/lease'
import { describe, expect, test } from 'vitest'
import { checkLinearizability, type Rule } from './check.ts'
import { type Completion, freeLease, type Invocation, type Operation } from './history.ts'
import { SteppedClock, type WitnessClock } from './witness-clock.ts'

/** Start and end in milliseconds since the start of the history, on both clocks. */
type Interval = readonly [start: number, end: number]

const EPOCH = Date.UTC(2026, 0, 1)
const TTL = 1_000
const time = (ms: number) => new Date(EPOCH + ms).toISOString()

const held = (generation: number, holder: string, acquired: number, renewed = acquired): Lease => ({
  holder,
  acquiredAt: time(acquired),
  expiresAt: time(renewed + TTL),
  generation,
})

const operation = ([start, end]: Interval, invocation: Invocation, completion?: Completion): Operation => ({
  slot: 'slot',
  start,
  end,
  sentAt: EPOCH + start,
  receivedAt: EPOCH + end,
  invocation,
  ...(completion ? { completion } : {}),
})

const read = (at: Interval, lease: Lease) => operation(at, { kind: 'read' }, { status: 200, lease })
const notFound = (at: Interval) => operation(at, { kind: 'read' }, { status: 404 })
const unchanged = (at: Interval, known: number, generation = known) =>
  operation(at, { kind: 'read', known }, { status: 304, generation })

const put = (
  kind: 'acquire' | 'renew',
  at: Interval,
  holder: string,
  generation: number,
  status: 200 | 412,
  lease: Lease,
) => operation(at, { kind, holder, generation, ttlMs: TTL }, { status, lease })
const acquire = (at: Interval, holder: string, generation: number, lease: Lease) =>
  put('acquire', at, holder, generation, 200, lease)
const renew = (at: Interval, holder: string, generation: number, lease: Lease) =>
  put('renew', at, holder, generation, 200, lease)
const rejected = (kind: 'acquire' | 'renew', at: Interval, holder: string, generation: number, lease: Lease) =>
  put(kind, at, holder, generation, 412, lease)
const unansweredPut = (at: Interval, holder: string, generation: number) =>
  operation(at, { kind: 'acquire', holder, generation, ttlMs: TTL })

const unansweredRelease = (at: Interval, holder: string, generation: number) =>
  operation(at, { kind: 'release', holder, generation })

const release = (at: Interval, holder: string, generation: number) =>
  operation(at, { kind: 'release', holder, generation }, { status: 204 })
const rejectedRelease = (at: Interval, holder: string, generation: number, lease: Lease) =>
  operation(at, { kind: 'release', holder, generation }, { status: 412, lease })

/** Holder a has the slot since time 1, in generation 1. */
const first = acquire([0, 2], 'a', 0, held(1, 'a', 1))
const one = held(1, 'a', 1)
const two = held(2, 'a', 1, 11)
const second = renew([10, 12], 'a', 1, two)
const released = release([20, 22], 'a', 2)
const acquiredByB = held(2, 'b', 1_001)

const linearizable: readonly (readonly [name: string, history: readonly Operation[]])[] = [
  [
    'of two writes without a response, the one with the observed holder was applied',
    [
      first,
      unansweredRelease([1_100, 1_101], 'a', 1),
      unansweredPut([1_102, 1_103], 'b', 1),
      read([1_200, 1_201], held(2, 'b', 1_102)),
    ],
  ],
  [
    'of two unobserved writes without a response, only one could have been applied',
    [
      first,
      unansweredRelease([100, 101], 'b', 1),
      unansweredPut([1_100, 1_101], 'b', 1),
      acquire([2_200, 2_202], 'c', 2, held(3, 'c', 2_201)),
    ],
  ],
  [
    'tenures that start in the same millisecond differ',
    [acquire([0, 1], 'a', 0, held(1, 'a', 1)), release([1, 1], 'a', 1), acquire([1, 2], 'b', 2, held(3, 'b', 2, 1))],
  ],
  ['a slot that was never written', [notFound([0, 1]), rejected('renew', [2, 3], 'a', 0, freeLease(0))]],
  [
    'acquire, renew, release',
    [first, read([3, 4], one), second, unchanged([13, 14], 2), released, read([23, 24], freeLease(3))],
  ],
  ['reads during a write show the state before or after it', [first, read([9, 11], two), read([9, 11], one), second]],
  ['a read that overlaps two writes shows the state between them', [first, second, read([11, 21], one), released]],
  [
    'a rejected acquire during a write shows the state before it',
    [first, second, rejected('acquire', [9, 13], 'b', 1, one)],
  ],
  ['a rejected acquire shows the winner', [first, rejected('acquire', [0, 3], 'b', 0, one)]],
  ['a release by another holder is rejected', [first, rejectedRelease([3, 4], 'b', 1, one)]],
  ['an acquire at the millisecond of the expiry', [first, acquire([1_001, 1_003], 'b', 1, acquiredByB)]],
  ['a rejected acquire one millisecond before the expiry', [first, rejected('acquire', [1_000, 1_002], 'b', 1, one)]],
  ['a renewal after the expiry is rejected', [first, rejected('renew', [999, 1_001], 'a', 1, one)]],
  ['an acquire after a release', [first, second, released, acquire([30, 32], 'b', 3, held(4, 'b', 31))]],
  [
    'a release of a slot that was never written, with any generation',
    [release([0, 1], 'a', 1), acquire([2, 4], 'a', 0, held(1, 'a', 3))],
  ],
  ['a write without a response that was not applied', [first, unansweredPut([3, 4], 'a', 1), second]],
  [
    'a write without a response that was applied long after it started',
    [first, unansweredPut([3, 4], 'a', 1), read([8, 9], one), read([10, 11], two)],
  ],
]

const notLinearizable: readonly (readonly [name: string, rules: readonly Rule[], history: readonly Operation[]])[] = [
  ['a double grant', ['duplicate'], [first, acquire([0, 2], 'b', 0, held(1, 'b', 1))]],
  ['a double grant on a renewal', ['duplicate'], [first, second, acquire([10, 12], 'a', 1, held(2, 'a', 1, 12))]],
  ['an acknowledged release that was not applied', ['real-time'], [first, second, release([20, 22], 'b', 2)]],
  ['a stale read', ['real-time'], [first, second, read([13, 14], one)]],
  ['a stale 304', ['real-time'], [first, second, unchanged([13, 14], 1)]],
  ['a read before its write started', ['real-time'], [first, read([3, 4], two), second]],
  ['a rejection with a stale body', ['real-time'], [first, second, rejected('acquire', [15, 16], 'b', 0, one)]],
  [
    'a generation that decreases',
    ['duplicate', 'real-time'],
    [first, second, released, acquire([1_500, 1_502], 'b', 1, held(2, 'b', 1_501))],
  ],
  ['a skipped generation', ['gap'], [first, acquire([1_500, 1_502], 'b', 2, held(3, 'b', 1_501))]],
  [
    'a generation that does not follow from the If-Match',
    ['effect'],
    [first, second, acquire([1_500, 1_502], 'b', 1, held(3, 'b', 1_501))],
  ],
  ['a state without a write', ['gap'], [first, read([3, 4], held(2, 'b', 1))]],
  ['a body with another holder', ['body'], [first, read([3, 4], { ...one, holder: 'b' })]],
  [
    'an acquire one millisecond before the expiry',
    ['effect'],
    [first, acquire([999, 1_002], 'b', 1, held(2, 'b', 1_000))],
  ],
  ['a renewal of an expired lease', ['effect'], [first, renew([1_500, 1_502], 'a', 1, held(2, 'a', 1_501))]],
  ['a renewal by another holder', ['effect'], [first, renew([10, 12], 'b', 1, held(2, 'b', 11))]],
  ['a renewal with a new acquiredAt', ['effect'], [first, renew([10, 12], 'a', 1, held(2, 'a', 11))]],
  [
    'an acquire after the expiry with the old acquiredAt',
    ['effect'],
    [first, acquire([1_500, 1_502], 'a', 1, held(2, 'a', 1, 1_501))],
  ],
  ['a grant to another holder than requested', ['effect'], [acquire([0, 2], 'a', 0, held(1, 'b', 1))]],
  ['a grant for longer than requested', ['effect'], [acquire([0, 2], 'a', 0, held(1, 'a', 1, 3))]],
  [
    'a rejected acquire of a slot that was never written',
    ['rejection'],
    [rejected('acquire', [0, 1], 'a', 0, freeLease(0))],
  ],
  ['a rejected renewal by the holder', ['rejection'], [first, rejected('renew', [3, 4], 'a', 1, one)]],
  ['a rejected release by the holder', ['rejection'], [first, rejectedRelease([3, 4], 'a', 1, one)]],
  [
    'a 404 for a write',
    ['status'],
    [operation([0, 1], { kind: 'acquire', holder: 'a', generation: 0, ttlMs: TTL }, { status: 404 })],
  ],
  ['a 304 for another generation', ['status'], [first, unchanged([3, 4], 2, 1)]],
  [
    'a 200 for a generation that the client knows',
    ['status'],
    [first, operation([3, 4], { kind: 'read', known: 1 }, { status: 200, lease: one })],
  ],
  [
    'two generations from one write without a response',
    ['gap'],
    [first, unansweredPut([3, 4], 'a', 1), read([8, 9], held(3, 'a', 1, 6))],
  ],
  [
    'a write without a response observed before it started',
    ['real-time'],
    [first, read([3, 4], two), unansweredPut([5, 6], 'a', 1)],
  ],
]

const MINUTE = 60_000
const HOUR = 3_600_000

/** The clock of the witness is set at time 100. */
const setBy = (ms: number): WitnessClock => ({
  readings: (from, until) => {
    const at = EPOCH + 100
    return [
      ...(from < at ? [{ from, until: Math.min(until, at) }] : []),
      ...(until >= at ? [{ from: Math.max(from, at) + ms, until: until + ms }] : []),
    ]
  },
})
/** At time 10, in generation 1. */
const beforeStep = acquire([9, 11], 'a', 0, held(1, 'a', 10))
const restarted = held(1, 'a', 10, 201 - HOUR)
const seenRestarted = read([200, 202], restarted)
const byB = (at: Interval, decidedAt: number, acquiredAt = decidedAt) =>
  acquire(at, 'b', 1, held(2, 'b', acquiredAt, decidedAt))

const steps: readonly (readonly [
  rule: string,
  stepMs: number,
  rules: readonly Rule[],
  history: readonly Operation[],
])[] = [
  ['back by a minute: the slot stands still', -MINUTE, [], [renew([200, 201], 'a', 1, held(2, 'a', 10))]],
  [
    'back by a minute: the slot does not go back',
    -MINUTE,
    ['effect'],
    [renew([200, 201], 'a', 1, held(2, 'a', 10, 200 - MINUTE))],
  ],
  ['back by a minute: the lease does not expire', -MINUTE, ['effect'], [byB([200, 201], 200 - MINUTE)]],
  [
    'back by a minute: the lease does not restart',
    -MINUTE,
    ['body'],
    [read([200, 202], held(1, 'a', 10, 201 - MINUTE))],
  ],
  ['back by an hour: the lease restarts', -HOUR, [], [seenRestarted]],
  [
    'back by an hour: the lease restarts unseen, and is renewed',
    -HOUR,
    [],
    [renew([300, 302], 'a', 1, held(2, 'a', 10, 301 - HOUR))],
  ],
  [
    'back by an hour: the lease has not restarted after a restart was seen',
    -HOUR,
    ['real-time'],
    [seenRestarted, read([300, 301], held(1, 'a', 10))],
  ],
  [
    'back by an hour: the lease restarts before its TTL is over',
    -HOUR,
    ['effect'],
    [byB([1_000, 1_002], 1_001 - HOUR, 11)],
  ],
  ['back by an hour: the restarted lease expires', -HOUR, [], [seenRestarted, byB([1_300, 1_302], 1_301 - HOUR, 11)]],
  [
    'back by an hour: tenures are in the wrong order',
    -HOUR,
    ['effect'],
    [seenRestarted, byB([1_300, 1_302], 1_301 - HOUR)],
  ],
  ['back by an hour: a restart at another time', -HOUR, ['body'], [read([200, 202], held(1, 'a', 10, 500 - HOUR))]],
  ['forward by an hour: the lease expires', HOUR, [], [byB([200, 202], 201 + HOUR)]],
  ['forward by an hour: the slot stands still', HOUR, ['effect'], [renew([200, 202], 'a', 1, held(2, 'a', 10))]],
]

const violatedRules = (history: readonly Operation[]) => new Set(checkLinearizability(history).map(({ rule }) => rule))

describe('checkLinearizability', () => {
  test.each(linearizable)('accepts: %s', (_, history) => {
    expect(checkLinearizability(history)).toEqual([])
    expect(checkLinearizability(history.toReversed())).toEqual([])
  })

  test.each(notLinearizable)('rejects %s: %j', (_, rules, history) => {
    expect(violatedRules(history)).toEqual(new Set(rules))
    expect(violatedRules(history.toReversed())).toEqual(new Set(rules))
  })

  test.each(steps)('a clock that is set %s (%d ms): %j', (_, stepMs, rules, history) => {
    const violations = checkLinearizability([beforeStep, ...history], setBy(stepMs))
    expect(violations.map(({ rule }) => rule)).toEqual(rules)
  })

  test('a stepped clock has both readings while it is set', async () => {
    const clock = new SteppedClock()
    const before = Date.now()
    await clock.step(HOUR, () => new Promise(resolve => setTimeout(resolve, 5)))
    const after = Date.now()
    expect(clock.readings(before - 10, before - 5)).toEqual([{ from: before - 10, until: before - 5 }])
    expect(clock.readings(after + 1, after + 2)).toEqual([{ from: after + 1 + HOUR, until: after + 2 + HOUR }])
    expect(clock.readings(before - 1, after + 1)).toHaveLength(2)
    expect(clock.now()).toBeGreaterThanOrEqual(after + HOUR)
  })

  test('a stepped clock can be wrong by its error', () => {
    const at = Date.now()
    expect(new SteppedClock({ errorMs: 5 }).readings(at, at + 1)).toEqual([{ from: at - 5, until: at + 6 }])
  })

  test('checks each slot separately', () => {
    const elsewhere = (original: Operation) => ({ ...original, slot: 'elsewhere' })
    expect(
      checkLinearizability([
        first,
        second,
        elsewhere(notFound([30, 31])),
        elsewhere(acquire([32, 34], 'b', 0, held(1, 'b', 33))),
      ]),
    ).toEqual([])
  })
})

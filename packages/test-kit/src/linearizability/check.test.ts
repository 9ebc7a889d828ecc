import type { Lease } from '@pool/contract/lease'
import { describe, expect, test } from 'vitest'
import { check, type Rule } from './check.ts'
import type { Asked, Operation, Told } from './history.ts'
import { free } from './writes.ts'

/** Milliseconds of a history, on both clocks. */
type At = readonly [start: number, end: number]

const EPOCH = Date.UTC(2026, 0, 1)
const TTL = 1_000
const time = (ms: number) => new Date(EPOCH + ms).toISOString()

const held = (generation: number, holder: string, acquired: number, renewed = acquired): Lease => ({
  holder,
  acquiredAt: time(acquired),
  expiresAt: time(renewed + TTL),
  generation,
})

const of = ([start, end]: At, asked: Asked, told?: Told): Operation => ({
  slot: 'slot',
  start,
  end,
  sentAt: EPOCH + start,
  answeredAt: EPOCH + end,
  asked,
  ...(told ? { told } : {}),
})

const read = (at: At, lease: Lease) => of(at, { kind: 'read' }, { status: 200, lease })
const none = (at: At) => of(at, { kind: 'read' }, { status: 404 })
const unchanged = (at: At, known: number, generation = known) =>
  of(at, { kind: 'read', known }, { status: 304, generation })

const put = (kind: 'acquire' | 'renew', at: At, holder: string, generation: number, status: 200 | 412, lease: Lease) =>
  of(at, { kind, holder, generation, ttlMs: TTL }, { status, lease })
const acquire = (at: At, holder: string, generation: number, lease: Lease) =>
  put('acquire', at, holder, generation, 200, lease)
const renew = (at: At, holder: string, generation: number, lease: Lease) =>
  put('renew', at, holder, generation, 200, lease)
const refused = (kind: 'acquire' | 'renew', at: At, holder: string, generation: number, lease: Lease) =>
  put(kind, at, holder, generation, 412, lease)
const lostPut = (at: At, holder: string, generation: number) =>
  of(at, { kind: 'acquire', holder, generation, ttlMs: TTL })

const lostRelease = (at: At, holder: string, generation: number) => of(at, { kind: 'release', holder, generation })

const release = (at: At, holder: string, generation: number) =>
  of(at, { kind: 'release', holder, generation }, { status: 204 })
const unreleased = (at: At, holder: string, generation: number, lease: Lease) =>
  of(at, { kind: 'release', holder, generation }, { status: 412, lease })

/** a has held it since 1, in generation 1. */
const first = acquire([0, 2], 'a', 0, held(1, 'a', 1))
const one = held(1, 'a', 1)
const two = held(2, 'a', 1, 11)
const second = renew([10, 12], 'a', 1, two)
const released = release([20, 22], 'a', 2)
const taken = held(2, 'b', 1_001)

const good: readonly (readonly [name: string, history: readonly Operation[]])[] = [
  [
    'of two writes without an answer, the one whose holder was seen made it',
    [
      first,
      lostRelease([1_100, 1_101], 'a', 1),
      lostPut([1_102, 1_103], 'b', 1),
      read([1_200, 1_201], held(2, 'b', 1_102)),
    ],
  ],
  [
    'of two writes without an answer that nobody saw, one that could have made it did',
    [
      first,
      lostRelease([100, 101], 'b', 1),
      lostPut([1_100, 1_101], 'b', 1),
      acquire([2_200, 2_202], 'c', 2, held(3, 'c', 2_201)),
    ],
  ],
  [
    'of two writes without an answer that nobody saw, either may have made it',
    [
      first,
      lostPut([1_100, 1_101], 'b', 1),
      lostRelease([1_102, 1_103], 'a', 1),
      acquire([1_200, 1_202], 'c', 2, held(3, 'c', 1_201)),
    ],
  ],
  ['of nothing', []],
  ['of a slot that was never written', [none([0, 1]), refused('renew', [2, 3], 'a', 0, free(0))]],
  ['of a life', [first, read([3, 4], one), second, unchanged([13, 14], 2), released, read([23, 24], free(3))]],
  ['of reads during a write, either way', [first, read([9, 11], two), read([9, 11], one), second]],
  ['of a read during a write, and the write after it', [first, second, read([11, 21], one), released]],
  ['of losers who are shown either state', [first, second, refused('acquire', [9, 13], 'b', 1, one)]],
  ['of a loser who sees the winner', [first, refused('acquire', [0, 3], 'b', 0, one)]],
  ['of a stale writer', [first, second, refused('renew', [15, 16], 'a', 1, two)]],
  ['of a release by another', [first, unreleased([3, 4], 'b', 1, one)]],
  ['of a take at the millisecond of the expiry', [first, acquire([1_001, 1_003], 'b', 1, taken)]],
  ['of a refusal until the millisecond before', [first, refused('acquire', [1_000, 1_002], 'b', 1, one)]],
  ['of a renewal that came too late', [first, refused('renew', [999, 1_001], 'a', 1, one)]],
  ['of a holder who starts anew', [first, acquire([1_500, 1_502], 'a', 1, held(2, 'a', 1_501))]],
  ['of a holder who acquires again', [first, acquire([500, 502], 'a', 1, held(2, 'a', 1, 501))]],
  ['of a release after the expiry', [first, release([2_000, 2_001], 'a', 1), read([2_002, 2_003], free(2))]],
  ['of an acquire after a release', [first, second, released, acquire([30, 32], 'b', 3, held(4, 'b', 31))]],
  ['of a release of nothing, whatever it names', [release([0, 1], 'a', 1), acquire([2, 4], 'a', 0, held(1, 'a', 3))]],
  ['of a write without an answer that was made', [first, lostPut([3, 4], 'a', 1), read([9, 10], held(2, 'a', 1, 6))]],
  ['of one that was not made', [first, lostPut([3, 4], 'a', 1), second]],
  ['of one that was made long after', [first, lostPut([3, 4], 'a', 1), read([8, 9], one), read([10, 11], two)]],
]

const bad: readonly (readonly [name: string, rules: readonly Rule[], history: readonly Operation[]])[] = [
  ['a double grant', ['repeat'], [first, acquire([0, 2], 'b', 0, held(1, 'b', 1))]],
  ['a double grant on a renewal', ['repeat'], [first, second, acquire([10, 12], 'a', 1, held(2, 'a', 1, 12))]],
  ['a double release', ['repeat'], [first, second, released, release([20, 23], 'a', 2)]],
  ['a release that was lost, to a reader', ['order'], [first, second, released, read([23, 24], two)]],
  [
    'a release that was lost, to its holder',
    ['repeat'],
    [first, second, released, renew([30, 32], 'a', 2, held(3, 'a', 1, 31))],
  ],
  ['a release that was not made', ['order'], [first, second, release([20, 22], 'b', 2)]],
  ['a stale read', ['order'], [first, second, read([13, 14], one)]],
  ['a stale 304', ['order'], [first, second, unchanged([13, 14], 1)]],
  ['a read from before the first write', ['order'], [first, none([3, 4])]],
  ['a read that goes back', ['order'], [first, second, read([9, 10], two), read([11, 12], one)]],
  ['a read ahead of its write', ['order'], [first, read([3, 4], two), second]],
  [
    'a stale read far from what it misses',
    ['order'],
    [first, second, released, read([40, 41], free(3)), read([50, 51], two)],
  ],
  ['a refusal that shows the past', ['order'], [first, second, refused('acquire', [15, 16], 'b', 0, one)]],
  ['a refusal that shows the future', ['order'], [first, refused('acquire', [3, 4], 'b', 0, two), second]],
  [
    'a generation that goes back',
    ['repeat', 'order'],
    [first, second, released, acquire([1_500, 1_502], 'b', 1, held(2, 'b', 1_501))],
  ],
  [
    'a generation that starts over',
    ['repeat', 'order'],
    [first, second, none([13, 14]), acquire([15, 17], 'b', 0, held(1, 'b', 16))],
  ],
  ['a generation that leaps', ['gap'], [first, acquire([1_500, 1_502], 'b', 2, held(3, 'b', 1_501))]],
  [
    'a generation that its write did not name',
    ['effect'],
    [first, second, acquire([1_500, 1_502], 'b', 1, held(3, 'b', 1_501))],
  ],
  ['a state that nobody wrote', ['gap'], [first, read([3, 4], held(2, 'b', 1))]],
  ['a state that was lost before the first answer', ['gap'], [read([0, 1], one)]],
  ['a body of another holder', ['body'], [first, read([3, 4], { ...one, holder: 'b' })]],
  ['a body with another expiry', ['body'], [first, refused('acquire', [3, 4], 'b', 0, held(1, 'a', 1, 2))]],
  ['a body with a holder that was released', ['body'], [first, second, released, read([23, 24], held(3, 'a', 1, 11))]],
  ['a take of what is held', ['effect'], [first, acquire([500, 502], 'b', 1, held(2, 'b', 501))]],
  ['a take one millisecond early', ['effect'], [first, acquire([999, 1_002], 'b', 1, held(2, 'b', 1_000))]],
  ['a renewal of what has expired', ['effect'], [first, renew([1_500, 1_502], 'a', 1, held(2, 'a', 1_501))]],
  ['a renewal by another', ['effect'], [first, renew([10, 12], 'b', 1, held(2, 'b', 11))]],
  ['a renewal of what is free', ['effect'], [first, second, released, renew([30, 32], 'a', 3, held(4, 'a', 31))]],
  ['a renewal that starts anew', ['effect'], [first, renew([10, 12], 'a', 1, held(2, 'a', 11))]],
  ['a new start that keeps the old', ['effect'], [first, acquire([1_500, 1_502], 'a', 1, held(2, 'a', 1, 1_501))]],
  ['a grant to another than asked', ['effect'], [acquire([0, 2], 'a', 0, held(1, 'b', 1))]],
  ['a grant for longer than asked', ['effect'], [acquire([0, 2], 'a', 0, held(1, 'a', 1, 3))]],
  ['a grant for less than asked', ['effect'], [acquire([0, 2], 'a', 0, held(1, 'a', 1, -1))]],
  ['a refusal of what was never written', ['refusal'], [refused('acquire', [0, 1], 'a', 0, free(0))]],
  ['a refusal of what is free', ['refusal'], [first, second, released, refused('acquire', [30, 31], 'b', 3, free(3))]],
  ['a refusal of what has expired', ['refusal'], [first, refused('acquire', [1_001, 1_003], 'b', 1, one)]],
  ['a refusal of its holder', ['refusal'], [first, refused('acquire', [3, 4], 'a', 1, one)]],
  ['a refusal to renew', ['refusal'], [first, refused('renew', [3, 4], 'a', 1, one)]],
  [
    'a refusal to renew what was renewed before the expiry',
    ['refusal'],
    [first, refused('renew', [3, 1_100], 'a', 1, one), second],
  ],
  ['a refusal to release', ['refusal'], [first, unreleased([3, 4], 'a', 1, one)]],
  [
    'a 404 to a write',
    ['status'],
    [of([0, 1], { kind: 'acquire', holder: 'a', generation: 0, ttlMs: TTL }, { status: 404 })],
  ],
  ['a 200 for a slot that was never written', ['status'], [read([0, 1], free(0))]],
  ['a 412 to a release of what was never written', ['status'], [unreleased([0, 1], 'a', 1, free(0))]],
  ['a 304 to who knew another', ['status'], [first, unchanged([3, 4], 2, 1)]],
  ['a 200 to who knew it', ['status'], [first, of([3, 4], { kind: 'read', known: 1 }, { status: 200, lease: one })]],
  ['two writes where one had no answer', ['gap'], [first, lostPut([3, 4], 'a', 1), read([8, 9], held(3, 'a', 1, 6))]],
  ['an unanswered write seen before it began', ['order'], [first, read([3, 4], two), lostPut([5, 6], 'a', 1)]],
]

const rulesOf = (history: readonly Operation[]) => new Set(check(history).map(({ rule }) => rule))

describe('a history', () => {
  test.each(good)('%s is good', (_, history) => {
    expect(check(history)).toEqual([])
  })

  test.each(good)('%s is good in whatever order it was taken down', (_, history) => {
    expect(check(history.toReversed())).toEqual([])
  })

  test.each(bad)('with %s is not: %j', (_, rules, history) => {
    expect(rulesOf(history)).toEqual(new Set(rules))
    expect(rulesOf(history.toReversed())).toEqual(new Set(rules))
  })

  test('of one slot tells nothing of another', () => {
    const elsewhere = (operation: Operation) => ({ ...operation, slot: 'elsewhere' })
    expect(
      check([first, second, elsewhere(none([30, 31])), elsewhere(acquire([32, 34], 'b', 0, held(1, 'b', 33)))]),
    ).toEqual([])
  })
})

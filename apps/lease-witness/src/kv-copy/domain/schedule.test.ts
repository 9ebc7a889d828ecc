import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HeldLease, LeaseState } from '../../lease/lease.ts'
import {
  afterCopy,
  afterFailure,
  CopyPace,
  type CopyState,
  classifyChange,
  copyDueAt,
  expiryExtensionMs,
  retryDelayMs,
} from './schedule.ts'

const HOUR = 3_600_000
const NOW = 1_000_000_000
const MINUTE = 60_000
const takenRecords = { a: '', b: '', c: '' }

describe('when a change is copied', () => {
  test.each<readonly [rule: string, state: CopyState, change: 'transition' | 'renewal', jitter: number, inMs: number]>([
    ['never copied: a transition after a second', {}, 'transition', 0, 1_000],
    ['never copied: a transition after a second and a random part', {}, 'transition', 0.75, 1_750],
    ['copied just now: a transition after a second', { copiedAt: NOW }, 'transition', 0, 1_000],
    ['copied just now: a renewal after nine minutes', { copiedAt: NOW }, 'renewal', 0, 9 * MINUTE],
    ['copied just now: a renewal before ten minutes', { copiedAt: NOW }, 'renewal', 0.5, 9.5 * MINUTE],
    ['copied 8 minutes ago: a renewal after the ninth', { copiedAt: NOW - 8 * MINUTE }, 'renewal', 0, MINUTE],
    ['copied long ago: a renewal immediately', { copiedAt: NOW - 60 * MINUTE }, 'renewal', 0.5, 0],
    [
      'copied by a clock that was ahead: a renewal within ten minutes',
      { copiedAt: NOW + 60 * MINUTE },
      'renewal',
      0,
      10 * MINUTE,
    ],
    ['copied under three keys: a renewal after 27 minutes', { copiedAt: NOW, takenRecords }, 'renewal', 0, 27 * MINUTE],
    ['copied under three keys: a transition after a second', { copiedAt: NOW, takenRecords }, 'transition', 0, 1_000],
    ['a renewal is due: a transition comes before it', { copiedAt: NOW, dueAt: NOW + MINUTE }, 'transition', 0, 1_000],
    ['a transition is due: a renewal does not delay it', { copiedAt: NOW, dueAt: NOW + 500 }, 'renewal', 0, 500],
    ['overdue: unchanged', { copiedAt: NOW - 5, dueAt: NOW - 1 }, 'transition', 0, -1],
    ['due by a clock that was ahead: earlier', { dueAt: NOW + 60 * MINUTE }, 'transition', 0, 1_000],
    ['after a failure: not before the retry', { dueAt: NOW + 9_000, retryAt: NOW + 9_000 }, 'transition', 0, 9_000],
    ['after a failure while the clock was ahead', { dueAt: NOW + HOUR, retryAt: NOW + HOUR }, 'transition', 0, 60_000],
  ])('%s', (_, state, change, jitter, inMs) => {
    expect(copyDueAt(state, change, NOW, jitter)).toBe(NOW + inMs)
  })

  test('no due copy is delayed, and none lags more than two seconds or ten minutes', () => {
    const time = fc.option(fc.integer({ min: NOW - 100_000, max: NOW + 100_000 }), { nil: undefined })
    const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    const change = fc.constantFrom('transition' as const, 'renewal' as const)
    fc.assert(
      fc.property(time, time, change, jitter, (copiedAt, dueAt, kind, value) => {
        const state = {
          ...(copiedAt === undefined ? {} : { copiedAt }),
          ...(dueAt === undefined ? {} : { dueAt }),
        }
        const at = copyDueAt(state, kind, NOW, value)
        expect(at).toBeLessThanOrEqual(dueAt ?? Number.POSITIVE_INFINITY)
        expect(at).toBeLessThanOrEqual(NOW + (kind === 'transition' ? 2_000 : 10 * MINUTE))
      }),
    )
  })
})

describe('the copies of slots that change at the same time', () => {
  const dueIn = (pace: CopyPace, now = NOW, state: CopyState = {}) =>
    copyDueAt(state, 'transition', now, pace.nextJitter(now, 0)) - now

  test('are written at a limited rate, a second after the first change', () => {
    const pace = new CopyPace()
    const due = Array.from({ length: 500 }, () => dueIn(pace))
    expect([due[0], due[1], due[99], due[499]]).toEqual([1_020, 1_040, 3_000, 11_000])
    // The backlog gets shorter with time.
    expect(dueIn(pace, NOW + 4_000)).toBe(7_020)
    expect(dueIn(pace, NOW + 60_000)).toBe(1_020)
  })

  test('are not delayed by the next change', () => {
    const pace = new CopyPace()
    const dueAt = NOW + dueIn(pace)
    for (let n = 0; n < 500; n += 1) pace.nextJitter(NOW, 0)
    expect(copyDueAt({ dueAt: NOW + 4_000 }, 'transition', NOW, pace.nextJitter(NOW, 0))).toBe(NOW + 4_000)
    expect(copyDueAt({ dueAt }, 'transition', NOW, pace.nextJitter(NOW, 0))).toBe(dueAt)
  })

  test('have a random part without a backlog', () => {
    expect(new CopyPace().nextJitter(NOW, 0.5)).toBe(0.5)
  })

  test('are not delayed by a clock that was ahead', () => {
    const pace = new CopyPace()
    pace.nextJitter(NOW + 3_600_000, 0)
    expect(dueIn(pace)).toBe(1_020)
  })
})

describe('the expiry in a copy', () => {
  const lease: LeaseState = {
    kind: 'held',
    holder: 'a',
    acquiredAt: 1,
    writtenAt: 2,
    expiresAt: NOW + 1,
    generation: 4,
  }

  test.each<readonly [rule: string, lease: LeaseState, lagMs: number, ms: number]>([
    ['is that of the last moment at which readers lack the next copy', lease, 10 * MINUTE, 12 * MINUTE - 1],
    ['of a drained lease is exact', lease, 0, 0],
    ['of a long lease is exact', { ...lease, expiresAt: NOW + 12 * MINUTE }, 10 * MINUTE, 0],
    ['of an expired lease is exact', { ...lease, expiresAt: NOW }, 10 * MINUTE, 0],
    ['of a released lease is exact', { kind: 'released', acquiredAt: 1, writtenAt: 2, generation: 5 }, 10 * MINUTE, 0],
  ])('%s', (_, state, lagMs, ms) => {
    expect(expiryExtensionMs(state, lagMs, NOW)).toBe(ms)
  })
})

describe('the kind of change that is missing in a copy', () => {
  const held = (lease: Partial<HeldLease> = {}): LeaseState => ({
    kind: 'held',
    holder: 'a',
    acquiredAt: 1,
    writtenAt: 2,
    expiresAt: 3,
    generation: 4,
    ...lease,
  })
  const released: LeaseState = { kind: 'released', acquiredAt: 0, writtenAt: 0, generation: 5 }

  test.each<readonly [rule: string, before: LeaseState, after: LeaseState, change: 'transition' | 'renewal']>([
    ['renewed', held(), held({ writtenAt: 9, expiresAt: 10, generation: 5 }), 'renewal'],
    ['another holder', held(), held({ holder: 'b', generation: 5 }), 'transition'],
    ['the same holder, a later acquiredAt', held(), held({ acquiredAt: 9, generation: 5 }), 'transition'],
    ['released', held(), released, 'transition'],
    ['acquired', released, held({ generation: 6 }), 'transition'],
  ])('%s', (_, before, after, change) => {
    expect(classifyChange(before, after)).toBe(change)
  })
})

describe('the state after an attempt', () => {
  const lease: LeaseState = { kind: 'released', acquiredAt: 1, writtenAt: 2, generation: 4 }

  test('that succeeded: the copy is up to date', () => {
    expect(afterCopy({}, lease, lease, NOW, 0)).toEqual({ copiedAt: NOW })
  })

  test('that succeeded, with a change during the attempt: the next copy is due', () => {
    expect(afterCopy({}, lease, { ...lease, generation: 5 }, NOW, 0)).toEqual({ copiedAt: NOW, dueAt: NOW + 1_000 })
    expect(afterCopy({}, lease, { ...lease, writtenAt: 1 }, NOW, 0)).toEqual({ copiedAt: NOW, dueAt: NOW + 1_000 })
    const held: LeaseState = { ...lease, kind: 'held', holder: 'a', expiresAt: 3 }
    const renewed = { ...held, generation: 5 }
    expect(afterCopy({ takenRecords }, held, renewed, NOW, 0)).toMatchObject({ dueAt: NOW + 27 * MINUTE })
  })

  test('that failed: it is repeated', () => {
    const failed = afterFailure({ copiedAt: 7, dueAt: 8 }, { failures: 2, wasAbandoned: false }, NOW, 0)
    expect(failed).toEqual({ copiedAt: 7, dueAt: NOW + 1_000, retryAt: NOW + 1_000 })
  })

  test('that was abandoned: the next copy is written again when the abandoned one can no longer take effect', () => {
    const abandoned = afterFailure({ dueAt: 8 }, { failures: 1, wasAbandoned: true }, NOW, 0)
    expect(abandoned).toEqual({ dueAt: NOW + 500, retryAt: NOW + 500, abandonedAt: NOW })
    const copied = afterCopy(abandoned, lease, lease, NOW + 500, 0)
    expect(copied).toEqual({ copiedAt: NOW + 500, abandonedAt: NOW, dueAt: NOW + 15 * MINUTE })
    expect(afterCopy(copied, lease, lease, NOW + 15 * MINUTE, 0)).toEqual({ copiedAt: NOW + 15 * MINUTE })
  })
})

describe('the pause before a retry', () => {
  test.each<readonly [failures: number, jitter: number, ms: number]>([
    [1, 0, 500],
    [1, 0.5, 750],
    [2, 0, 1_000],
    [3, 0, 2_000],
    [6, 0, 16_000],
    [7, 0, 30_000],
    [1_000, 0, 30_000],
    [1_000_000, 0.5, 45_000],
  ])('after %d failures, jitter %d: %d ms', (failures, jitter, ms) => {
    expect(retryDelayMs(failures, jitter)).toBe(ms)
  })

  test('is at least half a second and at most a minute', () => {
    const jitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 1 }), jitter, (failures, value) => {
        expect(retryDelayMs(failures, value)).toBeGreaterThanOrEqual(500)
        expect(retryDelayMs(failures, value)).toBeLessThanOrEqual(60_000)
      }),
    )
  })
})

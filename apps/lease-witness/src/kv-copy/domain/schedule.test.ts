import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { HeldLease, LeaseState } from '../../lease/lease.ts'
import { type CopyState, classifyChange, copyDueAt, retryDelayMs } from './schedule.ts'

const NOW = 1_000_000

describe('when a change is copied', () => {
  test.each<readonly [rule: string, state: CopyState, change: 'transition' | 'renewal', dueAt: number]>([
    ['never copied: a transition immediately', {}, 'transition', NOW],
    ['never copied: a renewal immediately', {}, 'renewal', NOW],
    ['copied long ago: a transition immediately', { copiedAt: NOW - 60_000 }, 'transition', NOW],
    ['copied long ago: a renewal immediately', { copiedAt: NOW - 60_000 }, 'renewal', NOW],
    ['copied 59,999 ms ago: a renewal at the full minute', { copiedAt: NOW - 59_999 }, 'renewal', NOW + 1],
    ['copied just now: a renewal in a minute', { copiedAt: NOW }, 'renewal', NOW + 60_000],
    ['copied just now: a transition in a second', { copiedAt: NOW }, 'transition', NOW + 1_000],
    ['copied a second ago: a transition immediately', { copiedAt: NOW - 1_000 }, 'transition', NOW],
    [
      'a renewal is due: a transition comes before it',
      { copiedAt: NOW, dueAt: NOW + 60_000 },
      'transition',
      NOW + 1_000,
    ],
    ['a transition is due: a renewal does not delay it', { copiedAt: NOW, dueAt: NOW + 500 }, 'renewal', NOW + 500],
    ['overdue: unchanged', { copiedAt: NOW - 5, dueAt: NOW - 1 }, 'transition', NOW - 1],
    ['a first copy that has not succeeded stays due', { dueAt: NOW - 9_000 }, 'renewal', NOW - 9_000],
  ])('%s', (_, state, change, dueAt) => {
    expect(copyDueAt(state, change, NOW)).toBe(dueAt)
  })

  test('no due copy is delayed, and no transition waits longer than a second', () => {
    const time = fc.option(fc.integer({ min: NOW - 100_000, max: NOW }), { nil: undefined })
    const due = fc.option(fc.integer({ min: NOW - 100_000, max: NOW + 60_000 }), { nil: undefined })
    fc.assert(
      fc.property(time, due, fc.constantFrom('transition' as const, 'renewal' as const), (copiedAt, dueAt, change) => {
        const at = copyDueAt(
          { ...(copiedAt === undefined ? {} : { copiedAt }), ...(dueAt === undefined ? {} : { dueAt }) },
          change,
          NOW,
        )
        expect(at).toBeLessThanOrEqual(dueAt ?? Number.POSITIVE_INFINITY)
        expect(at).toBeLessThanOrEqual(NOW + (change === 'transition' ? 1_000 : 60_000))
      }),
    )
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
    ['renewed many times', held(), held({ writtenAt: 9, generation: 50 }), 'renewal'],
    ['another holder', held(), held({ holder: 'b', generation: 5 }), 'transition'],
    ['the same holder, a later acquiredAt', held(), held({ acquiredAt: 9, generation: 5 }), 'transition'],
    ['released', held(), released, 'transition'],
    ['acquired', released, held({ generation: 6 }), 'transition'],
    ['released again', released, { kind: 'released', acquiredAt: 0, writtenAt: 0, generation: 7 }, 'transition'],
  ])('%s', (_, before, after, change) => {
    expect(classifyChange(before, after)).toBe(change)
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

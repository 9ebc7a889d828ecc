import type { Completion, Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import { describe, expect, it } from 'vitest'
import { findHolderOverlaps, toHolderIntervals } from '../../src/soak/checks/lease-holders.ts'

const iso = (ms: number) => new Date(ms).toISOString()
const createOperation = (start: number, end: number, invocation: Invocation, completion?: Completion): Operation => ({
  slot: 'pair',
  invocation,
  start,
  end,
  sentAt: start,
  receivedAt: end,
  ...(completion && { completion }),
})
const acquire = (start: number, holder: string, generation: number, ttlMs = 1_000): Operation =>
  createOperation(
    start,
    start + 2,
    { kind: 'acquire', holder, generation: generation - 1, ttlMs },
    {
      status: 200,
      lease: { holder, acquiredAt: iso(start), expiresAt: iso(start + ttlMs), generation },
    },
  )
const releaseLease = (start: number, holder: string, generation: number, completion?: Completion): Operation =>
  createOperation(start, start + 2, { kind: 'release', holder, generation }, completion)

const findOverlaps = (operations: readonly Operation[]) => findHolderOverlaps(toHolderIntervals(operations))

describe('one holder per lease generation', () => {
  it.each<readonly [string, readonly Operation[]]>([
    ['after the expiry', [acquire(0, 'a', 1), acquire(1_000, 'b', 2)]],
    ['after a release', [acquire(0, 'a', 1), releaseLease(100, 'a', 1, { status: 204 }), acquire(103, 'b', 3)]],
    ['after a release without a response', [acquire(0, 'a', 1), releaseLease(100, 'a', 1), acquire(103, 'b', 3)]],
    ['after a shorter renewal', [acquire(0, 'a', 1, 3_000), acquire(100, 'a', 2, 1_000), acquire(1_100, 'b', 3)]],
    ['a renewal by the holder', [acquire(0, 'a', 1), acquire(500, 'a', 2), acquire(1_500, 'b', 3)]],
    ['another slot', [acquire(0, 'a', 1), { ...acquire(100, 'b', 1), slot: 'other' }]],
  ])('good: %s', (_, operations) => {
    expect(findOverlaps(operations)).toEqual([])
  })

  it.each<readonly [string, RegExp, readonly Operation[]]>([
    [
      'two holders at the same time',
      /b \(2\) and a \(1\) overlap by 498 ms/,
      [acquire(0, 'a', 1), acquire(500, 'b', 2)],
    ],
    [
      'two holders of one generation',
      /generation 1 granted to a and to b/,
      [acquire(0, 'a', 1), acquire(2_000, 'b', 1)],
    ],
    ['an earlier interval with a lower generation', /overlap by/, [acquire(500, 'b', 2), acquire(0, 'a', 1)]],
    [
      'a release by another holder',
      /overlap by/,
      [acquire(0, 'a', 1), releaseLease(100, 'c', 1, { status: 204 }), acquire(200, 'b', 3)],
    ],
  ])('caught: %s', (_, fault, operations) => {
    expect(findOverlaps(operations).join('\n')).toMatch(fault)
  })
})

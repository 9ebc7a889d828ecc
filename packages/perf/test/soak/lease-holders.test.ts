import type { Completion, Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import { describe, expect, it } from 'vitest'
import { findHolderOverlaps, toHolderIntervals } from '../../src/soak/checks/lease-holders.ts'

const iso = (ms: number) => new Date(ms).toISOString()
const of = (start: number, end: number, invocation: Invocation, completion?: Completion): Operation => ({
  slot: 'pair',
  invocation,
  start,
  end,
  sentAt: start,
  receivedAt: end,
  ...(completion && { completion }),
})
const take = (start: number, holder: string, generation: number, ttlMs = 1_000): Operation =>
  of(
    start,
    start + 2,
    { kind: 'acquire', holder, generation: generation - 1, ttlMs },
    {
      status: 200,
      lease: { holder, acquiredAt: iso(start), expiresAt: iso(start + ttlMs), generation },
    },
  )
const give = (start: number, holder: string, generation: number, completion?: Completion): Operation =>
  of(start, start + 2, { kind: 'release', holder, generation }, completion)
const unanswered = (start: number, holder: string, generation: number, ttlMs: number): Operation =>
  of(start, start + 2, { kind: 'renew', holder, generation, ttlMs })

const faultsOf = (operations: readonly Operation[]) => findHolderOverlaps(toHolderIntervals(operations))

describe('one holder per lease generation', () => {
  it.each<readonly [string, readonly Operation[]]>([
    ['after the expiry', [take(0, 'a', 1), take(1_000, 'b', 2)]],
    ['after a release', [take(0, 'a', 1), give(100, 'a', 1, { status: 204 }), take(103, 'b', 3)]],
    ['after a release without an answer', [take(0, 'a', 1), give(100, 'a', 1), take(103, 'b', 3)]],
    ['its own renewal', [take(0, 'a', 1), take(500, 'a', 2), take(1_500, 'b', 3)]],
    ['after a shorter renewal', [take(0, 'a', 1, 3_000), take(100, 'a', 2, 1_000), take(1_100, 'b', 3)]],
    [
      'after a shorter renewal without an answer',
      [take(0, 'a', 1, 3_000), unanswered(100, 'a', 1, 1_000), take(1_100, 'b', 3)],
    ],
    ['elsewhere', [take(0, 'a', 1), { ...take(100, 'b', 1), slot: 'other' }]],
  ])('good: %s', (_, operations) => {
    expect(faultsOf(operations)).toEqual([])
  })

  it.each<readonly [string, RegExp, readonly Operation[]]>([
    ['two at once', /b \(2\) and a \(1\) overlap by 498 ms/, [take(0, 'a', 1), take(500, 'b', 2)]],
    ['two of one generation', /generation 1 granted to a and to b/, [take(0, 'a', 1), take(2_000, 'b', 1)]],
    ['a generation that came late', /overlap by/, [take(500, 'b', 2), take(0, 'a', 1)]],
    ['a renewal that was not seen', /overlap by/, [take(0, 'a', 1), take(900, 'a', 2), take(1_500, 'b', 3)]],
    ['a refused release', /overlap by/, [take(0, 'a', 1), give(100, 'c', 1, { status: 204 }), take(200, 'b', 3)]],
  ])('caught: %s', (_, fault, operations) => {
    expect(faultsOf(operations).join('\n')).toMatch(fault)
  })
})

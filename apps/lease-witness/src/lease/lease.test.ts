import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  advanceClock,
  type Decision,
  decide,
  endsWait,
  type HeldLease,
  includesGeneration,
  isExpired,
  jumpAfterLoss,
  type KnownGenerations,
  type LeaseState,
  type LeaseWrite,
  MAX_BRIDGED_MS,
  type RejectionReason,
  toRemainingMs,
  toWireLease,
} from './lease.ts'

const NOW = 1_000_000
const held = (lease: Partial<HeldLease> = {}): HeldLease => ({
  kind: 'held',
  holder: 'a',
  acquiredAt: NOW - 50_000,
  writtenAt: NOW - 10_000,
  expiresAt: NOW + 20_000,
  generation: 7,
  ...lease,
})
const lastMoment = held({ expiresAt: NOW + 1 })
const expired = held({ expiresAt: NOW })
const released: LeaseState = { kind: 'released', acquiredAt: NOW - 50_000, writtenAt: NOW - 10_000, generation: 7 }

const acquire = (holder: string, generation: number): LeaseWrite => ({
  kind: 'acquire',
  holder,
  ttlMs: 30_000,
  generation,
})
const renew = (holder: string, generation: number): LeaseWrite => ({
  kind: 'renew',
  holder,
  ttlMs: 30_000,
  generation,
})
const release = (holder: string, generation: number): LeaseWrite => ({ kind: 'release', holder, generation })

const rejected = (reason: RejectionReason): Decision => ({ kind: 'rejected', reason })

/** A new tenure, recorded in the history. */
const acquired = (holder: string, from: string, generation: number): Decision => ({
  kind: 'granted',
  next: { kind: 'held', holder, acquiredAt: NOW, writtenAt: NOW, expiresAt: NOW + 30_000, generation },
  transition: { event: 'acquired', by: holder, from, to: holder },
})
/** A renewal: `acquiredAt` stays, and the history does not grow. */
const renewed: Decision = {
  kind: 'granted',
  next: held({ writtenAt: NOW, expiresAt: NOW + 30_000, generation: 8 }),
  transition: undefined,
}
const releasedBy = (by: string): Decision => ({
  kind: 'released',
  next: { kind: 'released', acquiredAt: NOW - 50_000, writtenAt: NOW, generation: 8 },
  transition: { event: 'released', by, from: 'a', to: '' },
})

type Row = readonly [rule: string, current: LeaseState | undefined, request: LeaseWrite, decision: Decision]

test.each<Row>([
  ['acquire: never written, 0', undefined, acquire('a', 0), acquired('a', '', 1)],
  ['acquire: never written, a higher generation', undefined, acquire('a', 1), rejected('generation')],
  ['acquire: released, generation equal', released, acquire('a', 7), acquired('a', '', 8)],
  ['acquire: released, generation equal, another holder', released, acquire('b', 7), acquired('b', '', 8)],
  ['acquire: released, generation 0 (never written)', released, acquire('a', 0), rejected('generation')],
  ['acquire: released, generation lower', released, acquire('a', 6), rejected('generation')],
  ['acquire: released, generation higher', released, acquire('a', 8), rejected('generation')],
  ['acquire: held by the same holder, generation equal', held(), acquire('a', 7), renewed],
  ['acquire: held by the same holder, generation lower', held(), acquire('a', 6), rejected('generation')],
  ['acquire: held by the same holder, generation higher', held(), acquire('a', 8), rejected('generation')],
  ['acquire: held by the same holder, 0', held(), acquire('a', 0), rejected('generation')],
  ['acquire: held by another, generation equal', held(), acquire('b', 7), rejected('held')],
  ['acquire: held by another, generation lower', held(), acquire('b', 6), rejected('generation')],
  ['acquire: held by another, generation higher', held(), acquire('b', 8), rejected('generation')],
  ['acquire: by another holder, in the last millisecond of the lease', lastMoment, acquire('b', 7), rejected('held')],
  ['acquire: by another holder, in the first millisecond after it', expired, acquire('b', 7), acquired('b', 'a', 8)],
  ['acquire: expired, generation lower', expired, acquire('b', 6), rejected('generation')],
  ['acquire: expired, generation higher', expired, acquire('b', 8), rejected('generation')],
  ['acquire: expired, the same holder begins a new tenure', expired, acquire('a', 7), acquired('a', 'a', 8)],
  ['acquire: holders differ by case', held(), acquire('A', 7), rejected('held')],

  ['renew: never written, 0', undefined, renew('a', 0), rejected('not-holder')],
  ['renew: never written, a higher generation', undefined, renew('a', 1), rejected('generation')],
  ['renew: released', released, renew('a', 7), rejected('not-holder')],
  ['renew: released, generation lower', released, renew('a', 6), rejected('generation')],
  ['renew: held by the same', held(), renew('a', 7), renewed],
  ['renew: held by the same holder, generation lower', held(), renew('a', 6), rejected('generation')],
  ['renew: held by the same holder, generation higher', held(), renew('a', 8), rejected('generation')],
  ['renew: held by another', held(), renew('b', 7), rejected('not-holder')],
  ['renew: in the last millisecond', lastMoment, renew('a', 7), renewed],
  ['renew: expired, by the same holder', expired, renew('a', 7), rejected('expired')],
  ['renew: expired, by another holder', expired, renew('b', 7), rejected('not-holder')],
  ['renew: expired, generation lower', expired, renew('a', 6), rejected('generation')],

  ['release: never written, 0', undefined, release('a', 0), { kind: 'absent' }],
  ['release: never written, any generation', undefined, release('a', 9), { kind: 'absent' }],
  ['release: already released', released, release('a', 7), rejected('not-holder')],
  ['release: released, generation lower', released, release('a', 6), rejected('generation')],
  ['release: held by the same', held(), release('a', 7), releasedBy('a')],
  ['release: held by the same holder, generation lower', held(), release('a', 6), rejected('generation')],
  ['release: held by the same holder, generation higher', held(), release('a', 8), rejected('generation')],
  ['release: held by another', held(), release('b', 7), rejected('not-holder')],
  ['release: expired, by the same', expired, release('a', 7), releasedBy('a')],
  ['release: expired, by another', expired, release('b', 7), rejected('not-holder')],
])('%s', (_, current, request, decision) => {
  expect(decide(current, request, NOW)).toEqual(decision)
})

describe('the value of the lease', () => {
  const own = held({ value: 'of a' })
  const ended = held({ value: 'of a', expiresAt: NOW })
  const withValue = (request: LeaseWrite, value: string): LeaseWrite => ({ ...request, value }) as LeaseWrite

  test.each<readonly [rule: string, current: LeaseState | undefined, request: LeaseWrite, value: string | undefined]>([
    ['is set by the first acquisition', undefined, withValue(acquire('a', 0), 'x'), 'x'],
    ['is set by a renewal', held(), withValue(renew('a', 7), 'x'), 'x'],
    ['is replaced by a renewal', own, withValue(renew('a', 7), 'x'), 'x'],
    ['is replaced by an acquisition of the holder', own, withValue(acquire('a', 7), 'x'), 'x'],
    ['is kept by a renewal without one', own, renew('a', 7), 'of a'],
    ['is kept by an acquisition of the holder without one', own, acquire('a', 7), 'of a'],
    ['is kept in the last millisecond', { ...own, expiresAt: NOW + 1 }, acquire('a', 7), 'of a'],
    ['is removed by an empty one', own, withValue(renew('a', 7), ''), undefined],
    ['is not set by an empty one', undefined, withValue(acquire('a', 0), ''), undefined],
    ['ends with the tenure: another holder', ended, acquire('b', 7), undefined],
    ['ends with the tenure: the same holder', ended, acquire('a', 7), undefined],
    ['is that of the new holder', ended, withValue(acquire('b', 7), 'of b'), 'of b'],
    ['is that of the new tenure', ended, withValue(acquire('a', 7), 'new'), 'new'],
    ['is removed by a release', own, release('a', 7), undefined],
    ['of an expired lease is removed by a release', ended, release('a', 7), undefined],
  ])('%s', (_, current, request, value) => {
    const decision = decide(current, request, NOW)
    if (!('next' in decision)) throw new Error(decision.kind)
    for (const lease of [decision.next, toWireLease(decision.next)]) {
      if (value === undefined) expect(lease).not.toHaveProperty('value')
      else expect(lease).toHaveProperty('value', value)
    }
  })

  test('stays when the clock was set back', () => {
    expect(advanceClock(own, NOW - 3_600_000).reanchored).toMatchObject({ value: 'of a' })
  })
})

test.each([
  ['before its end', NOW + 1, false],
  ['at its end', NOW, true],
  ['after its end', NOW - 1, true],
])('%s a lease is expired or not', (_, expiresAt, answer) => {
  expect(isExpired(held({ expiresAt }), NOW)).toBe(answer)
})

describe('a new tenure', () => {
  const future = NOW + 3_600_000
  test.each<readonly [rule: string, current: LeaseState, request: LeaseWrite, acquiredAt: number]>([
    ['starts at the clock of the slot', released, acquire('b', 7), NOW],
    ['of a slot released in this millisecond starts later', { ...released, acquiredAt: NOW }, acquire('b', 7), NOW + 1],
    [
      'after one that started in the future starts later',
      { ...released, acquiredAt: future },
      acquire('b', 7),
      future + 1,
    ],
    [
      'after an expired one that started in the future',
      held({ expiresAt: NOW, acquiredAt: future }),
      acquire('b', 7),
      future + 1,
    ],
    ['of the same holder', held({ expiresAt: NOW, acquiredAt: future }), acquire('a', 7), future + 1],
  ])('%s', (_, current, request, acquiredAt) => {
    const decision = decide(current, request, NOW)
    expect(decision).toMatchObject({ kind: 'granted', next: { acquiredAt, writtenAt: NOW, expiresAt: NOW + 30_000 } })
  })
})

describe('the clock of a slot', () => {
  const written = NOW - 10_000
  const lease = held({ writtenAt: written, expiresAt: written + 30_000 })
  const limit = written - MAX_BRIDGED_MS

  test('one minute is bridged', () => {
    expect(MAX_BRIDGED_MS).toBe(60_000)
  })

  test.each<readonly [rule: string, state: LeaseState | undefined, wallNow: number, now: number]>([
    ['never written: the wall clock', undefined, NOW, NOW],
    ['held, later than the last write: the wall clock', lease, NOW, NOW],
    ['held, in the millisecond of the last write: the wall clock', lease, written, written],
    ['held, one millisecond behind: the last write', lease, written - 1, written],
    ['held, a minute behind: the last write', lease, limit, written],
    ['released, a minute behind: the last write', { ...released, writtenAt: written }, limit, written],
    ['expired, a minute behind: the last write', { ...lease, expiresAt: written + 1 }, limit, written],
  ])('%s', (_, state, wallNow, now) => {
    expect(advanceClock(state, wallNow)).toEqual({ now, reanchored: undefined })
  })

  test.each<readonly [rule: string, state: LeaseState, wallNow: number, reanchored: LeaseState]>([
    [
      'held, more than a minute behind: its whole TTL again',
      lease,
      limit - 1,
      { ...lease, writtenAt: limit - 1, expiresAt: limit - 1 + 30_000 },
    ],
    [
      'expired by the clock that was ahead: its whole TTL again',
      { ...lease, expiresAt: written + 5_000 },
      written - 3_600_000,
      { ...lease, writtenAt: written - 3_600_000, expiresAt: written - 3_600_000 + 5_000 },
    ],
    [
      'released, more than a minute behind: only the time of the last write',
      { ...released, writtenAt: written },
      limit - 1,
      { ...released, writtenAt: limit - 1 },
    ],
  ])('%s', (_, state, wallNow, reanchored) => {
    expect(advanceClock(state, wallNow)).toEqual({ now: wallNow, reanchored })
    expect(advanceClock(reanchored, wallNow)).toEqual({ now: wallNow, reanchored: undefined })
  })

  test.each([
    [0, 2 ** 20],
    [0.5, 2 ** 20 + 10],
    [1, 2 ** 20 + 10],
    [3_600_000, 2 ** 20 + 36_000_000],
    [-1, 2 ** 20],
  ])('after the loss of the writes of %d ms, the generation jumps by %d', (lostMs, jump) => {
    expect(jumpAfterLoss(lostMs)).toBe(jump)
  })
})

describe('whether a waiting reader gets a response', () => {
  test.each<readonly [rule: string, current: LeaseState | undefined, known: KnownGenerations, changed: boolean]>([
    ['held, its generation is known', lastMoment, [7], false],
    ['held, an older generation is known', lastMoment, [6], true],
    ['held, a newer generation is known', lastMoment, [8], true],
    ['held, nothing is known', lastMoment, [], true],
    ['held, any generation is known', lastMoment, 'any', false],
    ['expired in this millisecond, its generation is known', expired, [7], true],
    ['expired, any generation is known', expired, 'any', true],
    ['released, its generation is known', released, [7], false],
    ['released, another generation is known', released, [6], true],
    ['released, any generation is known', released, 'any', false],
    ['never written, and 0 is known', undefined, [0], false],
    ['never written, and another generation is known', undefined, [1], true],
    ['never written: * matches nothing', undefined, 'any', true],
  ])('%s: %s', (_, current, known, changed) => {
    expect(endsWait({ kind: 'changed', known }, current, NOW)).toBe(changed)
  })

  test.each<readonly [rule: string, current: LeaseState | undefined, isVacant: boolean]>([
    ['never written', undefined, true],
    ['released', released, true],
    ['held', held({ expiresAt: NOW + 1 }), false],
    ['expired', held({ expiresAt: NOW }), true],
  ])('for a vacant slot, if it is %s: %s', (_, current, isVacant) => {
    expect(endsWait({ kind: 'vacant' }, current, NOW)).toBe(isVacant)
  })

  test.each<readonly [known: KnownGenerations, isIncluded: boolean]>([
    ['any', true],
    [[7], true],
    [[6, 7], true],
    [[6], false],
    [[], false],
  ])('%j includes generation 7: %s', (known, isIncluded) => {
    expect(includesGeneration(known, 7)).toBe(isIncluded)
  })
})

test.each<readonly [rule: string, current: LeaseState | undefined, ms: number | undefined]>([
  ['never written', undefined, undefined],
  ['released', released, undefined],
  ['held', held({ expiresAt: NOW + 1_500 }), 1_500],
  ['at its expiry', held({ expiresAt: NOW }), 0],
  ['expired', held({ expiresAt: NOW - 5 }), 0],
])('the remaining time of a slot that is %s', (_, current, ms) => {
  expect(toRemainingMs(current, NOW)).toBe(ms)
})

describe('a lease on the wire', () => {
  const empty = { holder: '', acquiredAt: '', expiresAt: '' }

  test('never written: looks released, with generation 0', () => {
    expect(toWireLease(undefined)).toEqual({ ...empty, generation: 0 })
  })

  test('released: its generation only', () => {
    expect(toWireLease(released)).toEqual({ ...empty, generation: 7 })
  })

  test('held: times with milliseconds, without writtenAt', () => {
    const acquiredAt = Date.parse('2026-01-31T12:00:00Z')
    expect(toWireLease(held({ acquiredAt, expiresAt: acquiredAt + 30_500 }))).toEqual({
      holder: 'a',
      acquiredAt: '2026-01-31T12:00:00.000Z',
      expiresAt: '2026-01-31T12:00:30.500Z',
      generation: 7,
    })
  })
})

/**
 * A random request, some time after the previous one. `off` is the difference to the current generation. `clockStepMs` is
 * added to the wall clock just before.
 */
const step = fc.record({
  kind: fc.constantFrom('acquire' as const, 'renew' as const, 'release' as const),
  holder: fc.constantFrom('a', 'b', 'c'),
  off: fc.constantFrom(0, 0, 0, -1, 1),
  ttlMs: fc.integer({ min: 1_000, max: 5_000 }),
  elapsed: fc.integer({ min: 0, max: 4_000 }),
  clockStepMs: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: -MAX_BRIDGED_MS, max: MAX_BRIDGED_MS }) },
    { weight: 1, arbitrary: fc.integer({ min: -3_600_000, max: 3_600_000 }) },
  ),
})

interface Recorded {
  readonly before: LeaseState | undefined
  readonly request: LeaseWrite
  readonly decision: Decision
  readonly after: LeaseState | undefined
  readonly now: number
  readonly wasSetBack: boolean
  readonly wallNow: number
  /** Time that has really passed, whatever the wall clock shows. */
  readonly trueNow: number
  readonly clockStepMs: number
}

const run = (steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]): Recorded[] => {
  let current: LeaseState | undefined
  // After 1970, whatever the steps of the clock.
  let trueNow = 1_000_000_000_000
  let offset = 0
  return steps.map(({ kind, holder, off, ttlMs, elapsed, clockStepMs }) => {
    trueNow += elapsed
    offset += clockStepMs
    const wallNow = trueNow + offset
    const { now, reanchored } = advanceClock(current, wallNow)
    const before = reanchored ?? current
    const generation = (before?.generation ?? 0) + off
    const request: LeaseWrite = kind === 'release' ? { kind, holder, generation } : { kind, holder, ttlMs, generation }
    const decision = decide(before, request, now)
    current = 'next' in decision ? decision.next : before
    const wasSetBack = reanchored !== undefined
    return { before, request, decision, after: current, now, wasSetBack, wallNow, trueNow, clockStepMs }
  })
}

const always = (holds: (step: Recorded) => boolean): void =>
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), steps => run(steps).every(holds)))

const isLive = (lease: LeaseState | undefined, now: number): lease is HeldLease =>
  lease?.kind === 'held' && !isExpired(lease, now)

describe('in any sequence of writes', () => {
  test('each successful write names the current generation and gets the next', () => {
    always(({ before, request, decision }) => {
      if (!('next' in decision)) return true
      const generation = before?.generation ?? 0
      return request.generation === generation && decision.next.generation === generation + 1
    })
  })

  test('each rejected write changes nothing', () => {
    always(({ before, decision, after }) => 'next' in decision || after === before)
  })

  test('no write replaces the holder of an unexpired lease', () => {
    always(
      ({ before, request, after, now }) =>
        !isLive(before, now) ||
        request.holder === before.holder ||
        (isLive(after, now) && after.holder === before.holder),
    )
  })

  test('a granted lease is valid for its whole TTL', () => {
    always(
      ({ request, decision, now }) =>
        decision.kind !== 'granted' ||
        request.kind === 'release' ||
        (decision.next.holder === request.holder && decision.next.expiresAt === now + request.ttlMs),
    )
  })

  test('acquiredAt stays if the same holder held it unexpired, and only then', () => {
    always(({ before, decision, now }) => {
      if (decision.kind !== 'granted') return true
      const isRenewal = isLive(before, now) && before.holder === decision.next.holder
      return isRenewal
        ? decision.next.acquiredAt === before.acquiredAt
        : decision.next.acquiredAt >= now && decision.next.acquiredAt > (before?.acquiredAt ?? 0)
    })
  })

  test('the history records every change of tenure, and nothing else', () => {
    always(({ before, decision, now }) => {
      if (!('next' in decision)) return true
      const isRenewal = decision.kind === 'granted' && isLive(before, now) && before.holder === decision.next.holder
      return (decision.transition === undefined) === isRenewal
    })
  })

  test('a renewal never changes the holder', () => {
    always(
      ({ before, request, decision, now }) =>
        request.kind !== 'renew' ||
        decision.kind !== 'granted' ||
        (isLive(before, now) && before.holder === request.holder),
    )
  })

  test('the time of the last write decreases only if the clock is set back by more than a minute', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), steps => {
        let writtenAt = 0
        for (const { before, after, now, wasSetBack } of run(steps)) {
          if (wasSetBack) expect(before?.writtenAt).toBeLessThan(writtenAt - MAX_BRIDGED_MS)
          else expect(now).toBeGreaterThanOrEqual(writtenAt)
          writtenAt = after?.writtenAt ?? 0
        }
      }),
    )
  })

  test('a lease is not shorter than its TTL, except by the steps of the clock forward', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), steps => {
        let lastGrant: { holder: string; end: number } | undefined
        let forwardMs = 0
        for (const { request, decision, trueNow, clockStepMs } of run(steps)) {
          forwardMs += Math.max(0, clockStepMs)
          if (decision.kind === 'released') lastGrant = undefined
          if (decision.kind !== 'granted' || request.kind === 'release') continue
          if (lastGrant && request.holder !== lastGrant.holder) {
            expect(trueNow).toBeGreaterThanOrEqual(lastGrant.end - forwardMs)
          }
          lastGrant = { holder: request.holder, end: trueNow + request.ttlMs }
          forwardMs = 0
        }
      }),
    )
  })

  test('a holder that stops renewing blocks its slot for at most its TTL and the minute that is bridged', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), steps => {
        const last = run(steps).at(-1)
        if (last?.after?.kind !== 'held') return
        const ttlMs = last.after.expiresAt - last.after.writtenAt
        const { now } = advanceClock(last.after, last.wallNow + MAX_BRIDGED_MS + ttlMs)
        expect(decide(last.after, acquire('d', last.after.generation), now).kind).toBe('granted')
      }),
    )
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Current, type Decision, decide, type Held, isExpired, type LeaseRequest, shown } from './lease.ts'

const NOW = 1_000_000
const held = (lease: Partial<Held> = {}): Held => ({
  kind: 'held',
  holder: 'a',
  acquiredAt: NOW - 50_000,
  renewedAt: NOW - 10_000,
  expiresAt: NOW + 20_000,
  generation: 7,
  ...lease,
})
const lastMoment = held({ expiresAt: NOW + 1 })
const expired = held({ expiresAt: NOW })
const longExpired = held({ expiresAt: NOW - 86_400_000 })
const released: Current = { kind: 'released', generation: 7 }

const acquire = (holder: string, generation: number): LeaseRequest => ({
  kind: 'acquire',
  holder,
  ttlMs: 30_000,
  generation,
})
const renew = (holder: string, generation: number): LeaseRequest => ({
  kind: 'renew',
  holder,
  ttlMs: 30_000,
  generation,
})
const release = (holder: string, generation: number): LeaseRequest => ({ kind: 'release', holder, generation })

const refused = (why: 'generation' | 'held' | 'not-holder' | 'expired'): Decision => ({ kind: 'refused', why })

/** Granted anew: since now, and history tells of it. */
const taken = (holder: string, from: string, generation: number): Decision => ({
  kind: 'granted',
  next: { kind: 'held', holder, acquiredAt: NOW, renewedAt: NOW, expiresAt: NOW + 30_000, generation },
  change: { event: 'acquired', by: holder, from, to: holder },
})
/** Granted to who holds it already: since when stays, and history does not grow. */
const kept: Decision = {
  kind: 'granted',
  next: held({ renewedAt: NOW, expiresAt: NOW + 30_000, generation: 8 }),
  change: undefined,
}
const freed = (by: string): Decision => ({
  kind: 'released',
  next: { kind: 'released', generation: 8 },
  change: { event: 'released', by, from: 'a', to: '' },
})

type Row = readonly [rule: string, current: Current | undefined, request: LeaseRequest, decision: Decision]

test.each<Row>([
  ['acquire: never written, 0', undefined, acquire('a', 0), taken('a', '', 1)],
  ['acquire: never written, a higher generation', undefined, acquire('a', 1), refused('generation')],
  ['acquire: released, generation equal', released, acquire('a', 7), taken('a', '', 8)],
  ['acquire: released, generation equal, somebody else', released, acquire('b', 7), taken('b', '', 8)],
  ['acquire: released, 0 says that it was never written', released, acquire('a', 0), refused('generation')],
  ['acquire: released, generation lower', released, acquire('a', 6), refused('generation')],
  ['acquire: released, generation higher', released, acquire('a', 8), refused('generation')],
  ['acquire: held by the same, generation equal', held(), acquire('a', 7), kept],
  ['acquire: held by the same, generation lower', held(), acquire('a', 6), refused('generation')],
  ['acquire: held by the same, generation higher', held(), acquire('a', 8), refused('generation')],
  ['acquire: held by the same, 0', held(), acquire('a', 0), refused('generation')],
  ['acquire: held by another, generation equal', held(), acquire('b', 7), refused('held')],
  ['acquire: held by another, generation lower', held(), acquire('b', 6), refused('generation')],
  ['acquire: held by another, generation higher', held(), acquire('b', 8), refused('generation')],
  ['acquire: another, in the last moment of the lease', lastMoment, acquire('b', 7), refused('held')],
  ['acquire: another, in the first moment after it', expired, acquire('b', 7), taken('b', 'a', 8)],
  ['acquire: another, long after it', longExpired, acquire('b', 7), taken('b', 'a', 8)],
  ['acquire: expired, generation lower', expired, acquire('b', 6), refused('generation')],
  ['acquire: expired, generation higher', expired, acquire('b', 8), refused('generation')],
  ['acquire: expired, the same begins a new tenure', expired, acquire('a', 7), taken('a', 'a', 8)],
  ['acquire: holders differ by case', held(), acquire('A', 7), refused('held')],

  ['renew: never written, 0', undefined, renew('a', 0), refused('not-holder')],
  ['renew: never written, a higher generation', undefined, renew('a', 1), refused('generation')],
  ['renew: released', released, renew('a', 7), refused('not-holder')],
  ['renew: released, generation lower', released, renew('a', 6), refused('generation')],
  ['renew: held by the same', held(), renew('a', 7), kept],
  ['renew: held by the same, generation lower', held(), renew('a', 6), refused('generation')],
  ['renew: held by the same, generation higher', held(), renew('a', 8), refused('generation')],
  ['renew: held by another', held(), renew('b', 7), refused('not-holder')],
  ['renew: in the last moment', lastMoment, renew('a', 7), kept],
  ['renew: expired, the same', expired, renew('a', 7), refused('expired')],
  ['renew: expired, another', expired, renew('b', 7), refused('not-holder')],
  ['renew: expired, generation lower', expired, renew('a', 6), refused('generation')],

  ['release: never written, 0', undefined, release('a', 0), { kind: 'absent' }],
  ['release: never written, whatever the generation', undefined, release('a', 9), { kind: 'absent' }],
  ['release: released, once more', released, release('a', 7), refused('not-holder')],
  ['release: released, generation lower', released, release('a', 6), refused('generation')],
  ['release: held by the same', held(), release('a', 7), freed('a')],
  ['release: held by the same, generation lower', held(), release('a', 6), refused('generation')],
  ['release: held by the same, generation higher', held(), release('a', 8), refused('generation')],
  ['release: held by another', held(), release('b', 7), refused('not-holder')],
  ['release: expired, by the same', expired, release('a', 7), freed('a')],
  ['release: expired, by another', expired, release('b', 7), refused('not-holder')],
])('%s', (_, current, request, decision) => {
  expect(decide(current, request, NOW)).toEqual(decision)
})

test.each([
  ['before its end', NOW + 1, false],
  ['at its end', NOW, true],
  ['after its end', NOW - 1, true],
])('%s a lease is expired or not', (_, expiresAt, answer) => {
  expect(isExpired(held({ expiresAt }), NOW)).toBe(answer)
})

describe('a lease as it is shown', () => {
  const empty = { holder: '', acquiredAt: '', expiresAt: '' }

  test('never written: as released, of generation 0', () => {
    expect(shown(undefined)).toEqual({ ...empty, generation: 0 })
  })

  test('released: its generation only', () => {
    expect(shown(released)).toEqual({ ...empty, generation: 7 })
  })

  test('held: times with milliseconds, and nothing of when it was renewed', () => {
    const acquiredAt = Date.parse('2026-01-31T12:00:00Z')
    expect(shown(held({ acquiredAt, expiresAt: acquiredAt + 30_500 }))).toEqual({
      holder: 'a',
      acquiredAt: '2026-01-31T12:00:00.000Z',
      expiresAt: '2026-01-31T12:00:30.500Z',
      generation: 7,
    })
  })
})

/** What clients may do: a step is a request whose generation is off by a little, after a little time. */
const step = fc.record({
  kind: fc.constantFrom('acquire' as const, 'renew' as const, 'release' as const),
  holder: fc.constantFrom('a', 'b', 'c'),
  off: fc.constantFrom(0, 0, 0, -1, 1),
  ttlMs: fc.integer({ min: 1_000, max: 5_000 }),
  passes: fc.integer({ min: 0, max: 4_000 }),
})

interface Seen {
  readonly before: Current | undefined
  readonly request: LeaseRequest
  readonly decision: Decision
  readonly after: Current | undefined
  readonly now: number
}

const run = (steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]): Seen[] => {
  let current: Current | undefined
  let now = NOW
  return steps.map(({ kind, holder, off, ttlMs, passes }) => {
    now += passes
    const before = current
    const generation = (before?.generation ?? 0) + off
    const request: LeaseRequest =
      kind === 'release' ? { kind, holder, generation } : { kind, holder, ttlMs, generation }
    const decision = decide(before, request, now)
    if ('next' in decision) current = decision.next
    return { before, request, decision, after: current, now }
  })
}

const always = (holds: (seen: Seen) => boolean): void =>
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), steps => run(steps).every(holds)))

const isLive = (lease: Current | undefined, now: number): lease is Held =>
  lease?.kind === 'held' && !isExpired(lease, now)

describe('in any sequence of writes', () => {
  test('each that succeeds has the next generation, of those it named', () => {
    always(({ before, request, decision }) => {
      if (!('next' in decision)) return true
      const generation = before?.generation ?? 0
      return request.generation === generation && decision.next.generation === generation + 1
    })
  })

  test('each that is refused changes nothing', () => {
    always(({ before, decision, after }) => 'next' in decision || after === before)
  })

  test('who holds an unexpired lease is ousted by nobody', () => {
    always(
      ({ before, request, after, now }) =>
        !isLive(before, now) ||
        request.holder === before.holder ||
        (isLive(after, now) && after.holder === before.holder),
    )
  })

  test('a grant is live when it is given, and for its whole time', () => {
    always(
      ({ request, decision, now }) =>
        decision.kind !== 'granted' ||
        request.kind === 'release' ||
        (decision.next.holder === request.holder && decision.next.expiresAt === now + request.ttlMs),
    )
  })

  test('since when it is held stays if the same held it unexpired, and only then', () => {
    always(({ before, decision, now }) => {
      if (decision.kind !== 'granted') return true
      const isKept = isLive(before, now) && before.holder === decision.next.holder
      return decision.next.acquiredAt === (isKept ? before.acquiredAt : now)
    })
  })

  test('history tells of every change of tenure, and of nothing else', () => {
    always(({ before, decision, now }) => {
      if (!('next' in decision)) return true
      const isKept = decision.kind === 'granted' && isLive(before, now) && before.holder === decision.next.holder
      return (decision.change === undefined) === isKept
    })
  })

  test('a renewal never gives the slot to anybody new', () => {
    always(
      ({ before, request, decision, now }) =>
        request.kind !== 'renew' ||
        decision.kind !== 'granted' ||
        (isLive(before, now) && before.holder === request.holder),
    )
  })
})

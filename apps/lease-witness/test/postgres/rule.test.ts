import { proofSize } from '@pool/test-kit/proof-size.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { advanceClock, decide, type LeaseState, type LeaseWrite, type Transition } from '../../src/lease/lease.ts'
import type { SlotWrite, WrittenLease } from '../../src/postgres/repository.ts'
import { createTestDatabase, createTestRepository, type TestDatabase } from './support/database.ts'
import { replaceLeaseClock, type TestClock } from './support/test-clock.ts'

const START = 1_800_000_000_000
const MAX_TRANSITIONS = 50
const RUNS = proofSize(1_000, 40)
const SLOTS = ['a', 'b', '\u0000', '\u0001', 'ä/ö']

interface ModelSlot {
  readonly lease: LeaseState | undefined
  readonly history: readonly (Omit<Transition, 'event'> & { readonly event: string; readonly generation: number })[]
}

/** The rule of lease/lease.ts, applied to one slot. */
const applyToModel = (
  { lease, history }: ModelSlot,
  request: SlotWrite['request'],
  wallNow: number,
): { slot: ModelSlot; written: WrittenLease } => {
  const { now, reanchored } = advanceClock(lease, wallNow)
  const current = reanchored ?? lease
  const holder = current?.kind === 'held' ? current.holder : ''
  const anchored = reanchored
    ? [{ event: 'clock-set-back', by: '', from: holder, to: holder, generation: reanchored.generation }, ...history]
    : history
  if (request.kind === 'observe') {
    return { slot: { lease: current, history: anchored }, written: { outcome: 'observed', lease: current, now } }
  }
  const decision = decide(current, request, now)
  if (!('next' in decision)) {
    const outcome = decision.kind === 'rejected' ? decision.reason : decision.kind
    return { slot: { lease: current, history: anchored }, written: { outcome, lease: current, now } }
  }
  const { kind, next, transition } = decision
  const added = transition ? [{ ...transition, generation: next.generation }, ...anchored] : anchored
  const outcome = transition ? kind : 'renewed'
  return { slot: { lease: next, history: added }, written: { outcome, lease: next, now } }
}

const command = fc.record({
  slot: fc.constantFrom(...SLOTS),
  kind: fc.constantFrom(
    'acquire' as const,
    'acquire' as const,
    'renew' as const,
    'release' as const,
    'observe' as const,
  ),
  holder: fc.constantFrom('a', 'b'),
  ttlMs: fc.integer({ min: 1_000, max: 100_000 }),
  value: fc.constantFrom(undefined, undefined, '', 'x', 'ä"\\\u{1f600}'),
  /** The difference to the current generation. */
  off: fc.constantFrom(0, 0, 0, 0, -1, 1),
})

/** Commands of one statement, and by how much the clock steps before it. */
const batch = fc.record({
  step: fc.oneof(
    fc.integer({ min: 0, max: 40_000 }),
    fc.integer({ min: -3_600_000, max: 3_600_000 }),
    fc.constant(-60_000),
  ),
  commands: fc.array(command, { minLength: 1, maxLength: 4 }),
})

describe('the rule in SQL', () => {
  let database: TestDatabase
  let testClock: TestClock
  let repository: ReturnType<typeof createTestRepository>
  beforeAll(async () => {
    database = await createTestDatabase({ connections: 1 })
    testClock = await replaceLeaseClock(database.sql)
    repository = createTestRepository(database.sql)
    await repository.epochs.ensureCurrent()
  })
  afterAll(() => database[Symbol.asyncDispose]())

  test('any sequence of writes with a clock that steps: the same decisions, states and histories as the pure rule', async () => {
    const { sql } = database
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 15 }), async batches => {
        await sql`truncate leases, lease_history`
        const model = new Map<string, ModelSlot>(SLOTS.map(slot => [slot, { lease: undefined, history: [] }]))
        let clock = START
        for (const { step, commands } of batches) {
          clock += step
          await testClock.stopAt(clock)
          // The statement executes its requests in the order of their slots.
          const ordered = commands.toSorted((a, b) => Buffer.compare(Buffer.from(a.slot), Buffer.from(b.slot)))
          const expected: WrittenLease[] = []
          const writes = ordered.map(({ slot, kind, holder, ttlMs, value, off }): SlotWrite => {
            const before = model.get(slot) ?? { lease: undefined, history: [] }
            const generation = (before.lease?.generation ?? 0) + off
            const request: SlotWrite['request'] =
              kind === 'observe'
                ? { kind }
                : kind === 'release'
                  ? { kind, holder, generation }
                  : { kind, holder, ttlMs, value, generation }
            const after = applyToModel(before, request, clock)
            model.set(slot, after.slot)
            expected.push(after.written)
            return { slot, request, caller: 'token' }
          })
          expect(await Promise.all(writes.map(repository.write))).toEqual(expected)
        }
        const stored = await repository.readMany(SLOTS)
        expect(stored).toEqual(SLOTS.map(slot => ({ lease: model.get(slot)?.lease, wallNow: clock })))
        for (const slot of SLOTS) {
          const history = await repository.readHistory(slot)
          const entries = history.map(({ at: _at, token: _token, ...entry }) => entry)
          expect(entries).toEqual(model.get(slot)?.history.slice(0, MAX_TRANSITIONS))
        }
      }),
      { numRuns: RUNS },
    )
  })

  const write = (slot: string, request: LeaseWrite): Promise<WrittenLease> =>
    repository.write({ slot, request, caller: 'region-a' })

  test('a list has the slots in the order of their bytes, from any of them on, with a prefix or without', async () => {
    await database.sql`truncate leases, lease_history`
    const slots = ['a', 'a\u0000', 'a\u0000b', 'a\u0001', 'a/b', 'a\u{10ffff}', 'b', 'ä']
    for (const slot of slots) await write(slot, { kind: 'acquire', holder: 'h', ttlMs: 1_000, generation: 0 })
    const list = async (prefix: string, after: string, limit: number) => {
      const page = await repository.list({ prefix, after, limit })
      return [page.leases.map(({ slot }) => slot), page.isLast]
    }
    expect(await list('', '', 100)).toEqual([slots, true])
    expect(await list('', 'a\u0001', 2)).toEqual([['a/b', 'a\u{10ffff}'], false])
    expect(await list('a\u0000', '', 2)).toEqual([['a\u0000', 'a\u0000b'], true])
    expect(await list('c', '', 2)).toEqual([[], true])
  })
})

import { describe, expect, it } from 'vitest'
import { type FailedCall, findUnattributable, type InjectedFault } from '../../src/soak/checks/errors-attributable.ts'
import { type FaultName, RECOVERY_WINDOW_MS } from '../../src/soak/faults/kinds.ts'

const createFault = (name: FaultName, from: number, to: number): InjectedFault => ({
  fault: { name, replica: 1, durationMs: to - from, strength: 0, afterMs: 0 },
  startedAt: from,
  endedAt: to,
})
const createFailedCall = (
  target: FailedCall['target'],
  start: number,
  end: number,
  status: number | null = 503,
): FailedCall => ({
  target,
  operation: 'reserve',
  status,
  start,
  end,
})
const list = { ...createFailedCall(1, 1_500, 1_600), operation: 'list (c1)' }
const readOnly: FailedCall = { ...createFailedCall(1, 1_500, 1_600), error: 'database-read-only' }
const tooManyReaders: FailedCall = { ...createFailedCall(1, 1_500, 1_600), error: 'too-many-readers' }
const endOfWindow = 2_000 + RECOVERY_WINDOW_MS

describe('every failed call is attributable to a fault', () => {
  it.each<readonly [string, boolean, FaultName, FailedCall]>([
    ['the killed replica', true, 'replica killed', createFailedCall(1, 1_500, 1_600, null)],
    ['another replica', false, 'replica killed', createFailedCall(0, 1_500, 1_600)],
    ['before the fault', false, 'replica killed', createFailedCall(1, 500, 900)],
    ['a call that was in flight when the fault started', true, 'replica killed', createFailedCall(1, 500, 1_000)],
    ['after the recovery window', false, 'replica killed', createFailedCall(1, endOfWindow + 1, endOfWindow + 2)],
    ['an unavailable database', true, 'Postgres hung', createFailedCall(0, 1_500, 1_600)],
    ['a 500, which is always a defect', false, 'Postgres hung', createFailedCall(0, 1_500, 1_600, 500)],
    ['an unavailable DNS provider', false, 'DNS provider killed', createFailedCall(1, 1_500, 1_600)],
    ['a reserve, because of readers', false, 'readers stalled', createFailedCall(1, 1_500, 1_600)],
    ['a list, because of readers', true, 'readers stalled', list],
    ['a list without a response, because of readers', false, 'readers stalled', { ...list, status: null }],
    ['any call, because of table locks', false, 'tables locked', createFailedCall(1, 1_500, 1_600)],
    ['a write that a read-only database rejected', true, 'Postgres read-only', readOnly],
    ['a write that a crashed database rejected as read-only', false, 'Postgres crashed', readOnly],
    ['too many readers, without readers that stall', false, 'replica frozen', tooManyReaders],
    ['in the recovery window', true, 'replica killed', createFailedCall(1, endOfWindow, endOfWindow + 1)],
    ['the witness, because of the database', false, 'Postgres hung', createFailedCall('witness', 1_500, 1_600)],
    ['the witness', true, 'workerd frozen', createFailedCall('witness', 1_500, 1_600)],
    ['the API, because of the witness', false, 'witness killed', createFailedCall(1, 1_500, 1_600)],
  ])('%s: %s', (_, isAttributable, name, failure) => {
    expect(findUnattributable([failure], [createFault(name, 1_000, 2_000)])).toHaveLength(isAttributable ? 0 : 1)
  })

  it('one of several faults is sufficient, even if it has not ended', () => {
    const faults = [
      createFault('DNS provider hung', 0, 9_000),
      createFault('Postgres hung', 1_000, Number.POSITIVE_INFINITY),
    ]
    expect(findUnattributable([createFailedCall(2, 60_000, 61_000)], faults)).toEqual([])
  })

  it.each<readonly [string, boolean, Partial<FailedCall>]>([
    ['a locked name', true, { name: 'n0' }],
    ['another name', false, { name: 'n1' }],
    ['no name', false, { operation: 'list' }],
    ['every name', true, { operation: 'republish (c1.1)' }],
  ])('locks of names account for a call that needs %s: %s', (_, isExplained, call) => {
    const fault = createFault('names locked', 1_000, 2_000)
    const locks = { table: 'pool_allocations', names: new Set(['n0']), start: 1_100, end: 1_900 } as const
    const found = findUnattributable([{ ...createFailedCall(1, 1_500, 1_600), ...call }], [{ ...fault, locks }])
    expect(found.length).toBe(isExplained ? 0 : 1)
  })
})

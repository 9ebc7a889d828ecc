import { describe, expect, it } from 'vitest'
import {
  type FailedCall,
  findUnattributableErrors,
  type InjectedFault,
} from '../../src/soak/checks/errors-attributable.ts'
import { type FaultName, RECOVERY_WINDOW_MS } from '../../src/soak/faults/kinds.ts'

const inflicted = (name: FaultName, from: number, to: number): InjectedFault => ({
  fault: { name, replica: 1, durationMs: to - from, strength: 0, afterMs: 0 },
  startedAt: from,
  endedAt: to,
})
const failed = (target: FailedCall['target'], start: number, end: number, status: number | null = 503): FailedCall => ({
  target,
  operation: 'reserve',
  status,
  start,
  end,
})
const late = 2_000 + RECOVERY_WINDOW_MS

describe('every failed call is attributable to a fault', () => {
  it.each<readonly [string, boolean, FaultName, FailedCall]>([
    ['the replica that was killed', true, 'replica killed', failed(1, 1_500, 1_600, null)],
    ['another replica', false, 'replica killed', failed(0, 1_500, 1_600)],
    ['before it', false, 'replica killed', failed(1, 500, 900)],
    ['a call that it fell into', true, 'replica killed', failed(1, 500, 1_000)],
    ['in the window after it', true, 'replica killed', failed(1, late, late + 1)],
    ['after the window', false, 'replica killed', failed(1, late + 1, late + 2)],
    ['a database that is away', true, 'Postgres hung', failed(0, 1_500, 1_600)],
    ['the locks of a frozen replica', true, 'replica frozen', failed(2, 1_500, 1_600)],
    ['500, which is a defect', false, 'Postgres hung', failed(0, 1_500, 1_600, 500)],
    ['a DNS provider that is away', false, 'DNS provider killed', failed(1, 1_500, 1_600)],
    ['a clock that is wrong', false, 'replica with a wrong clock', failed(1, 1_500, 1_600)],
    ['edited records', false, 'records edited by hand', failed(1, 1_500, 1_600)],
    ['the witness', true, 'workerd frozen', failed('witness', 1_500, 1_600)],
    ['the witness, by a database', false, 'Postgres hung', failed('witness', 1_500, 1_600)],
    ['the API, by the witness', false, 'witness killed', failed(1, 1_500, 1_600)],
  ])('%s: %s', (_, isAttributable, name, failure) => {
    expect(findUnattributableErrors([failure], [inflicted(name, 1_000, 2_000)])).toHaveLength(isAttributable ? 0 : 1)
  })

  it('is by one of several, which may go on still', () => {
    const faults = [
      inflicted('DNS provider hung', 0, 9_000),
      inflicted('Postgres hung', 1_000, Number.POSITIVE_INFINITY),
    ]
    expect(findUnattributableErrors([failed(2, 60_000, 61_000)], faults)).toEqual([])
  })

  it('tells what failed, where and when', () => {
    expect(findUnattributableErrors([failed(1, 0, 1_000, null)], [])).toEqual([
      'replica 1: reserve got no response, 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:01.000Z',
    ])
  })
})

import { describe, expect, it } from 'vitest'
import type { InjectedFault } from '../../src/soak/checks/errors-attributable.ts'
import type { ReplayRow } from '../../src/soak/checks/history.ts'
import { findLateWrites, type UnavailableWrite } from '../../src/soak/checks/unavailable-writes.ts'

const write: UnavailableWrite = {
  requestId: 'c1-1.1',
  name: 'n0',
  error: 'database-unavailable',
  start: 1_200,
  end: 1_800,
}
const fault: InjectedFault = {
  fault: { name: 'names locked', replica: 0, durationMs: 1_000, strength: 0, afterMs: 0 },
  startedAt: 1_000,
  endedAt: 2_000,
  locks: { table: 'pool_allocations', names: new Set(['n0']), start: 1_100, end: 1_900 },
}
const history = [{ requestId: 'c1-1.1', subdomain: 'n0', event: 'committed' } as ReplayRow]

describe('writes have no effect after their 503', () => {
  it.each<readonly [string, boolean, Partial<UnavailableWrite>]>([
    ['waited for a lock', true, {}],
    ['started before the lock was taken', false, { start: 1_050 }],
    ['ended after the lock was released', false, { end: 1_950 }],
    ['is about another name', false, { name: 'n1' }],
    ['is about no name', false, { name: undefined }],
    ['was rejected by a read-only database', true, { error: 'database-read-only', name: 'n1' }],
  ])('reports an effect of a write that %s: %s', (_, isViolation, change) => {
    expect(findLateWrites([{ ...write, ...change }], [fault], history)).toHaveLength(isViolation ? 1 : 0)
    expect(findLateWrites([{ ...write, ...change }], [fault], [])).toEqual([])
  })

  it('knows nothing about reservations while only their records are locked', () => {
    const locks = { table: 'dns_names', names: new Set(['n0']), start: 1_100, end: 1_900 } as const
    expect(findLateWrites([write], [{ ...fault, locks }], history)).toEqual([])
  })
})

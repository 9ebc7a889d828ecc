import { describe, expect, it } from 'vitest'
import type { Run } from '../../src/bench/load/compare.ts'
import { goalTable, toGoal } from '../../src/bench/report.ts'
import { toApiGoals } from '../../src/bench/sections/allocation.ts'
import { toEtcdGoals } from '../../src/bench/sections/lease-postgres.ts'
import { toLeaseGoal } from '../../src/bench/sections/leases.ts'

const spread = (median: number) => ({ median, min: median - 1, max: median + 1 })

describe('a goal', () => {
  it.each([
    ['at least', 2, spread(2), true],
    ['at least', 2, spread(1.99), false],
    ['at most', 2, spread(2), true],
    ['at most', 2, spread(2.01), false],
    ['at most', 2, null, false],
  ] as const)('of %s %d, with a median of %j: %s', (bound, goal, measured, met) => {
    expect(toGoal('here', 'ops/s', bound, goal, measured)).toMatchObject({ met, measured })
  })

  it('is a table row that shows whether it was met', () => {
    const { columns, rows } = goalTable('goal', [
      toGoal('here', 'ops/s', 'at least', 2, spread(3)),
      toGoal('there', 'p99', 'at most', 2, null),
    ])
    expect(columns[0]?.title).toBe('goal')
    expect(rows).toEqual([
      ['here', 'ops/s at least 2.00', '3.00 (2.00–4.00)', 'met'],
      ['there', 'p99 at most 2.00', 'unknown: needs Linux', 'missed'],
    ])
  })

  it('of the API applies at 64 virtual users: throughput relative to the bare statements, and p99', () => {
    const run = (perSecond: number, p50Ms: number, p99Ms: number): Run => ({
      perSecond,
      p50Ms,
      p95Ms: p99Ms,
      p99Ms,
      operations: 1,
      problems: new Map(),
      perOperation: {},
      cost: null,
    })
    const goals = toApiGoals(
      [
        { users: 1, runs: [[run(1, 1, 1)], [run(1, 1, 1)]] },
        {
          users: 64,
          runs: [
            [run(60, 2, 12), run(80, 2, 8)],
            [run(100, 1, 1), run(100, 1, 1)],
          ],
        },
      ],
      0.65,
    )
    expect(goals).toMatchObject([
      { bound: 'at least', goal: 0.65, measured: { median: 0.7, min: 0.6, max: 0.8 }, met: true },
      { bound: 'at most', goal: 5, measured: { median: 5, min: 4, max: 6 }, met: true },
    ])
  })

  const figures = { perSecond: spread(1), p50Ms: spread(1), p99Ms: spread(1), operations: 1, perOperation: {} }
  const ratio = (perSecond: number) => ({ perSecond: spread(perSecond), p50: spread(1), p99: spread(1) })
  it.each([
    [1.5, true],
    [1.7, false],
  ])('of the witness is relative to the KV-only worker: %d', (atLeast, met) => {
    const targets = [
      { ...figures, name: 'witness', ratio: null },
      { ...figures, name: 'memory', ratio: ratio(9) },
      { ...figures, name: 'KV only', ratio: ratio(1.6) },
    ]
    expect(toLeaseGoal({ slots: 1, users: 16, targets }, atLeast)).toMatchObject({
      where: '1 slots, 16 virtual users',
      figure: 'ops/s',
      goal: atLeast,
      met,
    })
  })

  it('of the witness on Postgres is relative to etcd: throughput and p99', () => {
    const targets = [
      { ...figures, name: 'witness', ratio: null },
      { ...figures, name: 'etcd', ratio: { perSecond: spread(1.2), p50: spread(3), p99: spread(1.1) } },
    ]
    expect(toEtcdGoals('a load', { users: 16, targets })).toMatchObject([
      { where: 'a load', figure: 'ops/s', bound: 'at least', goal: 1, met: true },
      { where: 'a load', figure: 'p99', bound: 'at most', goal: 1, met: false },
    ])
  })
})

import { describe, expect, it } from 'vitest'
import type { Run } from '../../src/bench/load/compare.ts'
import { targetOf, targetTable } from '../../src/bench/report/target.ts'
import { type SizeRounds, sizeResult } from '../../src/bench/sections/size-result.ts'
import { targetsOf } from '../../src/bench/sections/standard.ts'

const spread = (median: number) => ({ median, min: median - 1, max: median + 1 })

describe('a target', () => {
  it.each([
    ['at least', 2, spread(2), true],
    ['at least', 2, spread(1.99), false],
    ['at most', 2, spread(2), true],
    ['at most', 2, spread(2.01), false],
    ['at most', 2, null, false],
  ] as const)('of %s %d, with a median of %j: %s', (bound, target, measured, met) => {
    expect(targetOf('here', 'ops/s', bound, target, measured)).toMatchObject({ met, measured })
  })

  it('is a line that says whether it was met', () => {
    const { columns, rows } = targetTable('target', [
      targetOf('here', 'ops/s', 'at least', 2, spread(3)),
      targetOf('there', 'p99', 'at most', 2, null),
    ])
    expect(columns[0]?.title).toBe('target')
    expect(rows).toEqual([
      ['here', 'ops/s at least 2.00', '3.00 (2.00–4.00)', 'met'],
      ['there', 'p99 at most 2.00', 'unknown: needs Linux', 'missed'],
    ])
  })

  it('of the API is about 64 connections: its share of the bare statements, and its slowest requests', () => {
    const run = (perSecond: number, p50Ms: number, p99Ms: number): Run => ({
      perSecond,
      p50Ms,
      p99Ms,
      operations: 1,
      faults: new Map(),
      perOperation: {},
    })
    const targets = targetsOf(
      [
        { connections: 1, runs: [[run(1, 1, 1)], [run(1, 1, 1)]] },
        {
          connections: 64,
          runs: [
            [run(60, 2, 12), run(80, 2, 8)],
            [run(100, 1, 1), run(100, 1, 1)],
          ],
        },
      ],
      0.65,
    )
    expect(targets).toMatchObject([
      { bound: 'at least', target: 0.65, measured: { median: 0.7, min: 0.6, max: 0.8 }, met: true },
      { bound: 'at most', target: 5, measured: { median: 5, min: 4, max: 6 }, met: true },
    ])
  })
})

describe('sizes', () => {
  const rounds = (rows: number, cost: number): SizeRounds => ({
    rows,
    bytes: rows * 100,
    seededInMs: 1_000,
    checkMs: [cost, cost],
    reserveMs: [2 * cost, 2 * cost * cost],
    checkPerSecond: [1_000 / cost, 1_000 / cost],
    reservePerSecond: [500, 500],
    sweepMs: [10, 10],
    listMs: [5, 5],
    listBytes: [null, 3e6],
    scrapeMs: rows > 1_000 ? [null, null] : [4, null],
  })
  const { tables, figures } = sizeResult([rounds(1_000, 1), rounds(10_000, 1.2)])
  const [small, large] = figures.sizes as Record<string, Record<string, { median: number }>>[]

  it('are set in relation to the smallest, round by round; a rate that falls is a cost that rises', () => {
    expect(small?.toSmallest).toMatchObject({ checkMs: { median: 1 }, checkPerSecond: { median: 1 } })
    expect(large?.toSmallest?.checkMs?.median).toBeCloseTo(1.2)
    expect(large?.toSmallest?.reserveMs).toMatchObject({ min: expect.closeTo(1.2), max: expect.closeTo(1.44) })
    expect(large?.toSmallest?.checkPerSecond?.median).toBeCloseTo(1.2)
    expect(large?.toSmallest?.sweepMs?.median).toBe(1)
  })

  it('say where a scrape came without counts, and what memory is known', () => {
    expect(small).toMatchObject({ scrapesWithoutCounts: 1, scrapeMs: { median: 4 } })
    expect(large).toMatchObject({ scrapesWithoutCounts: 2, scrapeMs: null, listAboveBytes: { median: 3e6 } })
    expect(tables[1]?.rows.map(row => row[5])).toEqual(['4.00 (4.00–4.00)', 'no counts'])
  })

  it('have targets of check and reserve in the largest', () => {
    expect(figures.targets).toMatchObject([
      { where: '10000 rows, 1 connection', bound: 'at most', target: 1.3, met: true },
      { where: '10000 rows, 1 connection', met: false },
      { where: '10000 rows, 16 connections', met: true },
      { where: '10000 rows, 16 connections', met: true },
    ])
    expect(() => sizeResult([])).toThrow('no size')
  })
})

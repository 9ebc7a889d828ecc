import { setTimeout as sleep } from 'node:timers/promises'
import { hasProc } from '@pool/test-kit/processes.ts'
import { describe, expect, it } from 'vitest'
import { countStatements } from '../../src/bench/environment/server-counts.ts'
import {
  type Cost,
  costTable,
  FLOOR,
  notCountedNote,
  parsePerfStat,
  startCost,
  summarizeCosts,
  toCost,
  toCostGoal,
} from '../../src/bench/load/cost.ts'

describe('the cost of an operation', () => {
  const time = (totalUs: number, userTicks: number, systemTicks: number) => ({ totalUs, userTicks, systemTicks })

  it('is the CPU time of the run, divided as the ticks are', () => {
    const cost = toCost(time(1_000, 5, 5), time(401_000, 35, 15), { operations: 1_000, elapsedMs: 500 })
    expect(cost).toEqual({ totalUs: 400, userUs: 300, systemUs: 100, busy: 0.8 })
  })

  it('without a tick is that of the user', () => {
    expect(toCost(time(0, 1, 1), time(900, 1, 1), { operations: 9, elapsedMs: 9 })).toMatchObject({ systemUs: 0 })
  })

  it.each([
    ['a process that ended', time(0, 0, 0), null, 1],
    ['a process that had ended', null, time(0, 0, 0), 1],
    ['nothing that was completed', time(0, 0, 0), time(9, 0, 0), 0],
  ])('is unknown for %s', (_, before, after, operations) => {
    expect(toCost(before, after, { operations, elapsedMs: 1 })).toBeNull()
  })

  it.runIf(hasProc)('of a busy process is its CPU time', async () => {
    const stop = await startCost(process.pid)
    const until = performance.now() + 100
    while (performance.now() < until) Math.hypot(until, 1)
    const cost = await stop(10)
    // Other processes may have had the core for most of the time.
    expect(cost?.totalUs).toBeGreaterThan(1_000)
    expect(cost?.totalUs).toBeLessThan(100_000)
    expect(cost?.busy).toBeGreaterThan(0)
  })

  it('of no process is unknown', async () => {
    const stop = await startCost(undefined)
    await sleep(1)
    expect(await stop(10)).toBeNull()
  })
})

describe('the output of perf stat', () => {
  it('has the events that were counted, with or without a modifier', () => {
    const text = [
      '',
      '123456789;;instructions:u;250000000;100.00;1.10;insn per cycle',
      '401.25;msec;task-clock;401250000;100.00;0.802;CPUs utilized',
      '<not supported>;;cycles;0;100.00;;',
      '<not counted>;;branches;0;0.00;;',
    ].join('\n')
    expect(parsePerfStat(text)).toEqual(
      new Map([
        ['instructions', 123_456_789],
        ['task-clock', 401.25],
      ]),
    )
  })

  it('of a perf that cannot run has none', () => {
    expect(parsePerfStat('Error:\nAccess to performance monitoring is limited.\n').size).toBe(0)
  })
})

describe('costs', () => {
  const cost = (totalUs: number, instructions: number | null = null): { cost: Cost } => ({
    cost: { totalUs, userUs: totalUs * 0.75, systemUs: totalUs * 0.25, busy: 0.5, instructions },
  })
  const names = ['API', 'SQL alone', FLOOR]
  const comparisons = [
    {
      users: 64,
      runs: [
        [cost(50), cost(90)],
        [{ cost: null }, { cost: null }],
        [cost(25), cost(30)],
      ],
    },
  ]

  it('are those of processes, with the ratio to the floor of the same round', () => {
    const costs = summarizeCosts(names, comparisons)
    expect(costs).toMatchObject([
      { name: 'API', totalUs: { median: 70 }, toFloor: { min: 2, median: 2.5, max: 3 } },
      { name: FLOOR, totalUs: { median: 27.5 }, toFloor: null },
    ])
    const table = costTable(costs)
    expect(table.columns.at(-1)?.title).toBe(`/ ${FLOOR}`)
    expect(table.rows).toEqual([
      ['64', 'API', '70.0 (50.0–90.0)', '52.5', '17.5', '0.50', '2.50 (2.00–3.00)'],
      ['64', FLOOR, '27.5 (25.0–30.0)', '20.6', '6.88', '0.50', ''],
    ])
    expect(notCountedNote(costs)).toHaveLength(1)
  })

  it('have instructions where the kernel counts them', () => {
    const costs = summarizeCosts(['API'], [{ users: 1, runs: [[cost(50, 90_000), cost(60, 110_000)]] }])
    expect(costTable(costs).rows[0]?.at(-1)).toBe('100 000')
    expect(notCountedNote(costs)).toEqual([])
  })

  it('are compared with a goal', () => {
    expect(toCostGoal(names, comparisons, 64, 2.4)).toMatchObject({ bound: 'at most', goal: 2.4, met: false })
    expect(toCostGoal(names, comparisons, 64, 2.5)).toMatchObject({ met: true, measured: { median: 2.5 } })
    expect(toCostGoal(names, comparisons, 16, 2.5)).toMatchObject({ met: false, measured: null })
  })
})

describe('statements in a server log', () => {
  const entry = (backend: number, text: string) => `2026-11-23 18:00:00.123 UTC [${backend}] ${text}\n`

  it('are counted once each, those of the provider also apart', () => {
    const log = [
      entry(7, 'LOG:  execute abc1: select\n\t  1'),
      entry(7, 'LOG:  statement: select 2'),
      entry(7, 'ERROR:  relation "x" does not exist'),
      entry(7, 'STATEMENT:  select * from local_dns_zones'),
      entry(8, 'LOG:  execute abc2: \n\t  with a as (select 1)\n\t  select * from local_dns_records'),
      entry(8, 'LOG:  checkpoint starting: time'),
    ].join('')
    expect(countStatements(log)).toEqual({ statements: 3, providerStatements: 1 })
  })

  it('include the begin and the commit of the provider', () => {
    const log = [
      entry(7, 'LOG:  statement: begin '),
      entry(8, 'LOG:  statement: begin '),
      entry(7, 'LOG:  execute x: update local_dns_zones set serial = 1'),
      entry(8, 'LOG:  execute y: update dns_names set version = 1'),
      entry(7, 'LOG:  execute z: select 1'),
      entry(7, 'LOG:  statement: commit'),
      entry(8, 'LOG:  statement: rollback'),
      entry(8, 'LOG:  statement: select 3'),
    ].join('')
    expect(countStatements(log)).toEqual({ statements: 8, providerStatements: 4 })
  })
})

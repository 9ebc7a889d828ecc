import { setTimeout as sleep } from 'node:timers/promises'
import { hasProc } from '@pool/test-kit/processes.ts'
import { describe, expect, it } from 'vitest'
import { compare, comparisonTable, listErrors, type Run, runClosedLoop, runOnce } from '../../src/bench/load/compare.ts'
import { createLocalUsers, type Target } from '../../src/bench/load/target.ts'

describe('a closed loop', () => {
  it('each virtual user has one operation in flight, and each operation is measured', async () => {
    let inFlight = 0
    let max = 0
    const { users } = createLocalUsers(3, async () => {
      inFlight += 1
      max = Math.max(max, inFlight)
      await sleep(10)
      inFlight -= 1
      return null
    })
    const measured = await runClosedLoop(users, 0.2)
    expect(max).toBe(3)
    expect(inFlight).toBe(0)
    expect(measured.p50Ms).toBeGreaterThan(8)
    expect(measured.perSecond).toBeLessThan(3 * 125)
    expect(measured.problems.size).toBe(0)
  })

  it('failures, thrown or returned, are counted separately from the throughput', async () => {
    let calls = 0
    const { users } = createLocalUsers(1, () => {
      calls += 1
      if (calls === 1) return Promise.reject(new Error('broken'))
      if (calls === 2) return Promise.resolve('status 500')
      return calls < 10 ? Promise.resolve(null) : undefined
    })
    const { problems } = await runClosedLoop(users, 60)
    expect([...problems]).toEqual([
      ['broken', 1],
      ['status 500', 1],
    ])
  })

  it('without more work it ends, and the rate refers to the time until then', async () => {
    let left = 10
    const { users } = createLocalUsers(2, () => {
      left -= 1
      return left < 0 ? undefined : sleep(5, null)
    })
    const measured = await runClosedLoop(users, 60)
    expect(measured.operations).toBe(10)
    // Of a minute, it would be 0.2.
    expect(measured.perSecond).toBeGreaterThan(1)
  })
})

describe('a comparison', () => {
  const createTarget = (name: string, order: string[], problem: string | null = null): Target => ({
    name,
    open: async count => {
      order.push(`${name}${count}`)
      return createLocalUsers(count, () => sleep(2, problem))
    },
  })

  it.each([
    [0, '', ''],
    [0.01, 'a1 b1', 'a2 b2'],
    // In runs of a round's length.
    [0.025, 'a1 a1 a1 b1 b1 b1', 'a2 a2 a2 b2 b2 b2'],
  ])(
    'interleaves the targets in alternating order, after an unreported warm-up of %f s',
    async (warmUpSeconds, one, two) => {
      const order: string[] = []
      const targets = [createTarget('a', order), createTarget('b', order)]
      const comparisons = await compare('x', [1, 2], targets, { rounds: 2, seconds: 0.01, warmUpSeconds })
      expect(order.join(' ')).toBe(`${one} a1 b1 b1 a1 ${two} a2 b2 b2 a2`.trim().replaceAll('  ', ' '))
      expect(comparisons.map(({ runs }) => runs.map(rounds => rounds.length))).toEqual([
        [2, 2],
        [2, 2],
      ])
    },
  )

  it('names each problem, its target and its load', async () => {
    const targets = [createTarget('a', []), createTarget('b', [], 'status 500')]
    const comparisons = await compare('x', [1], targets, { rounds: 1, seconds: 0.01, warmUpSeconds: 0 })
    expect(comparisons.flatMap(listErrors)).toEqual([
      expect.stringMatching(/^b, x, 1 virtual users: \d+ × status 500$/),
    ])
  })

  it('is a table with the ratios of the first target to each other one, round by round', () => {
    const run = (perSecond: number, p50Ms: number, cpuUs: number): Run => ({
      ...{ perSecond, p50Ms, p99Ms: 2 * p50Ms, cpuUs, residentBytes: cpuUs * 1e6 },
      ...{ operations: 1, problems: new Map() },
    })
    const { columns, rows } = comparisonTable([
      {
        load: 'reserve',
        users: 16,
        names: ['API', 'SQL alone', 'Hono floor'],
        runs: [
          [run(200, 1, 50), run(300, 1, 60)],
          [run(100, 2, Number.NaN), run(150, 2, Number.NaN)],
          [run(400, 1, 25), run(400, 1, 25)],
        ],
      },
    ])
    expect(columns[8]?.title).toBe('API / this: ops/s (95 %)')
    expect(rows).toEqual([
      ['reserve', '16', 'API', '250 (200–300)', '1.00 (1.00–1.00)', '2.00 (2.00–2.00)', '55.0', '55.0', '', '', '', ''],
      [
        ...['', '', 'SQL alone', '125 (100–150)', '2.00 (2.00–2.00)', '4.00 (4.00–4.00)', '', ''],
        ...['2.000 (2.000–2.000)', '0.500 (0.500–0.500)', '0.500 (0.500–0.500)', ''],
      ],
      [
        ...['', '', 'Hono floor', '400 (400–400)', '1.00 (1.00–1.00)', '2.00 (2.00–2.00)', '25.0', '25.0'],
        ...['0.612 (0.047–8.049)', '1.000 (1.000–1.000)', '1.000 (1.000–1.000)', '2.191 (0.688–6.977)'],
      ],
    ])
  })

  it.runIf(hasProc)('measures the CPU time and the memory of the process of a target', async () => {
    const work = async () => {
      const until = performance.now() + 10
      while (performance.now() < until) Math.hypot(until, 1)
      return null
    }
    const target: Target = { name: 'this', pid: process.pid, open: async count => createLocalUsers(count, work) }
    const run = await runOnce(target, 1, 0.1)
    // Other processes may have had the core for most of the time.
    expect(run.cpuUs).toBeGreaterThan(100)
    expect(run.cpuUs).toBeLessThan(100_000)
    expect(run.residentBytes).toBeGreaterThan(10e6)
  })
})

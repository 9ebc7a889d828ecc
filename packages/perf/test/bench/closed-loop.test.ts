import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { runClosedLoop } from '../../src/bench/load/closed-loop.ts'
import { compare, listErrors } from '../../src/bench/load/compare.ts'
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
      const plan = { name: 'x', users: [1, 2], timing: { rounds: 2, seconds: 0.01, warmUpSeconds } }
      const comparisons = await compare(targets, plan)
      expect(order.join(' ')).toBe(`${one} a1 b1 b1 a1 ${two} a2 b2 b2 a2`.trim().replaceAll('  ', ' '))
      expect(comparisons.map(({ runs }) => runs.map(rounds => rounds.length))).toEqual([
        [2, 2],
        [2, 2],
      ])
    },
  )

  it('names each problem, its target and its load', async () => {
    const targets = [createTarget('a', []), createTarget('b', [], 'status 500')]
    const [comparison] = await compare(targets, {
      name: 'x',
      users: [1],
      timing: { rounds: 1, seconds: 0.01, warmUpSeconds: 0 },
    })
    const errors = comparison ? listErrors(['a', 'b'], '1 virtual users', comparison) : []
    expect(errors).toEqual([expect.stringMatching(/^b, 1 virtual users: \d+ × status 500$/)])
  })
})

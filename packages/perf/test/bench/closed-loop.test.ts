import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { closedLoop } from '../../src/bench/load/closed-loop.ts'
import { compare } from '../../src/bench/load/compare.ts'
import { comparisonResult } from '../../src/bench/load/comparison-result.ts'
import { localCrew, type Subject } from '../../src/bench/load/subject.ts'

describe('a closed loop', () => {
  it('has one operation of each caller under way, and measures each', async () => {
    let underWay = 0
    let most = 0
    const { callers } = localCrew(3, async () => {
      underWay += 1
      most = Math.max(most, underWay)
      await sleep(10)
      underWay -= 1
      return null
    })
    const measured = await closedLoop(callers, 0.2)
    expect(most).toBe(3)
    expect(underWay).toBe(0)
    expect(measured.p50Ms).toBeGreaterThan(8)
    expect(measured.perSecond).toBeLessThan(3 * 125)
    expect(measured.faults.size).toBe(0)
  })

  it('counts what went wrong, thrown or told, and not into the throughput', async () => {
    let turn = 0
    const { callers } = localCrew(1, async () => {
      turn += 1
      if (turn === 1) throw new Error('broken')
      return turn === 2 ? 'status 500' : null
    })
    const { faults } = await closedLoop(callers, 0.1)
    expect([...faults]).toEqual([
      ['broken', 1],
      ['status 500', 1],
    ])
  })

  it('ends when there is no work left, and takes the rate over that time', async () => {
    let left = 10
    const { callers } = localCrew(2, () => {
      left -= 1
      return left < 0 ? undefined : sleep(5, null)
    })
    const measured = await closedLoop(callers, 60)
    expect(measured.operations).toBe(10)
    expect(measured.perSecond).toBeGreaterThan(50)
  })
})

describe('a comparison', () => {
  const subject = (name: string, order: string[], fault: string | null = null): Subject => ({
    name,
    open: async callers => {
      order.push(`${name}${callers}`)
      return localCrew(callers, () => sleep(2, fault))
    },
  })

  it('lets the subjects take turns, after a warm-up that is not shown', async () => {
    const order: string[] = []
    const subjects = [subject('a', order), subject('b', order)]
    const comparisons = await compare(subjects, { connections: [1, 2], rounds: 2, seconds: 0.01, say: () => {} })
    expect(order.slice(2)).toEqual(['a1', 'b1', 'a1', 'b1', 'a2', 'b2', 'a2', 'b2'])
    expect(comparisons.map(({ runs }) => runs.map(rounds => rounds.length))).toEqual([
      [2, 2],
      [2, 2],
    ])
  })

  it('names each fault, its subject and its load', async () => {
    const subjects = [subject('a', []), subject('b', [], 'status 500')]
    const comparisons = await compare(subjects, { connections: [1], rounds: 1, seconds: 0.01, say: () => {} })
    const { faults } = comparisonResult(['a', 'b'], comparisons)
    expect(faults).toEqual([expect.stringMatching(/^b, connections 1: \d+ x status 500$/)])
  })
})

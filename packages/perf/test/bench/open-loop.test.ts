import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { openLoop } from '../../src/bench/load/open-loop.ts'

describe('an open loop', () => {
  it('begins at each beat, whether or not the ones before have ended', async () => {
    const turns: number[] = []
    let underWay = 0
    let most = 0
    const measured = await openLoop(
      async turn => {
        turns.push(turn)
        underWay += 1
        most = Math.max(most, underWay)
        await sleep(100)
        underWay -= 1
        return null
      },
      { perSecond: 100, seconds: 0.2 },
    )
    expect(turns).toEqual(Array.from({ length: 20 }, (_, turn) => turn))
    expect(most).toBeGreaterThan(3)
    expect(underWay).toBe(0)
    expect(measured.operations).toBe(20)
    expect(measured.p50Ms).toBeGreaterThan(90)
  })

  it('counts what went wrong', async () => {
    const { faults } = await openLoop(async turn => (turn === 1 ? 'status 500' : null), {
      perSecond: 500,
      seconds: 0.01,
    })
    expect([...faults]).toEqual([['status 500', 1]])
  })
})

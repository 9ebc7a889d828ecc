import { expect, test } from 'vitest'
import { sweep } from './expired-sweeper.ts'

/** A table with so many rows that are due, whose batches take 8 ms each; what happens is written down in order. */
const scene = (due: number, keys = 0) => {
  const told: string[] = []
  const stop = new AbortController()
  let clock = 0
  const remover = (what: string, left: number) => async (limit: number) => {
    clock += 8
    const removed = Math.min(limit, left)
    left -= removed
    told.push(`${what} ${removed}`)
    return removed
  }
  const run = sweep({
    deleteExpired: remover('deleted', due),
    forgetKeys: remover('forgot', keys),
    onDeleted: count => told.push(`counted ${count}`),
    now: () => clock,
    rest: async ms => {
      told.push(`rested ${ms}`)
    },
  })
  return { told, stop, run: () => run(stop.signal) }
}

test('what is due goes in batches; each is counted, and followed by a rest three times as long as it took', async () => {
  const { told, run } = scene(600)
  await run()
  expect(told.filter(line => !line.startsWith('forgot'))).toEqual([
    ...['deleted 250', 'counted 250', 'rested 24'],
    ...['deleted 250', 'counted 250', 'rested 24'],
    ...['deleted 100', 'counted 100'],
  ])
})

test('keys go after that, in the same way', async () => {
  const { told, run } = scene(0, 300)
  await run()
  expect(told).toEqual(['deleted 0', 'counted 0', 'forgot 250', 'rested 24', 'forgot 50'])
})

test('stopped while it rests, it begins no other batch', async () => {
  const { told, stop, run } = scene(1_000, 1_000)
  const running = run()
  stop.abort()
  await running
  expect(told).toEqual(['deleted 250', 'counted 250', 'rested 24'])
})

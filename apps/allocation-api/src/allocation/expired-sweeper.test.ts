import { expect, test } from 'vitest'
import { sweepExpired } from './expired-sweeper.ts'

/** Tables with that many expired rows. A batch takes 8 ms; `calls` lists what happens, in order. */
const setUp = (expiredReservations: number, expiredKeys = 0) => {
  const calls: string[] = []
  const controller = new AbortController()
  let clock = 0
  const createDelete = (table: string, left: number) => async (limit: number) => {
    clock += 8
    const deleted = Math.min(limit, left)
    left -= deleted
    calls.push(`${table} ${deleted}`)
    return deleted
  }
  const options = {
    deleteReservations: createDelete('reservations', expiredReservations),
    deleteKeys: createDelete('keys', expiredKeys),
    onDeleted: (count: number) => calls.push(`counted ${count}`),
    now: () => clock,
    sleep: async (ms: number) => {
      calls.push(`slept ${ms}`)
    },
  }
  return { calls, controller, run: () => sweepExpired(options, controller.signal) }
}

test('deletes reservations in batches, counts each batch, and pauses three times as long as it took', async () => {
  const { calls, run } = setUp(600)
  await run()
  expect(calls.filter(call => !call.startsWith('keys'))).toEqual([
    ...['reservations 250', 'counted 250', 'slept 24'],
    ...['reservations 250', 'counted 250', 'slept 24'],
    ...['reservations 100', 'counted 100'],
  ])
})

test('then deletes keys in the same way', async () => {
  const { calls, run } = setUp(0, 300)
  await run()
  expect(calls).toEqual(['reservations 0', 'counted 0', 'keys 250', 'slept 24', 'keys 50'])
})

test('stopped during a pause, starts no further batch', async () => {
  const { calls, controller, run } = setUp(1_000, 1_000)
  const running = run()
  controller.abort()
  await running
  expect(calls).toEqual(['reservations 250', 'counted 250', 'slept 24'])
})

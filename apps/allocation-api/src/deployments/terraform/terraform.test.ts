import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createKeyedMutex } from './terraform.ts'

const never = new AbortController().signal

test('grants one lock per key in order; a request that aborts lets no other request overtake the holder', async () => {
  const mutex = createKeyedMutex()
  const order: string[] = []
  const release = await mutex.acquire('a', never)
  const controller = new AbortController()
  const second = mutex.acquire('a', controller.signal).then(lock => order.push(lock ? 'second' : 'second aborted'))
  const third = mutex.acquire('a', never).then(lock => {
    order.push('third')
    lock?.()
  })
  expect(await mutex.acquire('b', never)).toBeTypeOf('function')
  controller.abort()
  await second
  await setImmediate()
  expect(order).toEqual(['second aborted'])
  release?.()
  await third
  expect(order).toEqual(['second aborted', 'third'])
  expect(await mutex.acquire('a', AbortSignal.abort())).toBeNull()
  expect(await mutex.acquire('a', never)).toBeTypeOf('function')
})

import { expect, test, vi } from 'vitest'
import { TimeoutError, withTimeout } from './time.ts'

test('returns the result or the error of an operation that settles in time, and leaves no timer', async () => {
  vi.useFakeTimers()
  expect(await withTimeout(Promise.resolve(7), 5)).toBe(7)
  await expect(withTimeout(Promise.reject(new Error('failed')), 5)).rejects.toThrow('failed')
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

test('rejects after the timeout', async () => {
  await expect(withTimeout(new Promise(() => {}), 5)).rejects.toThrow(new TimeoutError('no answer within 5 ms'))
})

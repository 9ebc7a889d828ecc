import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Notifier } from './notifier.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = new AbortController().signal

test('a notification wakes every waiter of the deployment, and none of another one', async () => {
  const notifier = new Notifier()
  const [first, second] = [notifier.wait('a', 1_000, never), notifier.wait('a', 1_000, never)]
  const other = notifier.wait('b', 1_000, never)
  notifier.notify('a')
  expect(await Promise.all([first, second])).toEqual([true, true])
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1_000)
  expect(await other).toBe(false)
  expect(getEventListeners(never, 'abort')).toEqual([])
})

test('a notification without waiters is not stored', async () => {
  const notifier = new Notifier()
  notifier.notify('a')
  const late = notifier.wait('a', 1_000, never)
  vi.advanceTimersByTime(999)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(await late).toBe(false)
})

test('a wait ends when the signal aborts, and leaves nothing behind', async () => {
  const notifier = new Notifier()
  const gone = new AbortController()
  const waiting = notifier.wait('a', 1_000, gone.signal)
  gone.abort()
  expect(await waiting).toBe(false)
  expect(await notifier.wait('a', 1_000, gone.signal)).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
  notifier.notify('a')
})

test('a waiter that waits again is woken only by the next notification', async () => {
  const notifier = new Notifier()
  const first = notifier.wait('a', 1_000, never)
  notifier.notify('a')
  const second = notifier.wait('a', 1_000, never)
  expect(await first).toBe(true)
  expect(vi.getTimerCount()).toBe(1)
  notifier.notify('a')
  expect(await second).toBe(true)
})

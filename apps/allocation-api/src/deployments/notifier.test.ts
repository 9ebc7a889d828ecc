import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createNews } from './notifier.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = new AbortController().signal

test('all who wait for a deployment are woken, and nobody who waits for another one', async () => {
  const news = createNews()
  const [first, second] = [news.changed('a', 1_000, never), news.changed('a', 1_000, never)]
  const other = news.changed('b', 1_000, never)
  news.wake('a')
  expect(await Promise.all([first, second])).toEqual([true, true])
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1_000)
  expect(await other).toBe(false)
  expect(getEventListeners(never, 'abort')).toEqual([])
})

test('news before anybody waits are not kept', async () => {
  const news = createNews()
  news.wake('a')
  const late = news.changed('a', 1_000, never)
  vi.advanceTimersByTime(999)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(await late).toBe(false)
})

test('it ends at once when the signal aborts, and leaves nothing behind', async () => {
  const news = createNews()
  const gone = new AbortController()
  const waiting = news.changed('a', 1_000, gone.signal)
  gone.abort()
  expect(await waiting).toBe(false)
  expect(await news.changed('a', 1_000, gone.signal)).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
  news.wake('a')
})

test('who waits again while they are woken is woken by the next news only', async () => {
  const news = createNews()
  const first = news.changed('a', 1_000, never)
  news.wake('a')
  const second = news.changed('a', 1_000, never)
  expect(await first).toBe(true)
  expect(vi.getTimerCount()).toBe(1)
  news.wake('a')
  expect(await second).toBe(true)
})

import { expect, test } from 'vitest'
import { LongPolls } from './long-poll.ts'

test('a wait ends when its time is up, and no longer counts', async () => {
  const polls = new LongPolls()
  const end = polls.wait('a', 5)
  expect(polls.size).toBe(1)
  expect(await end).toBe('notified')
  expect(polls.size).toBe(0)
})

test('notifyAll ends all waits immediately', async () => {
  const polls = new LongPolls()
  const ends = ['a', 'b', 'c'].map(id => polls.wait(id, 60_000))
  polls.notifyAll()
  expect(polls.size).toBe(0)
  expect(await Promise.all(ends)).toEqual(['notified', 'notified', 'notified'])
})

test('cancel ends one wait, and the others continue', async () => {
  const polls = new LongPolls()
  const cancelled = polls.wait('a', 60_000)
  const remaining = polls.wait('b', 60_000)
  polls.cancel('a')
  expect(await cancelled).toBe('cancelled')
  expect(polls.size).toBe(1)
  polls.notifyAll()
  expect(await remaining).toBe('notified')
})

test('cancelling an unknown wait does nothing', () => {
  const polls = new LongPolls()
  polls.cancel('unknown')
  polls.notifyAll()
  expect(polls.size).toBe(0)
})

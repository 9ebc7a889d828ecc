import { expect, test } from 'vitest'
import { Waiters } from './long-poll.ts'

test('whoever waits is woken when the time is up, and counted no more', async () => {
  const waiters = new Waiters()
  const end = waiters.sleep('a', 5)
  expect(waiters.size).toBe(1)
  expect(await end).toBe('woken')
  expect(waiters.size).toBe(0)
})

test('all are woken at once', async () => {
  const waiters = new Waiters()
  const ends = ['a', 'b', 'c'].map(id => waiters.sleep(id, 60_000))
  waiters.wakeAll()
  expect(waiters.size).toBe(0)
  expect(await Promise.all(ends)).toEqual(['woken', 'woken', 'woken'])
})

test('one is forgotten, and the others wait on', async () => {
  const waiters = new Waiters()
  const gone = waiters.sleep('a', 60_000)
  const stays = waiters.sleep('b', 60_000)
  waiters.forget('a')
  expect(await gone).toBe('forgotten')
  expect(waiters.size).toBe(1)
  waiters.wakeAll()
  expect(await stays).toBe('woken')
})

test('to forget who does not wait is nothing', () => {
  const waiters = new Waiters()
  waiters.forget('nobody')
  waiters.wakeAll()
  expect(waiters.size).toBe(0)
})

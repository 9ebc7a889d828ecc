import { expect, test } from 'vitest'
import { throttledCache } from './cached-query.ts'

/** A cache over a fake query and a fake clock, both controlled by the test. */
const setUp = () => {
  let clock = 0
  const queries: PromiseWithResolvers<number>[] = []
  let wait = Promise.withResolvers<void>()
  const get = throttledCache(
    () => {
      queries.push(Promise.withResolvers<number>())
      return queries.at(-1)?.promise ?? Promise.reject(new Error('no query was pushed'))
    },
    { now: () => clock, wait: () => wait.promise },
  )
  return {
    get,
    queries,
    at: (ms: number) => {
      clock = ms
    },
    /** Every caller so far stops waiting. */
    endWait: () => {
      wait.resolve()
      wait = Promise.withResolvers<void>()
    },
    /** Settles the latest query at `ms`. */
    settle: async (ms: number, value: number | Error) => {
      clock = ms
      const latest = queries.at(-1)
      if (typeof value === 'number') latest?.resolve(value)
      else latest?.reject(value)
      await latest?.promise.catch(() => {})
    },
  }
}

test('concurrent callers share one query, however long it takes', async () => {
  const { get, queries, at, settle } = setUp()
  const first = get()
  at(1_000_000)
  const second = get()
  await settle(1_000_000, 7)
  expect(await Promise.all([first, second])).toEqual([7, 7])
  expect(queries).toHaveLength(1)
})

test.each([
  ['nineteen times its duration', 100, 100 + 1_900],
  ['at most ten minutes', 40_000, 40_000 + 600_000],
])('the pause after a query: %s', async (_, took, until) => {
  const { get, queries, at, settle } = setUp()
  void get()
  await settle(took, 1)
  at(until - 1)
  expect(await get()).toBe(1)
  expect(queries).toHaveLength(1)
  at(until)
  const next = get()
  await settle(until, 2)
  expect(await next).toBe(2)
  expect(queries).toHaveLength(2)
})

test('a query that took no time is repeated', async () => {
  const { get, queries, settle } = setUp()
  void get()
  await settle(0, 1)
  void get()
  await settle(0, 2)
  expect(queries).toHaveLength(2)
})

test('an error reaches every caller that shares it, and its pause is at most a minute', async () => {
  const { get, queries, at, settle } = setUp()
  const outcomes = Promise.allSettled([get(), get()])
  await settle(5_000, new Error('no answer'))
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  at(6_000)
  await expect(get()).rejects.toThrow('no answer')
  expect(queries).toHaveLength(1)
  at(64_999)
  await expect(get()).rejects.toThrow('no answer')
  at(65_000)
  const next = get()
  await settle(65_000, 3)
  expect(await next).toBe(3)
})

test('a caller that stops waiting gets the previous result; later callers get the new one', async () => {
  const { get, queries, at, endWait, settle } = setUp()
  const first = get()
  await settle(1, 1)
  expect(await first).toBe(1)
  at(20)
  const late = [get(), get()]
  endWait()
  expect(await Promise.all(late)).toEqual([1, 1])
  const waiting = get()
  await settle(50_020, 2)
  expect(await waiting).toBe(2)
  expect(await get()).toBe(2)
  expect(queries).toHaveLength(2)
})

test('a caller that stops waiting for the first query gets an error', async () => {
  const { get, queries, endWait, settle } = setUp()
  const late = get()
  endWait()
  await expect(late).rejects.toThrow('still in flight')
  await settle(1_000, 1)
  expect(await get()).toBe(1)
  expect(queries).toHaveLength(1)
})

test('the error of a query without a waiting caller is not an unhandled rejection', async () => {
  const { get, at, endWait, settle } = setUp()
  const first = get()
  await settle(1, 1)
  await first
  at(20)
  const late = get()
  endWait()
  expect(await late).toBe(1)
  await settle(1_020, new Error('no answer'))
  await expect(get()).rejects.toThrow('no answer')
})

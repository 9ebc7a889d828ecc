import { expect, test } from 'vitest'
import { throttledCache } from './cached-query.ts'

/** A question whose answers are given by hand, and a clock that is set by hand. */
const scene = () => {
  let clock = 0
  const asked: PromiseWithResolvers<number>[] = []
  let patience = Promise.withResolvers<void>()
  const ask = throttledCache(
    () => {
      asked.push(Promise.withResolvers<number>())
      return asked.at(-1)?.promise ?? Promise.reject(new Error('nothing was pushed'))
    },
    { now: () => clock, patience: () => patience.promise },
  )
  return {
    ask,
    asked,
    at: (ms: number) => {
      clock = ms
    },
    /** Nobody who has asked so far waits any longer. */
    endPatience: () => {
      patience.resolve()
      patience = Promise.withResolvers<void>()
    },
    /** The latest question is answered at `ms`. */
    answer: async (ms: number, value: number | Error) => {
      clock = ms
      const latest = asked.at(-1)
      if (typeof value === 'number') latest?.resolve(value)
      else latest?.reject(value)
      await latest?.promise.catch(() => {})
    },
  }
}

test('who asks at the same time shares one question, however long it takes', async () => {
  const { ask, asked, at, answer } = scene()
  const first = ask()
  at(1_000_000)
  const second = ask()
  await answer(1_000_000, 7)
  expect(await Promise.all([first, second])).toEqual([7, 7])
  expect(asked).toHaveLength(1)
})

test.each([
  ['nineteen times as long as it took', 100, 100 + 1_900],
  ['ten minutes at the most', 40_000, 40_000 + 600_000],
])('the pause after an answer: %s', async (_, took, until) => {
  const { ask, asked, at, answer } = scene()
  void ask()
  await answer(took, 1)
  at(until - 1)
  expect(await ask()).toBe(1)
  expect(asked).toHaveLength(1)
  at(until)
  const next = ask()
  await answer(until, 2)
  expect(await next).toBe(2)
  expect(asked).toHaveLength(2)
})

test('what took no time is asked anew', async () => {
  const { ask, asked, answer } = scene()
  void ask()
  await answer(0, 1)
  void ask()
  await answer(0, 2)
  expect(asked).toHaveLength(2)
})

test('a failure is told to all who share it, and has a pause of a minute at the most', async () => {
  const { ask, asked, at, answer } = scene()
  const outcomes = Promise.allSettled([ask(), ask()])
  await answer(5_000, new Error('no answer'))
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  at(6_000)
  await expect(ask()).rejects.toThrow('no answer')
  expect(asked).toHaveLength(1)
  at(64_999)
  await expect(ask()).rejects.toThrow('no answer')
  at(65_000)
  const next = ask()
  await answer(65_000, 3)
  expect(await next).toBe(3)
})

test('who is out of patience has the answer before, and the next ones have the new one', async () => {
  const { ask, asked, at, endPatience, answer } = scene()
  const first = ask()
  await answer(1, 1)
  expect(await first).toBe(1)
  at(20)
  const late = [ask(), ask()]
  endPatience()
  expect(await Promise.all(late)).toEqual([1, 1])
  const waiting = ask()
  await answer(50_020, 2)
  expect(await waiting).toBe(2)
  expect(await ask()).toBe(2)
  expect(asked).toHaveLength(2)
})

test('while the first answer is being found there is none for who is out of patience', async () => {
  const { ask, asked, endPatience, answer } = scene()
  const late = ask()
  endPatience()
  await expect(late).rejects.toThrow('still being found')
  await answer(1_000, 1)
  expect(await ask()).toBe(1)
  expect(asked).toHaveLength(1)
})

test("the failure of a question that nobody waits for any more is nobody's unhandled rejection", async () => {
  const { ask, at, endPatience, answer } = scene()
  const first = ask()
  await answer(1, 1)
  await first
  at(20)
  const late = ask()
  endPatience()
  expect(await late).toBe(1)
  await answer(1_020, new Error('no answer'))
  await expect(ask()).rejects.toThrow('no answer')
})

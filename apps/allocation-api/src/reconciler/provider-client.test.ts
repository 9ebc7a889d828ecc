import { describe, expect, test } from 'vitest'
import type { ReadResult } from '../dns/provider.ts'
import { createCalls } from './provider-client.ts'

const none: ReadResult = { kind: 'read', records: [] }
const down: ReadResult = { kind: 'unavailable', reason: 'It is down.' }
const ofZone: ReadResult = { kind: 'unavailable', reason: 'There is no such zone.', scope: 'zone' }

/** Calls of a provider that answers as the test says, by a clock that the test moves. */
const scene = () => {
  const asked: PromiseWithResolvers<ReadResult>[] = []
  const outcomes: string[] = []
  const defects: unknown[] = []
  const clock = { now: 0 }
  const calls = createCalls({
    provider: {
      read: () => {
        const answer = Promise.withResolvers<ReadResult>()
        asked.push(answer)
        return answer.promise
      },
      apply: async () => ({ kind: 'applied', refused: [{ name: 'x', reason: 'no' }] }),
    },
    deadlineMs: 50,
    now: () => clock.now,
    random: () => 0.5,
    onCall: (operation, outcome) => outcomes.push(`${operation} ${outcome}`),
    onDefect: error => defects.push(error),
  })
  const read = () => calls.read('pool.test', 'all')
  /** The result of a read that the provider answers so; `held back` where it was not asked. */
  const answered = async (answer: ReadResult) => {
    const before = asked.length
    const result = read()
    if (asked.length === before) return 'held back'
    asked.at(-1)?.resolve(answer)
    return result
  }
  return { calls, asked, outcomes, defects, clock, read, answered }
}

describe('calls of the provider', () => {
  test('an answer is passed on, and counted', async () => {
    const { calls, answered, outcomes } = scene()
    expect(await answered(none)).toEqual(none)
    await calls.apply('pool.test', [])
    expect(outcomes).toEqual(['read done', 'apply refused'])
  })

  test('one that hangs is unavailable at the deadline', async () => {
    const { read, outcomes } = scene()
    expect(await read()).toEqual({
      kind: 'unavailable',
      reason: 'The DNS provider did not answer within 0.05 s.',
      retryAfterMs: 500,
    })
    expect(outcomes).toEqual(['read unavailable'])
  })

  test('one that throws is a defect: told, without its text in the result, and no reason to keep others waiting', async () => {
    const { read, asked, defects, calls } = scene()
    const result = read()
    asked[0]?.reject(new Error('key=secret'))
    expect(await result).toMatchObject({ kind: 'unavailable', scope: 'zone' })
    expect(JSON.stringify(await result)).not.toContain('secret')
    expect(defects).toHaveLength(1)
    expect(calls.isHeldBack()).toBe(false)
  })

  test('one that throws before it has a promise to give is no different', async () => {
    const defects: unknown[] = []
    const throws = (): never => {
      throw new Error('key=secret')
    }
    const calls = createCalls({
      provider: { read: throws, apply: throws },
      deadlineMs: 50,
      now: () => 0,
      random: () => 0.5,
      onCall: () => {},
      onDefect: error => defects.push(error),
    })
    for (const result of [await calls.read('pool.test', 'all'), await calls.apply('pool.test', [])]) {
      expect(result).toMatchObject({ kind: 'unavailable', scope: 'zone' })
    }
    expect(defects).toHaveLength(2)
  })

  test('after three failures nothing is asked until the pause is over; then one call alone, and with its success all', async () => {
    const { answered, clock, calls, asked, read } = scene()
    for (const at of [0, 500, 1_500]) {
      clock.now = at
      expect(await answered(down)).toMatchObject({ kind: 'unavailable', reason: 'It is down.' })
    }
    clock.now = 2_000
    expect(calls.isHeldBack()).toBe(true)
    expect(await read()).toEqual({
      kind: 'unavailable',
      reason: 'It is down. It is not asked again for 2 s.',
      retryAfterMs: 1_500,
    })
    expect(asked).toHaveLength(3)
    clock.now = 3_500
    const probe = read()
    expect(asked).toHaveLength(4)
    expect(await read()).toMatchObject({ kind: 'unavailable', retryAfterMs: 500 })
    expect(asked).toHaveLength(4)
    asked[3]?.resolve(none)
    expect(await probe).toEqual(none)
    const both = [read(), read()]
    expect(asked).toHaveLength(6)
    for (const one of asked.slice(4)) one.resolve(none)
    await Promise.all(both)
  })

  test('a probe that fails keeps it open, for longer', async () => {
    const { answered, clock } = scene()
    for (const at of [0, 500, 1_500, 3_500]) {
      clock.now = at
      await answered(down)
    }
    clock.now = 7_499
    expect(await answered(none)).toBe('held back')
    clock.now = 7_500
    expect(await answered(none)).toEqual(none)
  })

  test('what concerns one zone keeps no other waiting, however often', async () => {
    const { answered } = scene()
    for (let i = 0; i < 10; i += 1) expect(await answered(ofZone)).toEqual(ofZone)
    expect(await answered(none)).toEqual(none)
  })

  test('a success in between: failures are no longer in a row', async () => {
    const { answered, clock, calls } = scene()
    for (const answer of [down, down, none, down, down]) {
      clock.now += 10_000
      await answered(answer)
    }
    expect(calls.isHeldBack()).toBe(false)
  })

  test('a provider that asks to be left alone is, from the first time', async () => {
    const { answered, clock } = scene()
    expect(await answered({ ...down, retryAfterMs: 90_000 })).toMatchObject({ retryAfterMs: 90_000 })
    clock.now = 89_999
    expect(await answered(none)).toBe('held back')
    clock.now = 90_000
    expect(await answered(none)).toEqual(none)
  })

  test('a call that was under way when others failed, and succeeds, shows that the provider is back', async () => {
    const { answered, clock, read, asked, calls } = scene()
    const slow = read()
    for (const at of [0, 500, 1_500]) {
      clock.now = at
      await answered(down)
    }
    expect(calls.isHeldBack()).toBe(true)
    asked[0]?.resolve(none)
    await slow
    expect(calls.isHeldBack()).toBe(false)
  })
})

import postgres from 'postgres'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Sql } from './client.ts'
import { NotWrittenError, toConnectionError } from './errors.ts'
import type { ServerClock } from './time.ts'
import { createWriter, isLockTimeout } from './writer.ts'

const TIMEOUT_MS = 5_000
const serverError = (code: string): Error => Object.assign(new postgres.PostgresError('example'), { code })
const locked = () => serverError('55P03')

/** A tag that returns its name; the statements of these tests need no SQL. */
const createLane = (name: string): Sql => Object.assign(() => name, { lane: name }) as never
const [fast, slow] = [createLane('fast'), createLane('slow')]
const toLane = (sql: Sql): string => (sql === fast ? 'fast' : 'slow')

const setUp = () => {
  const resets: string[] = []
  const clock: ServerClock = {
    toServerDeadline: async deadline => ({ server: 'server', deadlineMs: deadline }),
    reset: () => void resets.push('reset'),
  }
  return { writer: createWriter({ fast, slow, clock, timeoutMs: TIMEOUT_MS }), resets }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

describe('a locked row', () => {
  test('a statement that waits in vain is executed in the slow lane, again and again until it succeeds', async () => {
    const { writer } = setUp()
    const lanes: string[] = []
    const result = await writer.write('a', async sql => {
      lanes.push(toLane(sql))
      if (lanes.length < 4) throw locked()
      return 'done'
    })
    expect(result).toBe('done')
    expect(lanes).toEqual(['fast', 'slow', 'slow', 'slow'])
  })

  test('the writes of one row execute one at a time in order; those of other rows do not wait', async () => {
    const { writer } = setUp()
    const gate = Promise.withResolvers<void>()
    const executed: string[] = []
    const write = (row: string, label: string) =>
      writer.write(row, async sql => {
        executed.push(`${label} ${toLane(sql)}`)
        if (label === 'first' && toLane(sql) === 'fast') throw locked()
        if (label === 'first') await gate.promise
        return label
      })
    const results = Promise.all([write('a', 'first'), write('a', 'second'), write('b', 'other')])
    await vi.advanceTimersByTimeAsync(0)
    expect(executed).toEqual(['first fast', 'other fast', 'first slow'])
    gate.resolve()
    expect(await results).toEqual(['first', 'second', 'other'])
    // The first one succeeded, so the row is not locked any more.
    expect(executed.slice(3)).toEqual(['second fast'])
  })

  test('while the row is locked, later requests do not try the fast lane or a batch', async () => {
    const { writer } = setUp()
    const lanes: string[] = []
    const stuck = writer.write('a', sql => {
      lanes.push(toLane(sql))
      return toLane(sql) === 'fast' ? Promise.reject(locked()) : new Promise(() => {})
    })
    await vi.advanceTimersByTimeAsync(100)
    const share = writer.share<string, string>({
      rowsOf: request => [request],
      execute: async (requests, sql) => requests.map(() => toLane(sql)),
    })
    const later = share('a')
    const outcomes = Promise.allSettled([stuck, later])
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS + 100)
    expect(await outcomes).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled', value: 'slow' }])
    expect(lanes).toEqual(['fast', 'slow'])
  })

  test('a row that stays locked: the write certainly had no effect', async () => {
    const { writer } = setUp()
    const rejected = expect(
      writer.write('a', async () => {
        await new Promise(resolve => setTimeout(resolve, 450))
        throw locked()
      }),
    ).rejects.toThrow(NotWrittenError)
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    await rejected
  })

  test('a request whose batch met a locked row is executed alone', async () => {
    const { writer } = setUp()
    const executed: string[] = []
    const share = writer.share<string, string>({
      rowsOf: request => [request],
      async execute(requests, sql) {
        executed.push(`${requests.join()} ${toLane(sql)}`)
        if (requests.includes('locked') && toLane(sql) === 'fast') throw locked()
        return requests
      },
    })
    const results = Promise.all(['locked', 'free'].map(share))
    await vi.advanceTimersByTimeAsync(0)
    expect(await results).toEqual(['locked', 'free'])
    expect(executed).toEqual(['locked,free fast', 'locked fast', 'free fast', 'locked slow'])
    await expect(writer.executeOnce(() => Promise.reject(locked()))).rejects.toSatisfy(isLockTimeout)
  })

  test('of more than a thousand waiting requests, the others are rejected at once; a request for another row is not', async () => {
    const { writer } = setUp()
    const hang = () => new Promise<string>(() => {})
    const outcomes: string[] = []
    const send = (row: string) =>
      writer.write(row, hang).catch((error: Error) => {
        outcomes.push(error.message)
      })
    const all = Array.from({ length: 1_003 }, () => send('a'))
    await vi.advanceTimersByTimeAsync(0)
    expect(outcomes).toEqual(Array(2).fill('too many requests wait for locked rows'))
    expect(await writer.write('b', async () => 'served')).toBe('served')
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    await Promise.all(all)
    expect(outcomes).toHaveLength(1_003)
    expect(await writer.write('a', async () => 'served')).toBe('served')
  })

  test('a request that times out in the queue is never executed', async () => {
    const { writer } = setUp()
    const first = writer.write('a', () => new Promise<string>(() => {})).catch(() => 'timeout')
    const execute = vi.fn(async () => 'executed')
    await vi.advanceTimersByTimeAsync(0)
    const second = writer.write('a', execute).catch(() => 'timeout')
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    expect(await Promise.all([first, second])).toEqual(['timeout', 'timeout'])
    expect(execute).not.toHaveBeenCalled()
  })

  test('any other error rejects, and the next request executes', async () => {
    const { writer } = setUp()
    await expect(writer.write('a', () => Promise.reject(serverError('23514')))).rejects.toMatchObject({ code: '23514' })
    expect(await writer.write('a', async () => 'done')).toBe('done')
  })
})

describe('the deadline', () => {
  test.each([
    ['the server may execute it until then', toConnectionError(new Error('reset'), { hadSession: true }), TIMEOUT_MS],
    ['a pooler lost the server', serverError('08006'), TIMEOUT_MS],
    ['the server ended it', serverError('57P01'), 0],
    ['it was not sent', toConnectionError(new Error('refused'), { hadSession: false }), 0],
  ])('a write whose connection was lost: %s', async (_, error, rejectedAfterMs) => {
    const { writer } = setUp()
    let rejectedAfter: number | undefined
    const startedAt = performance.now()
    const rejected = writer
      .write('a', () => Promise.reject(error))
      .catch(() => {
        rejectedAfter = performance.now() - startedAt
      })
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    await rejected
    expect(rejectedAfter).toBe(rejectedAfterMs)
  })

  test.each(['57PD1', '57PD2'])(
    '%s before the deadline: the clock was wrong, and the write is tried again',
    async code => {
      const { writer, resets } = setUp()
      let attempts = 0
      const result = await writer.write('a', async () => {
        attempts += 1
        if (attempts < 3) throw serverError(code)
        return 'done'
      })
      expect([result, attempts, resets.length]).toEqual(['done', 3, 2])
    },
  )

  test('… but not without an end', async () => {
    const { writer } = setUp()
    const execute = vi.fn(() => Promise.reject(serverError('57PD1')))
    await expect(writer.write('a', execute)).rejects.toMatchObject({ code: '57PD1' })
    expect(execute).toHaveBeenCalledTimes(3)
  })

  test('a statement that is late at the deadline is not tried again', async () => {
    const { writer } = setUp()
    const execute = vi.fn(
      () => new Promise((_, reject) => setTimeout(() => reject(serverError('57PD2')), TIMEOUT_MS - 20)),
    )
    const result = writer.write('a', execute)
    const expected = expect(result).rejects.toMatchObject({ code: '57PD2' })
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    await expected
    expect(execute).toHaveBeenCalledOnce()
  })
})

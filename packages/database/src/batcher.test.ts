import postgres from 'postgres'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createBatcher, type TogetherOptions } from './batcher.ts'
import { DatabaseTimeout } from './client.ts'

const TIMEOUT_MS = 5_000
const SLOW_MS = 100

/** The statement that was rejected for what it says; `about` one request, for the messages. */
const refusal = (code: string): Error =>
  Object.assign(new postgres.PostgresError('refused' as never), { code, message: `refused ${code}` })

interface Statement {
  readonly requests: readonly string[]
  /** Each request is answered by its own name in capitals, unless told otherwise. */
  answer(answers?: readonly string[]): Promise<void>
  fail(error: unknown): Promise<void>
}

/** A database whose answers are given by hand. */
const scene = (more: Partial<TogetherOptions<string, string>> = {}) => {
  const statements: Statement[] = []
  const told: string[] = []
  const call = createBatcher<string, string>({
    ask: requests => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>()
      const passed = async () => void (await vi.advanceTimersByTimeAsync(0))
      statements.push({
        requests,
        answer: answers => {
          resolve(answers ?? requests.map(request => request.toUpperCase()))
          return passed()
        },
        fail: error => {
          reject(error)
          return passed()
        },
      })
      return promise
    },
    lanes: 2,
    most: 3,
    slowMs: SLOW_MS,
    timeoutMs: TIMEOUT_MS,
    ...more,
  })
  /** Each is called; what it is told is written down in the order in which it is told. */
  const calls = (...requests: string[]) => {
    for (const request of requests) {
      call(request).then(
        answer => told.push(answer),
        (error: Error) => told.push(`${request}: ${error.message}`),
      )
    }
  }
  const statement = (index: number): Statement => {
    const found = statements[index]
    if (!found) throw new Error(`there is no statement ${index}`)
    return found
  }
  const sent = () => statements.map(({ requests }) => requests.join(''))
  return { call, calls, statement, sent, told }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  // Nothing is left behind: no clock runs for a call that was told, or a statement that was answered.
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

describe('who shares a statement', () => {
  test('who comes alone is sent at once, before the call returns', async () => {
    const { calls, sent, statement, told } = scene()
    calls('a')
    expect(sent()).toEqual(['a'])
    calls('b')
    expect(sent()).toEqual(['a', 'b'])
    await statement(1).answer()
    await statement(0).answer()
    expect(told).toEqual(['B', 'A'])
  })

  test('those who come while all lanes are taken share the next, first come first, never more than `most`', async () => {
    const { calls, sent, statement, told } = scene()
    calls('a', 'b', 'c', 'd', 'e', 'f')
    calls('g')
    expect(sent()).toEqual(['a', 'b'])
    await statement(1).answer()
    expect(sent()).toEqual(['a', 'b', 'cde'])
    calls('h')
    expect(sent()).toHaveLength(3)
    await statement(2).answer()
    expect(sent()).toEqual(['a', 'b', 'cde', 'fgh'])
    await statement(3).answer()
    await statement(0).answer()
    expect(told).toEqual(['B', 'C', 'D', 'E', 'F', 'G', 'H', 'A'])
    calls('i')
    expect(sent()).toHaveLength(5)
    await statement(4).answer()
  })

  test.each([
    [1, 1],
    [2, 3],
    [4, 100],
  ])('%i lanes, %i a statement: never more of either, and each of 500 has its own answer', async (lanes, most) => {
    let underWay = 0
    let busiest = 0
    let largest = 0
    const call = createBatcher<number, number>({
      ask: async requests => {
        underWay += 1
        busiest = Math.max(busiest, underWay)
        largest = Math.max(largest, requests.length)
        for (let i = 0; i < requests.length % 7; i += 1) await Promise.resolve()
        underWay -= 1
        return requests.map(request => -request)
      },
      lanes,
      most,
      slowMs: SLOW_MS,
      timeoutMs: TIMEOUT_MS,
    })
    const requests = Array.from({ length: 500 }, (_, i) => i + 1)
    expect(await Promise.all(requests.map(call))).toEqual(requests.map(request => -request))
    expect([busiest, largest]).toEqual([lanes, most])
  })

  test('an answer may be null or undefined: it is one', async () => {
    const nothing = { lanes: 1, most: 2, slowMs: SLOW_MS, timeoutMs: TIMEOUT_MS }
    expect(await createBatcher({ ...nothing, ask: async () => [null] })('a')).toBeNull()
    expect(await createBatcher({ ...nothing, ask: async () => [undefined] })('a')).toBeUndefined()
  })
})

describe('what fails', () => {
  const away = new DatabaseTimeout('away')

  test('a database that is away is told to the whole group, to no other, and the lane is free again', async () => {
    const { calls, sent, statement, told } = scene({ lanes: 1 })
    calls('a', 'b', 'c', 'd', 'e')
    await statement(0).fail(away)
    expect(told).toEqual(['a: away'])
    await statement(1).fail(away)
    expect(told).toEqual(['a: away', 'b: away', 'c: away', 'd: away'])
    await statement(2).answer()
    expect(told.at(-1)).toBe('E')
    expect(sent()).toEqual(['a', 'bcd', 'e'])
  })

  test.each(['57014', '40P01', '55P03', '53300'])('SQLSTATE %s: nobody is asked alone', async code => {
    const { calls, sent, statement, told } = scene({ lanes: 1 })
    calls('a', 'b', 'c')
    await statement(0).answer()
    await statement(1).fail(refusal(code))
    expect(told).toEqual(['A', `b: refused ${code}`, `c: refused ${code}`])
    expect(sent()).toEqual(['a', 'bc'])
  })

  test('a group that is refused for what it says is asked one by one, in order, and only the faulty one is told', async () => {
    const { calls, sent, statement, told } = scene({ lanes: 1 })
    calls('a', 'b', 'c', 'd', 'e')
    await statement(0).answer()
    await statement(1).fail(refusal('22P05'))
    await statement(2).answer()
    await statement(3).fail(refusal('22P05'))
    await statement(4).answer()
    await statement(5).answer()
    expect(told).toEqual(['A', 'B', 'c: refused 22P05', 'D', 'E'])
    expect(sent()).toEqual(['a', 'bcd', 'b', 'c', 'd', 'e'])
  })

  test.each([
    ['fewer answers', ['B']],
    ['more answers', ['B', 'C', 'D']],
  ])('%s than requests: something was done, nobody knows for whom, and nobody is asked again', async (_, answers) => {
    const { calls, sent, statement, told } = scene({ lanes: 1 })
    calls('a', 'b', 'c')
    await statement(0).answer()
    await statement(1).answer(answers)
    const said = `2 requests, ${answers.length} answers`
    expect(told).toEqual(['A', `b: ${said}`, `c: ${said}`])
    expect(sent()).toEqual(['a', 'bc'])
  })

  test('what throws before it asks is told like what fails, and the lane is free again', async () => {
    const ask = vi.fn((): Promise<string[]> => {
      throw new Error('at once')
    })
    const { call } = scene({ lanes: 1, ask })
    expect((await Promise.allSettled([call('a'), call('b')])).map(({ status }) => status)).toEqual([
      'rejected',
      'rejected',
    ])
    expect(ask).toHaveBeenCalledTimes(2)
  })
})

describe('what takes long', () => {
  test('a slow statement leaves its lane to the next, once, and is answered all the same', async () => {
    const { calls, sent, statement, told } = scene()
    calls('a', 'b', 'c', 'd')
    await vi.advanceTimersByTimeAsync(SLOW_MS - 1)
    expect(sent()).toEqual(['a', 'b'])
    await vi.advanceTimersByTimeAsync(1)
    // Whoever leaves first takes all who wait along; the other lane is free.
    expect(sent()).toEqual(['a', 'b', 'cd'])
    calls('e', 'f')
    expect(sent()).toEqual(['a', 'b', 'cd', 'e'])
    // Their lanes are gone already: no third statement goes out beside the two.
    await statement(0).answer()
    await statement(1).answer()
    expect(sent()).toHaveLength(4)
    await statement(2).answer()
    expect(sent()).toEqual(['a', 'b', 'cd', 'e', 'f'])
    await statement(3).answer()
    await statement(4).answer()
    expect(told).toEqual(['A', 'B', 'C', 'D', 'E', 'F'])
  })

  test('two that wait for ever hold nobody else up for longer than it takes to be slow', async () => {
    const { calls, statement, told } = scene()
    calls('locked', 'locked', 'free')
    await vi.advanceTimersByTimeAsync(SLOW_MS)
    await statement(2).answer()
    expect(told).toEqual(['FREE'])
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    expect(told.slice(1)).toEqual([expect.stringContaining('locked: no answer'), expect.stringContaining('no answer')])
    await statement(0).answer()
    await statement(1).answer()
  })

  test('the time runs from the call: who waits in the queue is told then, and is never sent', async () => {
    const { calls, sent, statement, told } = scene({ lanes: 1, slowMs: 2 * TIMEOUT_MS })
    calls('a')
    await vi.advanceTimersByTimeAsync(1_000)
    calls('b')
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 1_000)
    expect(told).toEqual([`a: no answer within ${TIMEOUT_MS} ms`])
    await vi.advanceTimersByTimeAsync(999)
    expect(told).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(told).toEqual([told[0], `b: no answer within ${TIMEOUT_MS} ms`])
    calls('c')
    await statement(0).answer()
    expect(sent()).toEqual(['a', 'c'])
    // Late answers reach nobody, and harm nobody.
    await statement(1).answer()
    expect(told.slice(2)).toEqual(['C'])
  })

  test('of a refused group, those who were told meanwhile are not asked again, and hold up nobody', async () => {
    const { calls, sent, statement, told } = scene({ lanes: 1, slowMs: 10 * TIMEOUT_MS })
    calls('a', 'b', 'c', 'd')
    await statement(0).answer()
    await statement(1).fail(refusal('22P05'))
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    calls('e')
    expect(told).toHaveLength(4)
    await statement(2).fail(new DatabaseTimeout('away'))
    expect(sent()).toEqual(['a', 'bcd', 'b', 'e'])
    await statement(3).answer()
    expect(told.at(-1)).toBe('E')
  })

  test('ten thousand who wait for a database that hangs: a bounded number is sent, all are told in time', async () => {
    const { calls, sent, told } = scene({ most: 100 })
    calls(...Array.from({ length: 10_000 }, (_, i) => `n${i}`))
    expect(sent()).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    expect(told).toHaveLength(10_000)
    expect(sent().length).toBeLessThanOrEqual((2 * TIMEOUT_MS) / SLOW_MS)
  })
})

import postgres from 'postgres'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type BatcherOptions, createBatcher, splitQueue } from './batcher.ts'
import { TimeoutError } from './time.ts'

const TIMEOUT_MS = 5_000
const SLOW_MS = 100

const serverError = (code: string): Error =>
  Object.assign(new postgres.PostgresError('example'), { code, message: `rejected ${code}` })

interface Statement {
  readonly requests: readonly string[]
  /** Without `results`, each request gets its own name in capitals. */
  resolve(results?: readonly string[]): Promise<void>
  reject(error: unknown): Promise<void>
}

/** A batcher over a fake database whose statements the test settles. */
const setUp = (
  overrides: Partial<BatcherOptions<string, string>> = {},
  rowsOf?: (request: string) => readonly string[],
) => {
  const statements: Statement[] = []
  const settled: string[] = []
  const call = createBatcher<string, string>({
    execute: requests => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>()
      const flushMicrotasks = async () => void (await vi.advanceTimersByTimeAsync(0))
      statements.push({
        requests,
        resolve: results => {
          resolve(results ?? requests.map(request => request.toUpperCase()))
          return flushMicrotasks()
        },
        reject: error => {
          reject(error)
          return flushMicrotasks()
        },
      })
      return promise
    },
    maxInFlight: 2,
    maxBatchSize: 3,
    slowMs: SLOW_MS,
    timeoutMs: TIMEOUT_MS,
    ...overrides,
  })
  /** Sends the requests in one turn of the event loop; `settled` lists the results and errors in the order of their arrival. */
  const sendInOneTurn = async (...requests: string[]) => {
    for (const request of requests) {
      call(request, rowsOf?.(request)).then(
        result => settled.push(result),
        (error: Error) => settled.push(`${request}: ${error.message}`),
      )
    }
    await vi.advanceTimersByTimeAsync(0)
  }
  const send = async (...requests: string[]) => {
    for (const request of requests) await sendInOneTurn(request)
  }
  const statement = (index: number): Statement => {
    const found = statements[index]
    if (!found) throw new Error(`statement ${index} does not exist`)
    return found
  }
  const executed = () => statements.map(({ requests }) => requests.join(''))
  return { call, send, sendInOneTurn, statement, executed, settled }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  // Settled requests and statements leave no timer behind.
  expect(vi.getTimerCount()).toBe(0)
  vi.useRealTimers()
})

describe('batching', () => {
  test('a request below the in-flight limit is executed at the end of its turn, alone', async () => {
    const { call, send, executed, statement, settled } = setUp()
    const first = call('a').then(result => settled.push(result))
    expect(executed()).toEqual([])
    // The next immediate of the same turn.
    setImmediate(() => expect(executed()).toEqual(['a']))
    await vi.advanceTimersByTimeAsync(0)
    expect(executed()).toEqual(['a'])
    await send('b')
    expect(executed()).toEqual(['a', 'b'])
    await statement(1).resolve()
    await statement(0).resolve()
    await first
    expect(settled).toEqual(['B', 'A'])
  })

  test('the requests of one turn share statements, in order, up to `maxBatchSize`', async () => {
    const { sendInOneTurn, executed, statement, settled } = setUp()
    await sendInOneTurn('a', 'b', 'c', 'd')
    expect(executed()).toEqual(['abc', 'd'])
    await sendInOneTurn('e', 'f')
    await sendInOneTurn('g')
    await statement(0).resolve()
    expect(executed()).toEqual(['abc', 'd', 'efg'])
    // After the end of a statement, nothing waits, so the next requests are executed at the end of their turn.
    await statement(1).resolve()
    await sendInOneTurn('h', 'i')
    expect(executed()).toEqual(['abc', 'd', 'efg', 'hi'])
    await statement(2).resolve()
    await statement(3).resolve()
    expect(settled).toEqual([...'ABCDEFGHI'])
  })

  test('a request after one that was alone is executed immediately; the others of its turn share the next statement', async () => {
    const { call, send, sendInOneTurn, executed, statement, settled } = setUp()
    await send('a')
    await statement(0).resolve()
    const second = call('b').then(result => settled.push(result))
    expect(executed()).toEqual(['a', 'b'])
    // One statement is in flight, so these wait for the end of their turn.
    await sendInOneTurn('c', 'd')
    expect(executed()).toEqual(['a', 'b', 'cd'])
    await statement(1).resolve()
    await statement(2).resolve()
    // The last statement was shared.
    const fifth = call('e').then(result => settled.push(result))
    expect(executed()).toHaveLength(3)
    await sendInOneTurn('f')
    expect(executed()).toEqual(['a', 'b', 'cd', 'ef'])
    await statement(3).resolve()
    await Promise.all([second, fifth])
    expect(settled).toEqual([...'ABCDEF'])
  })

  test('behind a shared statement, requests wait for `maxSharedInFlight`; behind one that was alone, for `maxInFlight`', async () => {
    const { send, sendInOneTurn, executed, statement, settled } = setUp({ maxSharedInFlight: 1 })
    await send('a')
    await send('b')
    expect(executed()).toEqual(['a', 'b'])
    await sendInOneTurn('c', 'd')
    await statement(0).resolve()
    expect(executed()).toEqual(['a', 'b', 'cd'])
    await send('e')
    await statement(1).resolve()
    await send('f')
    expect(executed()).toEqual(['a', 'b', 'cd'])
    await statement(2).resolve()
    expect(executed()).toEqual(['a', 'b', 'cd', 'ef'])
    await statement(3).resolve()
    await send('g')
    await send('h')
    expect(executed()).toEqual(['a', 'b', 'cd', 'ef', 'g', 'h'])
    await statement(4).resolve()
    await statement(5).resolve()
    expect(settled).toEqual([...'ABCDEFGH'])
  })

  test('requests above the in-flight limit share the next statement, in order, up to `maxBatchSize`', async () => {
    const { send, executed, statement, settled } = setUp()
    await send('a', 'b', 'c', 'd', 'e', 'f')
    await send('g')
    expect(executed()).toEqual(['a', 'b'])
    await statement(1).resolve()
    expect(executed()).toEqual(['a', 'b', 'cde'])
    await send('h')
    expect(executed()).toHaveLength(3)
    await statement(2).resolve()
    expect(executed()).toEqual(['a', 'b', 'cde', 'fgh'])
    await statement(3).resolve()
    await statement(0).resolve()
    expect(settled).toEqual(['B', 'C', 'D', 'E', 'F', 'G', 'H', 'A'])
    await send('i')
    expect(executed()).toHaveLength(5)
    await statement(4).resolve()
  })

  test.each([
    [1, 1],
    [2, 3],
    [4, 100],
  ])(
    'limits of %i statements and %i requests hold, and each of 500 requests gets its own result',
    async (maxInFlight, maxBatchSize) => {
      let inFlight = 0
      let busiest = 0
      let largest = 0
      const call = createBatcher<number, number>({
        execute: async requests => {
          inFlight += 1
          busiest = Math.max(busiest, inFlight)
          largest = Math.max(largest, requests.length)
          for (let i = 0; i < requests.length % 7; i += 1) await Promise.resolve()
          inFlight -= 1
          return requests.map(request => -request)
        },
        maxInFlight,
        maxBatchSize,
        slowMs: SLOW_MS,
        timeoutMs: TIMEOUT_MS,
      })
      const requests = Array.from({ length: 500 }, (_, i) => i + 1)
      const results = Promise.all(requests.map(request => call(request)))
      await vi.advanceTimersByTimeAsync(0)
      expect(await results).toEqual(requests.map(request => -request))
      expect([busiest, largest]).toEqual([maxInFlight, maxBatchSize])
    },
  )

  test('null and undefined are valid results', async () => {
    const options = { maxInFlight: 1, maxBatchSize: 2, slowMs: SLOW_MS, timeoutMs: TIMEOUT_MS }
    const results = Promise.all(
      [null, undefined].map(value => createBatcher({ ...options, execute: async () => [value] })('a')),
    )
    await vi.advanceTimersByTimeAsync(0)
    expect(await results).toEqual([null, undefined])
  })
})

describe('failures', () => {
  const unavailable = new TimeoutError('unavailable')

  test('an unavailable database fails the whole batch, no other batch, and releases its slot', async () => {
    const { send, executed, statement, settled } = setUp({ maxInFlight: 1 })
    await send('a', 'b', 'c', 'd', 'e')
    await statement(0).reject(unavailable)
    expect(settled).toEqual(['a: unavailable'])
    await statement(1).reject(unavailable)
    expect(settled).toEqual(['a: unavailable', 'b: unavailable', 'c: unavailable', 'd: unavailable'])
    await statement(2).resolve()
    expect(settled.at(-1)).toBe('E')
    expect(executed()).toEqual(['a', 'bcd', 'e'])
  })

  test.each(['57014', '40P01', '55P03', '53300'])('SQLSTATE %s: no request is executed again', async code => {
    const { send, executed, statement, settled } = setUp({ maxInFlight: 1 })
    await send('a', 'b', 'c')
    await statement(0).resolve()
    await statement(1).reject(serverError(code))
    expect(settled).toEqual(['A', `b: rejected ${code}`, `c: rejected ${code}`])
    expect(executed()).toEqual(['a', 'bc'])
  })

  test('after a rejected batch, each request is executed alone, in order, and only the invalid one fails', async () => {
    const { send, executed, statement, settled } = setUp({ maxInFlight: 1 })
    await send('a', 'b', 'c', 'd', 'e')
    await statement(0).resolve()
    await statement(1).reject(serverError('22P05'))
    await statement(2).resolve()
    await statement(3).reject(serverError('22P05'))
    await statement(4).resolve()
    await statement(5).resolve()
    expect(settled).toEqual(['A', 'B', 'c: rejected 22P05', 'D', 'E'])
    expect(executed()).toEqual(['a', 'bcd', 'b', 'c', 'd', 'e'])
  })

  test.each([
    ['fewer results', ['B']],
    ['more results', ['B', 'C', 'D']],
  ])('%s than requests: the batch fails and is not executed again', async (_, results) => {
    const { send, executed, statement, settled } = setUp({ maxInFlight: 1 })
    await send('a', 'b', 'c')
    await statement(0).resolve()
    await statement(1).resolve(results)
    const message = `2 requests, ${results.length} results`
    expect(settled).toEqual(['A', `b: ${message}`, `c: ${message}`])
    expect(executed()).toEqual(['a', 'bc'])
  })

  test('a synchronous throw fails the batch and releases its slot', async () => {
    const execute = vi.fn((): Promise<string[]> => {
      throw new Error('at once')
    })
    const { send, settled } = setUp({ maxInFlight: 1, execute })
    await send('a', 'b')
    expect(settled).toEqual(['a: at once', 'b: at once'])
    expect(execute).toHaveBeenCalledTimes(2)
  })
})

describe('slow statements', () => {
  test('a slow statement releases its slot once and still returns its results', async () => {
    const { send, executed, statement, settled } = setUp()
    await send('a', 'b', 'c', 'd')
    await vi.advanceTimersByTimeAsync(SLOW_MS - 1)
    expect(executed()).toEqual(['a', 'b'])
    await vi.advanceTimersByTimeAsync(1)
    // The first released slot takes the whole queue; the second stays free.
    expect(executed()).toEqual(['a', 'b', 'cd'])
    await send('e', 'f')
    expect(executed()).toEqual(['a', 'b', 'cd', 'e'])
    // Both slots were released before: no third statement starts beside the two.
    await statement(0).resolve()
    await statement(1).resolve()
    expect(executed()).toHaveLength(4)
    await statement(2).resolve()
    expect(executed()).toEqual(['a', 'b', 'cd', 'e', 'f'])
    await statement(3).resolve()
    await statement(4).resolve()
    expect(settled).toEqual(['A', 'B', 'C', 'D', 'E', 'F'])
  })

  test('two statements that hang delay the others by `slowMs` at most', async () => {
    const { send, statement, settled } = setUp()
    await send('locked', 'locked', 'free')
    await vi.advanceTimersByTimeAsync(SLOW_MS)
    await statement(2).resolve()
    expect(settled).toEqual(['FREE'])
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    expect(settled.slice(1)).toEqual([
      expect.stringContaining('locked: no answer'),
      expect.stringContaining('no answer'),
    ])
    await statement(0).resolve()
    await statement(1).resolve()
  })

  test('the timeout runs from the call; a request that times out in the queue is never executed', async () => {
    const { send, executed, statement, settled } = setUp({ maxInFlight: 1, slowMs: 2 * TIMEOUT_MS })
    await send('a')
    await vi.advanceTimersByTimeAsync(1_000)
    await send('b')
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS - 1_000)
    expect(settled).toEqual([`a: no answer within ${TIMEOUT_MS} ms`])
    await vi.advanceTimersByTimeAsync(999)
    expect(settled).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(settled).toEqual([settled[0], `b: no answer within ${TIMEOUT_MS} ms`])
    await send('c')
    await statement(0).resolve()
    expect(executed()).toEqual(['a', 'c'])
    // A late result is ignored.
    await statement(1).resolve()
    expect(settled.slice(2)).toEqual(['C'])
  })

  test('of a rejected batch, requests that timed out are not executed again and do not block others', async () => {
    const { send, executed, statement, settled } = setUp({ maxInFlight: 1, slowMs: 10 * TIMEOUT_MS })
    await send('a', 'b', 'c', 'd')
    await statement(0).resolve()
    await statement(1).reject(serverError('22P05'))
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    await send('e')
    expect(settled).toHaveLength(4)
    await statement(2).reject(new TimeoutError('unavailable'))
    expect(executed()).toEqual(['a', 'bcd', 'b', 'e'])
    await statement(3).resolve()
    expect(settled.at(-1)).toBe('E')
  })

  test('10,000 requests to a database that hangs: few statements are sent, and every request times out in time', async () => {
    const { sendInOneTurn, executed, settled } = setUp({ maxBatchSize: 100 })
    await sendInOneTurn(...Array.from({ length: 10_000 }, (_, i) => `n${i}`))
    expect(executed()).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(TIMEOUT_MS)
    expect(settled).toHaveLength(10_000)
    expect(executed().length).toBeLessThanOrEqual((2 * TIMEOUT_MS) / SLOW_MS)
  })
})

describe('requests for one row', () => {
  /** A request is its rows. */
  test.each<[title: string, queue: string, busy: string, batch: string, rest: string]>([
    ['different rows', 'a b c', '', 'a b c', ''],
    ['at most as many as fit', 'a b c d', '', 'a b c', 'd'],
    ['the second for a row waits', 'a a b', '', 'a b', 'a'],
    ['a busy row waits', 'a b', 'a', 'b', 'a'],
    ['one of several rows is busy', 'ak b', 'k', 'b', 'ak'],
    ['behind one that waits, in its order', 'ak k b', 'a', 'b', 'ak k'],
    ['a name and a key are rows', 'ak bk c', '', 'ak c', 'bk'],
    ['every row is busy', 'a b', 'ab', '', 'a b'],
  ])('%s', (_, queue, busy, ...expected) => {
    const items = queue.split(' ').map(text => ({ text, rows: [...text] }))
    const { batch, rest } = splitQueue(items, row => busy.includes(row), 3)
    expect([batch, rest].map(part => part.map(({ text }) => text).join(' '))).toEqual(expected)
  })

  test('are executed one after the other, also behind a slow statement; others do not wait', async () => {
    const { sendInOneTurn, statement, executed, settled } = setUp({}, request => [request.charAt(0)])
    await sendInOneTurn('a1', 'a2', 'b1')
    expect(executed()).toEqual(['a1b1'])
    await vi.advanceTimersByTimeAsync(SLOW_MS)
    await sendInOneTurn('c1', 'a3')
    expect(executed()).toEqual(['a1b1', 'c1'])
    for (const index of [1, 0, 2, 3]) await statement(index).resolve()
    expect(settled).toEqual(['C1', 'A1', 'B1', 'A2', 'A3'])
    expect(executed()).toEqual(['a1b1', 'c1', 'a2', 'a3'])
  })
})

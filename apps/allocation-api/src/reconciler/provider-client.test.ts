import { describe, expect, test } from 'vitest'
import type { ReadResult, Unavailable, WantedRecords, ZonePart } from '../dns/domain/result.ts'
import {
  afterFailure,
  type CircuitBreaker,
  CLOSED,
  msUntilRetry,
  openMs,
  ProviderClient,
  type ProviderClientOptions,
} from './provider-client.ts'

describe('the circuit breaker', () => {
  const fail = (breaker: CircuitBreaker, now: number, retryAfterMs?: number) =>
    afterFailure(breaker, { now, retryAfterMs, random: 0.5 })

  /** Each failure happens when the pause of the previous one ends. */
  const failuresInARow = (count: number): CircuitBreaker => {
    let breaker = CLOSED
    for (let i = 0; i < count; i += 1) breaker = fail(breaker, breaker.retryAt)
    return breaker
  }

  test.each([
    { failures: 1, pause: 500, isOpen: false },
    { failures: 2, pause: 1_000, isOpen: false },
    { failures: 3, pause: 2_000, isOpen: true },
    { failures: 4, pause: 4_000, isOpen: true },
    { failures: 5, pause: 8_000, isOpen: true },
    { failures: 6, pause: 10_000, isOpen: true },
    { failures: 60, pause: 10_000, isOpen: true },
  ])('$failures consecutive failures: $pause ms until the next call, open: $isOpen', ({ failures, pause, isOpen }) => {
    const before = failuresInARow(failures - 1).retryAt
    const breaker = failuresInARow(failures)
    expect(msUntilRetry(breaker, before)).toBe(pause)
    expect(openMs(breaker, before)).toBe(isOpen ? pause : 0)
    expect(openMs(breaker, breaker.retryAt)).toBe(0)
  })

  test('calls that fail at the same time count once', () => {
    let breaker = CLOSED
    for (let i = 0; i < 16; i += 1) breaker = fail(breaker, 1_000 + i)
    expect(breaker).toEqual(fail(CLOSED, 1_000))
  })

  test.each([
    { what: 'longer than the backoff', retryAfterMs: 90_000, openForMs: 90_000 },
    { what: 'shorter than the backoff', retryAfterMs: 100, openForMs: 500 },
    { what: 'limited to one hour', retryAfterMs: 10 ** 9, openForMs: 3_600_000 },
  ])('Retry-After opens the circuit: $what', ({ retryAfterMs, openForMs }) => {
    expect(openMs(fail(CLOSED, 0, retryAfterMs), 0)).toBe(openForMs)
  })

  test('Retry-After of a later failure of the same outage extends the pause', () => {
    const breaker = fail(fail(CLOSED, 0), 100, 90_000)
    expect(openMs(breaker, 100)).toBe(90_000)
    expect(breaker.failures).toBe(1)
  })

  test('the backoff has a jitter of a fifth either way', () => {
    expect(afterFailure(CLOSED, { now: 0, random: 0 }).retryAt).toBeCloseTo(400)
    expect(afterFailure(CLOSED, { now: 0, random: 1 }).retryAt).toBeCloseTo(600)
  })
})

const none: ReadResult = { kind: 'read', records: [] }
const down: ReadResult = { kind: 'unavailable', reason: 'It is down.' }
const zoneDown: ReadResult = { kind: 'unavailable', reason: 'There is no such zone.', scope: 'zone' }

/** A lock that does not end. */
const held = { remainingMs: () => 1 }

const everything: WantedRecords = { names: [], branches: ['pool.test'] }

/** A client of a fake provider whose responses and clock the test controls. */
const createFixture = (
  zone: (signal?: AbortSignal) => AsyncGenerator<ZonePart | Unavailable, void> = async function* () {},
  more: Partial<ProviderClientOptions['provider']> = {},
) => {
  const requests: PromiseWithResolvers<ReadResult>[] = []
  const outcomes: string[] = []
  const errors: unknown[] = []
  const circuit: string[] = []
  const clock = { now: 0 }
  const client = new ProviderClient({
    provider: {
      read: () => {
        const response = Promise.withResolvers<ReadResult>()
        requests.push(response)
        return response.promise
      },
      readZone: (_zone, signal) => zone(signal),
      apply: async () => ({ kind: 'applied', rejected: [{ name: 'x', reason: 'no' }] }),
      ...more,
    },
    writesZones: true,
    tracer: null,
    timeoutMs: 50,
    now: () => clock.now,
    random: () => 0.5,
    observer: {
      onProviderCall: (operation, outcome) => void outcomes.push(`${operation} ${outcome}`),
      onCircuitOpened: reason => void circuit.push(`opened: ${reason}`),
      onCircuitClosed: openSeconds => void circuit.push(`closed after ${openSeconds} s`),
      onError: (_, error) => void errors.push(error),
    },
  })
  const read = () => client.read('pool.test', everything)
  /** The result of a read to which the provider responds with `response`; `not called` if the circuit is open. */
  const readWith = async (response: ReadResult) => {
    const before = requests.length
    const result = read()
    if (requests.length === before) return 'not called'
    requests.at(-1)?.resolve(response)
    return result
  }
  return { client, requests, outcomes, errors, circuit, clock, read, readWith }
}

describe('the provider client', () => {
  test('returns a response and reports the call', async () => {
    const { client, readWith, outcomes } = createFixture()
    expect(await readWith(none)).toEqual(none)
    await client.apply('pool.test', [], held)
    expect(outcomes).toEqual(['read done', 'apply rejected'])
  })

  test('a call that hangs is unavailable after the timeout', async () => {
    const { read, outcomes } = createFixture()
    expect(await read()).toEqual({
      kind: 'unavailable',
      reason: 'The DNS provider did not answer within 0.05 s.',
      retryAfterMs: 500,
    })
    expect(outcomes).toEqual(['read unavailable'])
  })

  const part: ZonePart = { kind: 'part', records: [] }
  const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

  test('a read of a zone may take longer than the timeout while parts arrive, and the caller takes its time', async () => {
    const { client, outcomes } = createFixture(async function* () {
      for (let i = 0; i < 4; i += 1) {
        await pause(25)
        yield part
      }
    })
    const parts: ZonePart[] = []
    const result = await client.readZone('pool.test', async one => {
      await pause(60)
      parts.push(one)
    })
    expect(result).toBeNull()
    expect(parts).toHaveLength(4)
    expect(outcomes).toEqual(['read done'])
  })

  test('a zone whose parts stop is unavailable, and its transfer is aborted', async () => {
    let isAborted = false
    const { client, outcomes } = createFixture(async function* (signal) {
      yield part
      await new Promise(resolve => signal?.addEventListener('abort', resolve))
      isAborted = true
      yield part
    })
    expect(await client.readZone('pool.test', async () => {})).toMatchObject({ kind: 'unavailable', retryAfterMs: 500 })
    expect(outcomes).toEqual(['read unavailable'])
    await expect.poll(() => isAborted).toBe(true)
  })

  test('an error of the caller is the caller’s, and ends the transfer', async () => {
    let isEnded = false
    const { client, errors } = createFixture(async function* () {
      try {
        for (;;) yield part
      } finally {
        isEnded = true
      }
    })
    const failing = client.readZone('pool.test', async () => {
      throw new Error('the database is gone')
    })
    await expect(failing).rejects.toThrow('the database is gone')
    expect(isEnded).toBe(true)
    expect(errors).toEqual([])
    expect(client.isCircuitOpen()).toBe(false)
  })

  test('a throw is reported, its text is not in the result, and the circuit stays closed', async () => {
    const { read, requests, errors, client } = createFixture()
    const result = read()
    requests[0]?.reject(new Error('key=secret'))
    expect(await result).toMatchObject({ kind: 'unavailable', scope: 'zone' })
    expect(JSON.stringify(await result)).not.toContain('secret')
    expect(errors).toHaveLength(1)
    expect(client.isCircuitOpen()).toBe(false)
  })

  test('a synchronous throw is treated the same', async () => {
    const errors: unknown[] = []
    const throws = (): never => {
      throw new Error('key=secret')
    }
    const client = new ProviderClient({
      provider: { read: throws, readZone: throws, apply: throws },
      writesZones: true,
      tracer: null,
      timeoutMs: 50,
      now: () => 0,
      random: () => 0.5,
      observer: {
        onProviderCall() {},
        onCircuitOpened() {},
        onCircuitClosed() {},
        onError: (_, error) => void errors.push(error),
      },
    })
    for (const result of [await client.read('pool.test', everything), await client.apply('pool.test', [], held)]) {
      expect(result).toMatchObject({ kind: 'unavailable', scope: 'zone' })
    }
    expect(errors).toHaveLength(2)
  })

  test('three failures open the circuit; half-open it lets one call through, whose success closes it', async () => {
    const { readWith, clock, client, requests, read } = createFixture()
    for (const at of [0, 500, 1_500]) {
      clock.now = at
      expect(await readWith(down)).toMatchObject({ kind: 'unavailable', reason: 'It is down.' })
    }
    clock.now = 2_000
    expect(client.isCircuitOpen()).toBe(true)
    expect(await read()).toEqual({
      kind: 'unavailable',
      reason: 'It is down. Next attempt in 2 s.',
      retryAfterMs: 1_500,
    })
    expect(requests).toHaveLength(3)
    clock.now = 3_500
    const halfOpen = read()
    expect(requests).toHaveLength(4)
    expect(await read()).toMatchObject({ kind: 'unavailable', retryAfterMs: 500 })
    expect(requests).toHaveLength(4)
    requests[3]?.resolve(none)
    expect(await halfOpen).toEqual(none)
    const both = [read(), read()]
    expect(requests).toHaveLength(6)
    for (const request of requests.slice(4)) request.resolve(none)
    await Promise.all(both)
  })

  test('a failure of the half-open call opens the circuit for longer', async () => {
    const { readWith, clock } = createFixture()
    for (const at of [0, 500, 1_500, 3_500]) {
      clock.now = at
      await readWith(down)
    }
    clock.now = 7_499
    expect(await readWith(none)).toBe('not called')
    clock.now = 7_500
    expect(await readWith(none)).toEqual(none)
  })

  test('the circuit counts as open, and is reported, from the failure that opens it until a call succeeds', async () => {
    const { readWith, clock, circuit, client } = createFixture()
    const states: boolean[] = []
    for (const [at, response] of [
      [0, down],
      [500, down],
      [1_500, { ...down, reason: 'It is still down.' }],
      [3_500, down],
      [20_000, none],
      [20_001, none],
    ] as const) {
      clock.now = at
      states.push(client.isCircuitOpen())
      await readWith(response)
    }
    expect(states).toEqual([false, false, false, true, true, false])
    expect(circuit).toEqual(['opened: It is still down.', 'closed after 18.5 s'])
  })

  test('failures of one zone do not open the circuit', async () => {
    const { readWith } = createFixture()
    for (let i = 0; i < 10; i += 1) expect(await readWith(zoneDown)).toEqual(zoneDown)
    expect(await readWith(none)).toEqual(none)
  })

  const ended = { kind: 'unavailable', scope: 'zone', isTransient: true, reason: expect.stringMatching(/lock ended/) }

  test('a write is not made after the end of the lock, and one in flight is aborted; neither is a failure of the provider', async () => {
    const lock = { ms: 0 }
    const signals: AbortSignal[] = []
    const apply = (_zone: string, _changes: unknown, signal: AbortSignal) => {
      signals.push(signal)
      lock.ms = 0
      return new Promise<never>(() => {})
    }
    const { client, readWith, clock } = createFixture(undefined, { apply })
    const write = () => client.apply('pool.test', [], { remainingMs: () => lock.ms })
    for (const at of [0, 500, 1_500]) {
      clock.now = at
      await readWith(down)
    }
    clock.now = 3_500
    expect(await write()).toEqual(ended)
    expect(signals).toEqual([])
    lock.ms = 1
    expect(await write()).toEqual(ended)
    expect(signals.map(signal => signal.aborted)).toEqual([true])
    // Half-open, as before.
    expect(client.isCircuitOpen()).toBe(true)
    expect(await readWith(none)).toEqual(none)
  })

  test('failures and timeouts of the database do not open the circuit of a provider whose records are in it', async () => {
    const { client, read, readWith, clock, circuit } = createFixture(undefined, { isDatabase: true })
    for (let i = 0; i < 5; i += 1) {
      clock.now += 60_000
      const result = i % 2 ? await readWith(down) : await read()
      // Of the provider, and not of one zone.
      expect(result).toEqual({ kind: 'unavailable', reason: expect.any(String), retryAfterMs: 1_000 })
    }
    expect(client.isDown()).toBe(false)
    expect(circuit).toEqual([])
    expect(await readWith(none)).toEqual(none)
  })

  test('a success resets the count of consecutive failures', async () => {
    const { readWith, clock, client } = createFixture()
    for (const response of [down, down, none, down, down]) {
      clock.now += 10_000
      await readWith(response)
    }
    expect(client.isCircuitOpen()).toBe(false)
  })

  test('Retry-After opens the circuit at the first failure', async () => {
    const { readWith, clock } = createFixture()
    expect(await readWith({ ...down, retryAfterMs: 90_000 })).toMatchObject({ retryAfterMs: 90_000 })
    clock.now = 89_999
    expect(await readWith(none)).toBe('not called')
    clock.now = 90_000
    expect(await readWith(none)).toEqual(none)
  })

  test('the success of a call that was in flight when others failed closes the circuit', async () => {
    const { readWith, clock, read, requests, client } = createFixture()
    const slow = read()
    for (const at of [0, 500, 1_500]) {
      clock.now = at
      await readWith(down)
    }
    expect(client.isCircuitOpen()).toBe(true)
    requests[0]?.resolve(none)
    await slow
    expect(client.isCircuitOpen()).toBe(false)
  })
})

import { getEventListeners } from 'node:events'
import { setImmediate as quiet } from 'node:timers/promises'
import type { Deployment } from '@pool/contract'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Notifier, type TailEvent, tailLog } from './deployment-log.ts'
import type { StoredLogLine } from './domain/types.ts'

const linesTo = (last: number): StoredLogLine[] =>
  Array.from({ length: last }, (_, at) => ({
    seq: at + 1,
    at: new Date(at),
    phase: 'apply',
    level: 'info',
    message: `line ${at + 1}`,
  }))
const deployment = (status: Deployment['status']): Deployment => ({
  id: '00000000-0000-4000-8000-000000000001',
  status,
  startedAt: '2026-01-31T12:00:00.000Z',
  finishedAt: null,
  orgName: 'Acme',
  sovereignFQDN: 'acme.pool.test',
  providers: ['local'],
  region: 'fsn1',
  objectStorageRegion: '',
  objectStorageBucket: '',
  numEvents: 0,
})
const toText = (event: TailEvent) => {
  if (event === 'idle') return event
  return 'kind' in event ? event.deployment.status : `${event.at(0)?.seq}-${event.at(-1)?.seq}`
}

/** A deployment that changes only by the test. `calls` lists the calls of the repository and the notifier. */
const createTail = (lines = 0, status: Deployment['status'] | null = 'provisioning') => {
  const state = { lines, status, nowMs: 0, calls: [] as string[], waits: [] as ((isNotified: boolean) => void)[] }
  const hooks = { onLines: () => {} }
  const options = {
    repository: {
      find: async () => {
        state.calls.push('read')
        return state.status && deployment(state.status)
      },
      readLog: async (_: string, after: number, limit: number) => {
        state.calls.push(`lines ${after}`)
        const page = linesTo(state.lines).filter(({ seq }) => seq > after)
        hooks.onLines()
        return page.slice(0, limit)
      },
    },
    notifier: {
      wait: (_: string, ms: number) => {
        state.calls.push(`wait ${ms}`)
        const { promise, resolve } = Promise.withResolvers<boolean>()
        state.waits.push(resolve)
        return promise
      },
    },
    pollMs: 1_000,
    idleMs: 2_500,
    now: () => state.nowMs,
  }
  const start = (id: string, after: number, signal: AbortSignal) => tailLog(options, id, after, signal)
  const reader = new AbortController()
  const events: string[] = []
  /** Reads all events until the generator waits. */
  const run = async (after = 0) => {
    const outcome = await start('id', after, reader.signal)
    if (outcome.kind !== 'following') return { kind: outcome.kind, over: Promise.resolve() }
    const over = (async () => {
      for await (const event of outcome.events) events.push(toText(event))
    })()
    over.catch(() => {})
    await quiet()
    return { kind: outcome.kind, over }
  }
  const waited = () => state.calls.filter(call => call.startsWith('wait')).map(call => Number(call.slice(5)))
  /** Ends the wait, after its whole time if it is not notified. */
  const next = async (isNotified: boolean) => {
    if (!isNotified) state.nowMs += waited().at(-1) ?? 0
    state.waits.at(-1)?.(isNotified)
    await quiet()
  }
  return { state, hooks, reader, events, run, next, start, waited }
}

test('a deployment that does not exist is not found', async () => {
  expect((await createTail(0, null).run()).kind).toBe('not-found')
})

describe('the log of a finished deployment', () => {
  test.each(['ready', 'failed'] as const)('all lines, then done, without waiting: %s', async status => {
    const { state, events, run } = createTail(3, status)
    await (await run()).over
    expect(events).toEqual(['1-3', status])
    expect(state.calls).toEqual(['read', 'wait 1000', 'read', 'lines 0'])
  })

  test.each<readonly [lines: number, after: number, events: readonly string[]]>([
    [450, 0, ['1-200', '201-400', '401-450']],
    [450, 49, ['50-249', '250-449', '450-450']],
    [200, 0, ['1-200']],
    [3, 3, []],
    [3, 9, []],
    [0, 0, []],
  ])('%i lines, after line %i: pages %j', async (lines, after, pages) => {
    const { events, run } = createTail(lines, 'ready')
    await (await run(after)).over
    expect(events).toEqual([...pages, 'ready'])
  })
})

describe('the log of a deployment in progress', () => {
  test('lines arrive as they are written, and done after the last one', async () => {
    const { state, events, run, next } = createTail(1)
    const { over } = await run()
    expect(events).toEqual(['1-1'])
    state.lines = 2
    await next(true)
    state.lines = 3
    await next(false)
    expect(events).toEqual(['1-1', '2-2', '3-3'])
    Object.assign(state, { lines: 5, status: 'failed' })
    await next(true)
    await over
    expect(events).toEqual(['1-1', '2-2', '3-3', '4-5', 'failed'])
  })

  test('a deployment that ends between the two reads is done only after its last lines', async () => {
    const { state, hooks, events, run, next } = createTail(1)
    hooks.onLines = () => Object.assign(state, { lines: 2, status: 'ready' })
    const { over } = await run()
    expect(events).toEqual(['1-1'])
    await next(true)
    await over
    expect(events).toEqual(['1-1', '2-2', 'ready'])
  })

  test('a notification during the read is not missed', async () => {
    const { state, hooks, events, run } = createTail(1)
    hooks.onLines = () => {
      hooks.onLines = () => {}
      state.lines = 2
      state.waits.at(-1)?.(true)
    }
    await run()
    expect(events).toEqual(['1-1', '2-2'])
  })

  test('a removed deployment ends the stream without done', async () => {
    const { state, events, run, next } = createTail(1)
    const { over } = await run()
    state.status = null
    await next(true)
    await over
    expect(events).toEqual(['1-1'])
  })
})

test('idle after idleMs of silence; a line restarts that time, and a notification without a line does not', async () => {
  const { state, events, run, next, waited } = createTail()
  await run()
  for (const isNotified of [false, true, false, false]) await next(isNotified)
  expect(events).toEqual(['idle'])
  expect(waited()).toEqual([1_000, 1_000, 1_000, 500, 1_000])
  await next(false)
  state.lines = 1
  for (const isNotified of [false, false, false]) await next(isNotified)
  expect(events).toEqual(['idle', '1-1'])
  await next(false)
  expect(events).toEqual(['idle', '1-1', 'idle'])
})

test('the time of slow reads counts as silence', async () => {
  const { state, hooks, events, run, next } = createTail()
  hooks.onLines = () => {
    state.nowMs += 1_500
  }
  await run()
  await next(true)
  expect(events).toEqual([])
  await next(true)
  expect(events).toEqual(['idle'])
})

describe('an abort ends the stream', () => {
  test('during a wait', async () => {
    const { state, reader, events, run, next } = createTail()
    const { over } = await run()
    reader.abort()
    await next(false)
    await over
    expect(events).toEqual([])
    expect(state.calls).toEqual(['read', 'wait 1000', 'read', 'lines 0'])
  })

  test('between two pages, without another read', async () => {
    const { state, hooks, reader, events, run } = createTail(500)
    hooks.onLines = () => {
      if (state.calls.includes('lines 200')) reader.abort()
    }
    await (await run()).over
    expect(events).toEqual(['1-200'])
    expect(state.calls.at(-1)).toBe('lines 200')
  })

  test('before the first event is consumed', async () => {
    const { state, reader, events, run } = createTail(500)
    reader.abort()
    await (await run()).over
    expect(events).toEqual([])
    expect(state.calls).toEqual(['read'])
  })
})

test('nothing is read until the last page is consumed', async () => {
  const { state, start, reader } = createTail(500)
  const outcome = await start('id', 0, reader.signal)
  expect(state.calls).toEqual(['read'])
  if (outcome.kind !== 'following') throw new Error(outcome.kind)
  await outcome.events[Symbol.asyncIterator]().next()
  await quiet()
  expect(state.calls.at(-1)).toBe('lines 0')
})

test('a database error reaches the consumer of the events', async () => {
  const { hooks, run, next } = createTail()
  const { over } = await run()
  hooks.onLines = () => {
    throw new Error('away')
  }
  await next(true)
  await expect(over).rejects.toThrow('away')
})

describe('the notifier', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const never = new AbortController().signal

  test('a notification wakes every waiter of the deployment, and none of another one', async () => {
    const notifier = new Notifier()
    const [first, second] = [notifier.wait('a', 1_000, never), notifier.wait('a', 1_000, never)]
    const other = notifier.wait('b', 1_000, never)
    notifier.notify('a')
    expect(await Promise.all([first, second])).toEqual([true, true])
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(1_000)
    expect(await other).toBe(false)
    expect(getEventListeners(never, 'abort')).toEqual([])
  })

  test('a notification without waiters is not stored', async () => {
    const notifier = new Notifier()
    notifier.notify('a')
    const late = notifier.wait('a', 1_000, never)
    vi.advanceTimersByTime(999)
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await late).toBe(false)
  })

  test('a wait ends when the signal aborts, and leaves nothing behind', async () => {
    const notifier = new Notifier()
    const reader = new AbortController()
    const waiting = notifier.wait('a', 1_000, reader.signal)
    reader.abort()
    expect(await waiting).toBe(false)
    expect(await notifier.wait('a', 1_000, reader.signal)).toBe(false)
    expect(vi.getTimerCount()).toBe(0)
    notifier.notify('a')
  })

  test('a waiter that waits again is woken only by the next notification', async () => {
    const notifier = new Notifier()
    const first = notifier.wait('a', 1_000, never)
    notifier.notify('a')
    const second = notifier.wait('a', 1_000, never)
    expect(await first).toBe(true)
    expect(vi.getTimerCount()).toBe(1)
    notifier.notify('a')
    expect(await second).toBe(true)
  })
})

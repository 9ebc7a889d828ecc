import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate as quiet } from 'node:timers/promises'
import type { Deployment } from '@pool/contract'
import { listen } from '@pool/runtime/service/http-server'
import { until } from '@pool/test-kit/poll.ts'
import { afterEach, describe, expect, test } from 'vitest'
import type { TailEvent } from '../../src/deployments/deployment-log.ts'
import type { StoredLogLine } from '../../src/deployments/domain/types.ts'
import { parseEvents } from '../support/events.ts'
import { createAppWithFakeDeployments, sendRequest } from '../support/fake-services-app.ts'
import { expectContract } from '../support/validate.ts'

const id = '0a000000-0000-4000-8000-00000000000b'
const path = `/api/v1/deployments/${id}/logs`
const deployment: Deployment = {
  id,
  status: 'ready',
  startedAt: '2026-01-31T12:00:00.000Z',
  finishedAt: '2026-01-31T12:10:00.000Z',
  orgName: 'Acme',
  sovereignFQDN: 'acme.pool.test',
  providers: ['local'],
  region: 'fsn1',
  objectStorageRegion: '',
  objectStorageBucket: '',
  numEvents: 2,
}
const line = (seq: number, message = `line ${seq}`): StoredLogLine => ({
  seq,
  at: new Date(Date.UTC(2026, 0, 31, 12, 0, seq)),
  phase: 'apply',
  level: 'info',
  message,
})
const toData = (seq: number, message = `line ${seq}`) =>
  `{"time":"2026-01-31T12:00:0${seq}.000Z","phase":"apply","level":"info","message":${JSON.stringify(message)}}`

type Parts = (signal: AbortSignal, after: number) => AsyncIterable<TailEvent>
const aborted = (signal: AbortSignal) => new Promise<void>(done => signal.addEventListener('abort', () => done()))

/** An app whose streams send the events that the test yields. `open` counts the streams in progress. */
const createTestApp = (parts: Parts, options: Parameters<typeof createAppWithFakeDeployments>[1] = {}) => {
  const counts = { open: 0, followed: 0 }
  const testApp = createAppWithFakeDeployments(
    {
      tailLog: async (_, after, signal) => {
        counts.followed += 1
        return {
          kind: 'following',
          events: (async function* () {
            counts.open += 1
            try {
              yield* parts(signal, after)
            } finally {
              counts.open -= 1
            }
          })(),
        }
      },
    },
    options,
  )
  return { ...testApp, counts }
}

async function* twoLines(): AsyncGenerator<TailEvent> {
  yield [line(1), line(2)]
  yield 'idle'
  yield { kind: 'done', deployment }
}
async function* oneLineThenSilence(signal: AbortSignal): AsyncGenerator<TailEvent> {
  yield [line(1)]
  await aborted(signal)
}

describe('the stream', () => {
  test('its text and its headers', async () => {
    const { app, counts, outcomes } = createTestApp(twoLines)
    const response = await sendRequest(app, path)
    const text = await response.text()
    expect(text).toBe(
      [
        'retry: 1000\n\n',
        `id: 1\ndata: ${toData(1)}\n\n`,
        `id: 2\ndata: ${toData(2)}\n\n`,
        ': idle\n\n',
        `event: done\ndata: ${JSON.stringify(deployment)}\n\n`,
      ].join(''),
    )
    expectContract('GET', path, { status: response.status, headers: response.headers, text })
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    })
    expect([counts.open, outcomes]).toEqual([0, ['following']])
  })

  test.each(['a\nb', 'a\r\nb\rc', 'a\n\ndata: forged\nid: 99\n\n', '\u2028', ': a', 'é\u{1f600}'])(
    'a browser reads the message %j as it was written',
    async message => {
      const { app } = createTestApp(async function* () {
        yield [line(1, message)]
      })
      const events = parseEvents(await (await sendRequest(app, path)).text())
      expect(events).toEqual([{ name: 'message', lastEventId: '1', data: toData(1, message) }])
      expect(JSON.parse(events[0]?.data ?? '').message).toBe(message)
    },
  )

  test.each([
    [undefined, 0],
    ['', 0],
    ['17', 17],
  ])('continues after Last-Event-ID %j', async (lastId, expected) => {
    const seen: number[] = []
    const { app } = createTestApp(async function* (_, after) {
      seen.push(after)
      yield { kind: 'done', deployment }
    })
    await (await sendRequest(app, path, { headers: lastId === undefined ? {} : { 'Last-Event-ID': lastId } })).text()
    expect(seen).toEqual([expected])
  })

  test('an invalid Last-Event-ID is rejected and occupies no stream', async () => {
    const { app, counts } = createTestApp(twoLines, { maxStreams: 1 })
    const response = await sendRequest(app, path, { headers: { 'Last-Event-ID': 'x' } })
    const text = await response.text()
    expectContract('GET', path, { status: response.status, headers: response.headers, text })
    expect([response.status, JSON.parse(text).error, counts.followed]).toEqual([422, 'invalid-cursor', 0])
    expect((await sendRequest(app, path)).status).toBe(200)
  })

  test('HEAD has its headers and no body, and occupies no stream', async () => {
    const { app, counts } = createTestApp(twoLines, { maxStreams: 1 })
    for (let times = 0; times < 3; times += 1) {
      const response = await sendRequest(app, path, { method: 'HEAD' })
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
      expect(await response.text()).toBe('')
    }
    expect([counts.followed, counts.open]).toEqual([3, 0])
  })
})

describe('the limit of streams', () => {
  test('is 503 until a stream ends', async () => {
    const { app } = createTestApp(oneLineThenSilence, { maxStreams: 2 })
    const [first] = await Promise.all([sendRequest(app, path), sendRequest(app, path)])
    const third = await sendRequest(app, path)
    const answer = { status: third.status, headers: third.headers, text: await third.text() }
    expectContract('GET', path, answer)
    expect([third.status, JSON.parse(answer.text).error]).toEqual([503, 'provisioning-unavailable'])
    expect(third.headers.get('retry-after')).toBe('5')
    await first.body?.cancel()
    expect((await sendRequest(app, path)).status).toBe(200)
    expect((await sendRequest(app, path)).status).toBe(503)
  })

  test('is 100 by default', async () => {
    const { app } = createTestApp(oneLineThenSilence)
    const statuses = await Promise.all(Array.from({ length: 101 }, async () => (await sendRequest(app, path)).status))
    expect(statuses.filter(status => status === 200)).toHaveLength(100)
  })

  test.each(['not-found', 'error'] as const)('does not count a stream that did not start: %s', async kind => {
    const { app } = createAppWithFakeDeployments(
      {
        tailLog: async () => {
          if (kind === 'error') throw new Error('away')
          return { kind }
        },
      },
      { maxStreams: 1 },
    )
    const statuses = [await sendRequest(app, path), await sendRequest(app, path)].map(({ status }) => status)
    expect(statuses).toEqual(kind === 'error' ? [503, 503] : [404, 404])
    expect(await (await sendRequest(app, path)).json()).toMatchObject({
      error: kind === 'error' ? 'database-unavailable' : 'not-found',
    })
  })
})

describe('when the service stops', () => {
  test('streams end immediately with all stored lines and without `done`, even if the database hangs; new ones are rejected', async () => {
    const { app, stopping } = createTestApp(async function* () {
      yield [line(1)]
      await new Promise(() => {})
    })
    const text = (await sendRequest(app, path)).text()
    await quiet()
    stopping.abort()
    expect(await text).toBe(`retry: 1000\n\nid: 1\ndata: ${toData(1)}\n\n`)
    expect((await sendRequest(app, path)).status).toBe(503)
  })

  test('a stream that is about to start ends too', async () => {
    const { app, stopping } = createAppWithFakeDeployments({
      tailLog: async () => {
        stopping.abort()
        return { kind: 'following', events: twoLines() }
      },
    })
    expect(await (await sendRequest(app, path)).text()).toBe('')
  })
})

describe('over a socket', () => {
  /** How long a close waits for open connections: until the timeout of the test, which would fail. */
  const LONGER_THAN_THE_TEST_MS = 600_000
  const closers: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })
  const serve = async (parts: Parts, options: Parameters<typeof createAppWithFakeDeployments>[1] = {}) => {
    const testApp = createTestApp(parts, options)
    const server = await listen(testApp.app, 0, { malformedRequestCode: 'invalid-format' })
    closers.push(() => server.close(0))
    return { ...testApp, server }
  }
  /** A client that stops reading once the buffers are full. */
  const stuckReader = async (port: number) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.pause()
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    closers.push(async () => void socket.destroy())
    await once(socket, 'connect')
    return socket
  }
  const endless = () => {
    const made = { parts: 0 }
    const message = 'x'.repeat(65_536)
    const parts: Parts = async function* () {
      for (;;) {
        made.parts += 1
        yield [line(1, message)]
        await quiet()
      }
    }
    const waitUntilStalled = async () => {
      let last = -1
      await until('no more events are read', async () => {
        const before = last
        last = made.parts
        for (let tick = 0; tick < 50; tick += 1) await quiet()
        return last > 0 && before === last && made.parts === last
      })
      return made.parts
    }
    return { parts, waitUntilStalled, made }
  }

  test.each([
    ['fail', 'SELECT secret', { errors: [['Error: SELECT secret', 'broken']], aborted: [] }],
    ['are unavailable with the database', 'away', { errors: [], aborted: [['Error: away', 'broken']] }],
  ])(
    'a stream whose events %s is aborted, so that no client mistakes it for a complete one',
    async (_, message, expected) => {
      const received = Promise.withResolvers<void>()
      const { server, errors, aborted, counts, app } = await serve(
        async function* () {
          yield [line(1)]
          await received.promise
          throw new Error(message)
        },
        { maxStreams: 1 },
      )
      const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { 'X-Request-Id': 'broken' } })
      let text = ''
      const rest = (async () => {
        for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          text += part
          if (text.includes('id: 1')) received.resolve()
        }
      })()
      await expect(rest).rejects.toThrow()
      expect(text).toContain('id: 1')
      expect(text).not.toMatch(/SELECT|away|event: done/)
      expect({ errors, aborted }).toEqual(expected)
      expect(counts.open).toBe(0)
      expect((await sendRequest(app, path)).status).toBe(200)
    },
  )

  test('a disconnected client ends its stream', async () => {
    const { server, counts } = await serve(oneLineThenSilence)
    const client = new AbortController()
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { signal: client.signal })
    await response.body?.getReader().read()
    expect(counts.open).toBe(1)
    client.abort()
    await until('its stream has ended', () => counts.open === 0)
  })

  test('nothing is buffered for a client that does not read; its disconnect is detected', async () => {
    const { parts, waitUntilStalled, made } = endless()
    const { server, counts } = await serve(parts)
    const socket = await stuckReader(server.port)
    expect(await waitUntilStalled()).toBeLessThan(400)
    const before = made.parts
    socket.resume()
    await until('reading continues', () => made.parts > before + 10)
    socket.destroy()
    await until('its stream has ended', () => counts.open === 0)
  })

  test('a client that does not read for too long is aborted', async () => {
    const { parts } = endless()
    const { server, counts } = await serve(parts, { stallTimeoutMs: 100 })
    await stuckReader(server.port)
    await until('it is open', () => counts.open === 1)
    await until('its stream has ended', () => counts.open === 0)
    await server.close(LONGER_THAN_THE_TEST_MS)
  })

  test('a stop does not wait for streams, whether their clients read or not', async () => {
    const { parts, waitUntilStalled } = endless()
    const { server, stopping } = await serve(parts)
    await stuckReader(server.port)
    await waitUntilStalled()
    stopping.abort()
    await server.close(LONGER_THAN_THE_TEST_MS)
  })
})

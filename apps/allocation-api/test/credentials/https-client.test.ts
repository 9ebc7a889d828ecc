import '@pool/test-kit/ceph/storage-names.ts'
import { once } from 'node:events'
import { timed } from '@pool/test-kit/poll.ts'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createHttpsGet } from '../../src/credentials/https-client.ts'
import {
  type ConnectionHandler,
  hang,
  makeIdentities,
  overTls,
  startScriptedServer,
  toHttpResponse,
} from '../support/credentials.ts'

const identities = await makeIdentities()
const server = await startScriptedServer()
afterAll(() => Promise.all([server.close(), identities.remove()]))

const DEADLINE_MS = 150
const get = createHttpsGet({ deadlineMs: DEADLINE_MS, extraCa: identities.ca })
const patient = createHttpsGet({ deadlineMs: 10_000, extraCa: identities.ca })
const url = new URL(`https://fsn1.storage.test:${server.port}/path?query`)
const over = (act: Parameters<typeof overTls>[1]) => overTls(identities.good, act)

/** Resolves when the client has closed the connection. */
let closed: Promise<unknown>
const respondWith = (handler: ConnectionHandler) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  closed = promise
  server.respondWith(socket => {
    socket.once('close', () => resolve())
    // Without a reader the close would not be detected.
    if (handler === hang) socket.resume()
    handler(socket)
  })
}

describe('one deadline covers the whole request and closes the connection', () => {
  const rows: readonly (readonly [where: string, handler: ConnectionHandler])[] = [
    ['TLS', hang],
    ['the answer', over(() => {})],
    ['the header fields', over(socket => void socket.write('HTTP/1.1 200 OK\r\nA: b\r\n'))],
    ['the body', over(socket => void socket.write(toHttpResponse(200, 'half').slice(0, -2)))],
    ['interim answers', over(socket => void drip(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'))],
    ['a body in drops', over(socket => drip(socket, 'HTTP/1.1 200 OK\r\n\r\n', '.'))],
  ]
  test.each(rows)('it hangs in %s', async (_, handler) => {
    respondWith(handler)
    const { result, ms } = await timed(() => get(url, {}))
    expect(result).toEqual({ kind: 'failed', cause: 'timeout' })
    expect(ms).toBeGreaterThan(DEADLINE_MS - 10)
    expect(ms).toBeLessThan(DEADLINE_MS + 15_000)
    await closed
  })

  test('it hangs in the DNS lookup', async () => {
    const { result, ms } = await timed(() => get(new URL('https://fsn1.silent.test/'), {}))
    expect(result).toEqual({ kind: 'failed', cause: 'timeout' })
    expect(ms).toBeLessThan(DEADLINE_MS + 15_000)
  })
})

/** Writes every few milliseconds, so that an idle timeout would never fire. */
const drip = (socket: Parameters<Parameters<typeof overTls>[1]>[0], first: string, then = first) => {
  socket.write(first)
  const timer = setInterval(() => socket.write(then), 20)
  socket.on('close', () => clearInterval(timer))
}

test('an abort ends the request immediately', async () => {
  const caller = new AbortController()
  const requested = Promise.withResolvers<void>()
  respondWith(over(() => requested.resolve()))
  const answer = patient(url, {}, caller.signal)
  await requested.promise
  caller.abort()
  expect(await answer).toEqual({ kind: 'failed', cause: 'aborted' })
  await closed
  expect(await patient(url, {}, caller.signal)).toEqual({ kind: 'failed', cause: 'aborted' })
})

describe('trust', () => {
  const answers = over(socket => void socket.end(toHttpResponse(200, 'body')))
  beforeEach(() => respondWith(answers))

  test('an extra CA is trusted only by the client that it is configured for', async () => {
    expect(await patient(url, {})).toEqual({ kind: 'response', status: 200, body: Buffer.from('body') })
    const other = createHttpsGet({ deadlineMs: 10_000, extraCa: null })
    expect(await other(url, {})).toEqual({ kind: 'failed', cause: 'tls' })
  })

  test('the environment cannot disable verification', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0'
    try {
      respondWith(overTls(identities.unknownCa, socket => void socket.end(toHttpResponse(200))))
      expect(await patient(url, {})).toEqual({ kind: 'failed', cause: 'tls' })
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED
    }
  })
})

test('it is a GET without a body on a new connection', async () => {
  let requestHead = ''
  respondWith(
    over((socket, head) => {
      requestHead = head
      socket.write(toHttpResponse(200, 'body'))
    }),
  )
  const before = server.count()
  await patient(url, { 'X-Key': 'value' })
  await closed
  await patient(url, { 'X-Key': 'value' })
  expect(server.count() - before).toBe(2)
  expect(requestHead.split('\r\n').filter(Boolean).sort()).toEqual([
    'Connection: close',
    'GET /path?query HTTP/1.1',
    `Host: fsn1.storage.test:${server.port}`,
    'X-Key: value',
  ])
})

test('a body of 1 MiB is accepted, and one byte more is not', async () => {
  const send = async (bytes: number) => {
    respondWith(
      over(async socket => {
        socket.end(toHttpResponse(200, ' '.repeat(bytes)))
        await once(socket, 'close')
      }),
    )
    return patient(url, {})
  }
  expect(await send(1_024 * 1_024)).toMatchObject({ kind: 'response', status: 200 })
  expect(await send(1_024 * 1_024 + 1)).toEqual({ kind: 'failed', cause: 'too-large' })
})

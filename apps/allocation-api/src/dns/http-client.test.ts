import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { parseRetryAfter, requestJson } from './http-client.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')

describe('Retry-After', () => {
  test.each<readonly [header: string | null, ms: number | undefined]>([
    [null, undefined],
    ['', undefined],
    ['0', 0],
    ['1', 1_000],
    [' 120 ', 120_000],
    ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
    ['Sat, 21 Nov 2026 11:59:00 GMT', 0],
    ['-1', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['2026-11-21T12:00:30Z', undefined],
    ['99999999999', undefined],
  ])('%j', (header, ms) => {
    expect(parseRetryAfter(header, NOW)).toBe(ms)
  })
})

const SECRET = 'secret-0123456789'

const serve = async (listener: RequestListener) => {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const url = new URL(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/api?key=${SECRET}`)
  return {
    url,
    [Symbol.dispose]: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const never = () => AbortSignal.timeout(10_000)

describe('a request', () => {
  test('sends the method, headers and JSON, and returns the status and JSON', async () => {
    using server = await serve(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const { method, headers } = request
      response.writeHead(422, { 'Retry-After': '7' })
      const body = JSON.parse(Buffer.concat(chunks).toString())
      response.end(JSON.stringify({ method, key: headers['x-api-key'], type: headers['content-type'], body }))
    })
    const httpRequest = {
      url: server.url,
      method: 'PATCH',
      headers: { 'X-API-Key': SECRET },
      body: { a: ['ü'] },
    } as const
    expect(await requestJson(httpRequest, never())).toEqual({
      kind: 'answered',
      status: 422,
      retryAfterMs: 7_000,
      body: { method: 'PATCH', key: SECRET, type: 'application/json', body: { a: ['ü'] } },
    })
  })

  test.each(['', '<html>', '{"a":'])('a body that is not JSON: %j', async text => {
    using server = await serve((_, response) => response.end(text))
    expect(await requestJson({ url: server.url }, never())).toEqual({ kind: 'answered', status: 200, body: undefined })
  })

  test('a redirect is returned and not followed', async () => {
    let requests = 0
    using server = await serve((_, response) => {
      requests += 1
      response.writeHead(302, { Location: '/elsewhere' }).end()
    })
    expect(await requestJson({ url: server.url }, never())).toMatchObject({ kind: 'answered', status: 302 })
    expect(requests).toBe(1)
  })

  test.each<readonly [what: string, listener: RequestListener, reason: RegExp]>([
    ['a connection that is reset', request => void request.socket.resetAndDestroy(), /could not be reached/],
    [
      'a truncated body',
      (_, response) => {
        response.writeHead(200, { 'Content-Length': '100' }).write('{')
        setImmediate(() => response.destroy())
      },
      /could not be reached/,
    ],
  ])('%s: unavailable, without the URL', async (_, listener, reason) => {
    using server = await serve(listener)
    const result = await requestJson({ url: server.url, headers: { Authorization: SECRET } }, never())
    expect(result).toMatchObject({ kind: 'unavailable', reason: expect.stringMatching(reason) })
    expect(JSON.stringify(result)).not.toContain(SECRET)
  })

  test('no listener: unavailable, with the error code and without the URL', async () => {
    const free = createTcpServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const address = free.address()
    const port = typeof address === 'object' ? address?.port : 0
    free.close()
    await once(free, 'close')
    const result = await requestJson({ url: new URL(`http://127.0.0.1:${port}/?key=${SECRET}`) }, never())
    expect(result).toEqual({ kind: 'unavailable', reason: 'The DNS provider could not be reached (ECONNREFUSED).' })
  })

  test('no response before the timeout: unavailable', async () => {
    using server = await serve(() => {})
    const result = await requestJson({ url: server.url }, AbortSignal.timeout(50))
    expect(result).toEqual({ kind: 'unavailable', reason: 'The DNS provider did not answer in time.' })
  })

  test('a response that is too large is not read to its end', async () => {
    const piece = Buffer.alloc(1_024 * 1_024, ' ')
    using server = await serve((_, response) => {
      const more = () => {
        while (response.write(piece));
      }
      response.on('drain', more)
      more()
    })
    const result = await requestJson({ url: server.url }, never())
    expect(result).toEqual({
      kind: 'unavailable',
      reason: 'The response of the DNS provider is too large.',
      scope: 'zone',
    })
  })
})

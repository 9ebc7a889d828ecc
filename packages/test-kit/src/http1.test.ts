import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { encodeRequest, HttpConnection, type ParseOptions, parseResponse } from './http1.ts'

const parse = (text: string, options: ParseOptions = {}) => parseResponse(Buffer.from(text), options)

test.each([
  ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 200, 'ok'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n', 200, 'ok!'],
  ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n', 204, ''],
  ['HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n', 304, ''],
])('%j is parsed once its last byte is there', (text, status, body) => {
  const parsed = parse(text)
  expect(parsed.kind === 'response' && [parsed.response.status, parsed.response.text, parsed.end]).toEqual([
    status,
    body,
    text.length,
  ])
  for (let cut = 0; cut < text.length; cut += 1) expect(parse(text.slice(0, cut)).kind).toBe('incomplete')
})

test.each([
  ['no status line', 'hello\r\n\r\n', false, 'malformed'],
  ['a malformed header', 'HTTP/1.1 200 OK\r\nbad\r\n\r\n', false, 'malformed'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n', false, 'malformed'],
  ['a malformed length', 'HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n\r\n', false, 'malformed'],
  ['a malformed chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', false, 'malformed'],
  ['half a head', 'HTTP/1.1 200', true, 'truncated'],
  ['half a body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab', true, 'truncated'],
] as const)('not a response: %s', (_, text, isEnded, kind) => {
  expect(parse(text, { isEnded }).kind).toBe(kind)
})

test('the end of the connection ends a body without a length', () => {
  const text = 'HTTP/1.1 200 OK\r\n\r\nrest'
  expect(parse(text).kind).toBe('incomplete')
  const parsed = parse(text, { isEnded: true })
  expect(parsed.kind === 'response' && [parsed.response.text, parsed.response.isLast]).toEqual(['rest', true])
})

test('a request is encoded with Host and framing', () => {
  expect(encodeRequest({ method: 'PUT', path: '/a', headers: ['X: \u00ff'], body: 'abc' }).toString('latin1')).toBe(
    'PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nX: \u00ff\r\n\r\nabc',
  )
  expect(encodeRequest({ path: '/', headers: ['Host: h'], body: 'abc', chunked: true }).toString('latin1')).toBe(
    'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: h\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
  )
})

test('pipelined responses are read in order, then the end of the connection', async () => {
  const server = createServer(socket => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  using connection = await HttpConnection.open(Object(server.address()).port)
  expect((await connection.send('HEAD / HTTP/1.1\r\n\r\n', { isHead: false })).text).toBe('a')
  expect((await connection.read()).status).toBe(204)
  await expect(connection.read()).rejects.toMatchObject({ kind: 'truncated' })
  expect(connection.isOpen).toBe(false)
  server.close()
})

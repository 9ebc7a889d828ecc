import { once } from 'node:events'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { encodeChunks, HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { type Service, startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { temporaryDirectory } from './support/witness.ts'

const KIB = 1_024
const MAX_BODY_BYTES = 64 * KIB

const directory = temporaryDirectory()
let witness: Service

beforeAll(async () => {
  witness = await startLocalWitness(directory.path)
})

afterAll(async () => {
  await witness?.process.stop()
  directory[Symbol.dispose]()
})

/** The head of a request, with the token of the tests or another Authorization (null: none). */
const head = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>> = {},
  authorization: string | null = `Bearer ${TOKEN}`,
): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'Host: witness.test',
    ...(authorization === null ? [] : [`Authorization: ${authorization}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n')

const FRAMINGS = ['Content-Length', 'chunked'] as const
type Framing = (typeof FRAMINGS)[number]

const frame = (framing: Framing, body: Buffer): { headers: Record<string, string | number>; bytes: Buffer } =>
  framing === 'chunked'
    ? { headers: { 'Transfer-Encoding': 'chunked' }, bytes: encodeChunks(body) }
    : { headers: { 'Content-Length': body.length }, bytes: body }

interface Request {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly authorization?: string | null
}

const sendBody = (connection: HttpConnection, request: Request, framing: Framing, body: Buffer) => {
  const { method, path, headers = {}, authorization } = request
  const framed = frame(framing, body)
  connection.write(head(method, path, { ...headers, ...framed.headers }, authorization))
  connection.write(framed.bytes)
}

/** Sends another request and expects its response, and no other bytes, on the connection. */
const expectUsable = async (connection: HttpConnection) => {
  const response = await connection.send(head('GET', '/leases?limit=1'))
  expect(response.status).toBe(200)
  expect(JSON.parse(response.text)).toMatchObject({ consistency: 'eventual' })
  expect(connection.unread).toBe('')
}

const expectProblem = (response: HttpResponse, status: number, error: string) => {
  expect({ status: response.status, body: JSON.parse(response.text) }).toMatchObject({ status, body: { error } })
}

const rejected: [string, number, string, Request][] = [
  ['no token', 401, 'unauthorized', { method: 'PUT', path: '/lease/early', authorization: null }],
  ['a wrong token', 401, 'unauthorized', { method: 'DELETE', path: '/lease/early', authorization: 'Bearer wrong' }],
  ['an unknown path', 404, 'not-found', { method: 'PUT', path: '/nowhere' }],
  ['a wrong method', 405, 'method-not-allowed', { method: 'POST', path: '/lease/early' }],
  ['no If-Match', 400, 'missing-if-match', { method: 'PUT', path: '/lease/early' }],
  ['an invalid slot', 400, 'invalid-slot', { method: 'PUT', path: '/lease/%ff', headers: { 'If-Match': '0' } }],
  ['an invalid body', 400, 'invalid-json', { method: 'PUT', path: '/lease/early', headers: { 'If-Match': '0' } }],
]

const isDecidedByHead = (error: string): boolean =>
  ['unauthorized', 'not-found', 'method-not-allowed', 'invalid-slot'].includes(error)

const cases = rejected.flatMap(([what, status, error, request]) =>
  FRAMINGS.flatMap(framing =>
    [3, MAX_BODY_BYTES, 900 * KIB].map(size => ({ what, status, error, request, framing, size })),
  ),
)

test.each(cases)('$what, $framing, $size bytes: the connection stays usable', async row => {
  const { status, error, request, framing, size } = row
  using connection = await HttpConnection.open(witness.port)
  for (let n = 0; n < 2; n += 1) {
    sendBody(connection, request, framing, Buffer.alloc(size, 'x'))
    const response = await connection.read()
    // What the head decides does not depend on the body.
    if (size > MAX_BODY_BYTES && !isDecidedByHead(error)) expectProblem(response, 413, 'body-too-large')
    else expectProblem(response, status, error)
    await expectUsable(connection)
  }
})

test.each([
  ['Content-Length', 1_500 * KIB],
  ['chunked', 1_500 * KIB],
  ['Content-Length', 8_000 * KIB],
  ['chunked', 8_000 * KIB],
] as const)('the 413 to a very large body arrives: %s, %i bytes', async (framing, size) => {
  using connection = await HttpConnection.open(witness.port)
  sendBody(connection, { method: 'PUT', path: '/lease/huge' }, framing, Buffer.alloc(size, 'x'))
  expectProblem(await connection.read(), 413, 'body-too-large')
  using next = await HttpConnection.open(witness.port)
  await expectUsable(next)
})

test.each([
  [3, 400, 'invalid-json'],
  [200 * KIB, 413, 'body-too-large'],
] as const)('chunked framing overrides a Content-Length of 5: %i bytes', async (size, status, error) => {
  using connection = await HttpConnection.open(witness.port)
  const { headers, bytes } = frame('chunked', Buffer.alloc(size, 'x'))
  connection.write(head('PUT', '/lease/framed-twice', { 'Content-Length': 5, ...headers, 'If-Match': '0' }))
  connection.write(bytes)
  expectProblem(await connection.read(), status, error)
})

test.each(FRAMINGS)('a slow body is read to its end: %s', async framing => {
  using connection = await HttpConnection.open(witness.port)
  const { headers, bytes } = frame(framing, Buffer.from(JSON.stringify({ holder: 'slow', ttlSeconds: 60 })))
  connection.write(head('PUT', `/lease/slow-${framing}`, { ...headers, 'If-Match': '0' }))
  for (let start = 0; start < bytes.length; start += 12) {
    connection.write(bytes.subarray(start, start + 12))
    await endOfTurn()
  }
  const response = await connection.read()
  expect(JSON.parse(response.text)).toMatchObject({ holder: 'slow', generation: 1 })
  await expectUsable(connection)
})

test('Expect: 100-continue', async () => {
  using connection = await HttpConnection.open(witness.port)
  const body = '{"holder":"careful"}'
  const headers = { 'If-Match': '0', Expect: '100-continue', 'Content-Length': body.length }
  connection.write(head('PUT', '/lease/careful', headers))
  const interim = await connection.read({ withInterim: true, timeoutMs: 1_000 }).catch(() => undefined)
  if (interim) expect(interim.status).toBe(100)
  connection.write(body)
  const response = await connection.read()
  expect(JSON.parse(response.text)).toMatchObject({ holder: 'careful', generation: 1 })
  await expectUsable(connection)
})

test('pipelined requests are answered in order', async () => {
  using connection = await HttpConnection.open(witness.port)
  const body = '{"holder":"piped"}'
  const put = (generation: number) =>
    head('PUT', '/lease/piped', { 'If-Match': generation, 'Content-Length': body.length }) + body
  connection.write(
    [
      put(0),
      head('HEAD', '/lease/piped'),
      put(1),
      head('PUT', '/lease/piped', { 'Content-Length': 3 }, null),
      'xyz',
      head('DELETE', '/lease/piped', { 'If-Match': 2, 'X-Holder': 'piped' }),
      head('GET', '/lease/piped', { 'If-None-Match': '3' }),
      head('GET', '/lease/piped'),
    ].join(''),
  )
  const responses: HttpResponse[] = []
  for (const isHead of [false, true, false, false, false, false, false]) {
    responses.push(await connection.read({ isHead }))
  }
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 401, 204, 304, 200])
  expect(responses.map(({ headers }) => headers.get('etag'))).toEqual([
    '"1"',
    '"1"',
    '"2"',
    undefined,
    '"3"',
    '"3"',
    '"3"',
  ])
  expect(JSON.parse(responses[6]?.text ?? '')).toMatchObject({ holder: '', generation: 3 })
  expect(connection.unread).toBe('')
})

test('a response that must not have a body has none', async () => {
  using connection = await HttpConnection.open(witness.port)
  const put = head('PUT', '/lease/bare', { 'If-Match': 0, 'X-Holder': 'bare', 'Content-Length': 0 })
  expect((await connection.send(put)).status).toBe(200)
  const requests: [string, number][] = [
    [head('HEAD', '/lease/bare'), 200],
    [head('HEAD', '/lease/never'), 404],
    [head('HEAD', '/lease/bare', {}, null), 401],
    [head('GET', '/lease/bare', { 'If-None-Match': '"1"' }), 304],
    [head('OPTIONS', '/lease/bare', {}, null), 204],
    [head('DELETE', '/lease/bare', { 'If-Match': 1, 'X-Holder': 'bare' }), 204],
  ]
  for (const [request, status] of requests) {
    expect((await connection.send(request)).status).toBe(status)
    // The client would parse an unexpected body as the next response.
    await expectUsable(connection)
  }
})

test.each(['FIN', 'RST'] as const)('a body that %s interrupts has no effect', async how => {
  const partial = head('PUT', '/lease/broken', { 'If-Match': 0, 'X-Holder': 'broken', 'Content-Length': 1_000 })
  for (const text of [
    partial,
    `${partial}{"hol`,
    partial.replace('Content-Length: 1000', 'Transfer-Encoding: chunked'),
  ]) {
    using connection = await HttpConnection.open(witness.port)
    const closed = once(connection.socket, 'close')
    await new Promise(resolve => connection.socket.write(text, resolve))
    if (how === 'FIN') connection.socket.end()
    else connection.socket.resetAndDestroy()
    await closed
  }
  using next = await HttpConnection.open(witness.port)
  expectProblem(await next.send(head('GET', '/lease/broken')), 404, 'not-found')
})

test.each<readonly [what: string, bytes: string]>([
  ['not an HTTP request', 'hello\r\n\r\n'],
  [
    'a chunk without a size',
    `${head('PUT', '/lease/g', { 'If-Match': 0, 'Transfer-Encoding': 'chunked' })}zz\r\nxx\r\n`,
  ],
  ['a Content-Length that is not a number', head('PUT', '/lease/g', { 'If-Match': 0, 'Content-Length': 'many' })],
  ...['-1', '+5', '5, 5', '99999999999999999999', ''].map(
    length =>
      [`the Content-Length "${length}"`, head('PUT', '/lease/g', { 'If-Match': 0, 'Content-Length': length })] as const,
  ),
  ...['gzip', 'chunked, chunked', '\x0bchunked'].map(
    coding =>
      [
        `the transfer coding ${JSON.stringify(coding)}`,
        `${head('PUT', '/lease/g', { 'If-Match': 0, 'Transfer-Encoding': coding })}2\r\n{}\r\n0\r\n\r\n`,
      ] as const,
  ),
  ['a negative chunk', `${head('PUT', '/lease/g', { 'If-Match': 0, 'Transfer-Encoding': 'chunked' })}-5\r\n{}abc\r\n`],
  ['a header field without a colon', head('GET', '/lease/g').replace('\r\n\r\n', '\r\nno colon\r\n\r\n')],
  ['a header field with NUL', head('GET', '/lease/g', { 'X-Nul': 'a\0b' })],
  ['a method with a bracket', head('G(T', '/lease/g')],
  ['a space in the path', head('GET', '/lease/a b')],
  ['an unknown version of HTTP', head('GET', '/lease/g').replace('HTTP/1.1', 'HTTP/9.9')],
  ['a TLS handshake', '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a head that is too large', head('GET', '/lease/g', { 'X-Large': 'x'.repeat(300 * KIB) })],
])('%s: a 4xx or the end of the connection', async (_what, bytes) => {
  using connection = await HttpConnection.open(witness.port)
  connection.write(bytes)
  const response = await connection.read().catch(() => undefined)
  if (response) expect(Math.floor(response.status / 100)).toBe(4)
  else expect(connection.isOpen).toBe(false)
})

test.each(['%00', 'a b', '[::1', '127.0.0.1:99999', 'x/lease/y?z#', 'a@b'])(
  'an invalid Host is not an internal error: %j',
  async host => {
    using connection = await HttpConnection.open(witness.port)
    connection.write(`GET /leases?limit=1 HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
    const response = await connection.read()
    // A host is accepted if the URL can be parsed and its path is that of the request.
    if (response.status !== 200) expectProblem(response, 400, 'invalid-request')
    expect(response.headers.get('x-request-id')).toMatch(/./)
    if (/[%/@]/.test(host)) expect(response.status).toBe(400)
    await expectUsable(connection)
  },
)

test('none of these tests caused an internal error, and the witness still responds', async () => {
  using connection = await HttpConnection.open(witness.port)
  await expectUsable(connection)
  expect(witness.lines.filter(line => !line.includes('"msg":"ready"'))).toEqual([])
})

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { head, openRaw, type RawAnswer, type RawConnection } from './support/raw.ts'
import { type RunningWitness, startWitness, TOKEN, temporaryFolder } from './support/witness.ts'

const KIB = 1_024
const BODY_LIMIT = 64 * KIB

const folder = temporaryFolder()
let witness: RunningWitness

beforeAll(async () => {
  witness = await startWitness(folder.path)
})

afterAll(async () => {
  await witness?.process.stop()
  folder[Symbol.dispose]()
})

const framings = {
  'Content-Length': (body: Buffer) => [{ 'Content-Length': body.length }, [body]] as const,
  chunked: (body: Buffer) => {
    const pieces: Buffer[] = []
    for (let at = 0; at < body.length; at += 10_000) {
      const piece = body.subarray(at, at + 10_000)
      pieces.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n'))
    }
    return [{ 'Transfer-Encoding': 'chunked' }, [...pieces, Buffer.from('0\r\n\r\n')]] as const
  },
}
type Framing = keyof typeof framings

interface Request {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly authorization?: string | null
}

const send = (on: RawConnection, request: Request, framing: Framing, body: Buffer) => {
  const { method, path, headers = {}, authorization } = request
  const [frame, pieces] = framings[framing](body)
  on.write(head(method, path, { ...headers, ...frame }, authorization))
  for (const piece of pieces) on.write(piece)
}

/** A question with one right answer, on a connection that something has happened to before. */
const expectUsable = async (on: RawConnection) => {
  on.write(head('GET', '/leases?limit=1'))
  const answer = await on.answer()
  expect(answer.status).toBe(200)
  expect(JSON.parse(answer.text)).toMatchObject({ consistency: 'eventual' })
  expect(on.unread()).toBe('')
}

const expectProblem = (answer: RawAnswer, status: number, error: string) => {
  expect({ status: answer.status, body: JSON.parse(answer.text) }).toMatchObject({ status, body: { error } })
}

const early: [string, number, string, Request][] = [
  ['no token', 401, 'unauthorized', { method: 'PUT', path: '/lease/early', authorization: null }],
  ['a wrong token', 401, 'unauthorized', { method: 'DELETE', path: '/lease/early', authorization: 'Bearer wrong' }],
  ['an unknown path', 404, 'not-found', { method: 'PUT', path: '/nowhere' }],
  ['a wrong method', 405, 'method-not-allowed', { method: 'POST', path: '/lease/early' }],
  ['no If-Match', 400, 'missing-if-match', { method: 'PUT', path: '/lease/early' }],
  ['a bad slot', 400, 'invalid-slot', { method: 'PUT', path: '/lease/%ff', headers: { 'If-Match': '0' } }],
  ['a bad body', 400, 'invalid-json', { method: 'PUT', path: '/lease/early', headers: { 'If-Match': '0' } }],
]

const cases = early.flatMap(([what, status, error, request]) =>
  (['Content-Length', 'chunked'] as const).flatMap(framing =>
    [3, BODY_LIMIT, 200 * KIB, 900 * KIB].map(size => ({ what, status, error, request, framing, size })),
  ),
)

test.each(cases)('$what, $framing, $size bytes: the connection goes on', async row => {
  const { status, error, request, framing, size } = row
  using connection = await openRaw(witness.port)
  for (let n = 0; n < 2; n += 1) {
    send(connection, request, framing, Buffer.alloc(size, 'x'))
    const answer = await connection.answer()
    // Only who may write is told that a body is too large.
    if (size > BODY_LIMIT && status !== 401) expectProblem(answer, 413, 'body-too-large')
    else expectProblem(answer, status, error)
    await expectUsable(connection)
  }
})

test.each([
  ['Content-Length', 1_500 * KIB],
  ['chunked', 1_500 * KIB],
  ['Content-Length', 8_000 * KIB],
  ['chunked', 8_000 * KIB],
] as const)('a body far too large, %s, %i bytes: its 413 arrives', async (framing, size) => {
  using connection = await openRaw(witness.port)
  send(connection, { method: 'PUT', path: '/lease/huge' }, framing, Buffer.alloc(size, 'x'))
  const answer = await connection.answer()
  expectProblem(answer, 413, 'body-too-large')
  using next = await openRaw(witness.port)
  await expectUsable(next)
})

test.each([
  [3, 400, 'invalid-json'],
  [200 * KIB, 413, 'body-too-large'],
] as const)('a chunked body of %i bytes under a Content-Length of 5: its chunks count', async (size, status, error) => {
  using connection = await openRaw(witness.port)
  const [frame, pieces] = framings.chunked(Buffer.alloc(size, 'x'))
  connection.write(head('PUT', '/lease/framed-twice', { 'Content-Length': 5, ...frame, 'If-Match': '0' }))
  for (const piece of pieces) connection.write(piece)
  expectProblem(await connection.answer(), status, error)
})

test.each(['Content-Length', 'chunked'] as const)('a body that stalls, %s, is waited for', async framing => {
  using connection = await openRaw(witness.port)
  const body = Buffer.from(JSON.stringify({ holder: 'slow', ttlSeconds: 60 }))
  const [frame, pieces] = framings[framing](body)
  connection.write(head('PUT', `/lease/slow-${framing}`, { ...frame, 'If-Match': '0' }))
  const bytes = Buffer.concat(pieces)
  for (let at = 0; at < bytes.length; at += 12) {
    connection.write(bytes.subarray(at, at + 12))
    await sleep(200)
  }
  const answer = await connection.answer()
  expect(JSON.parse(answer.text)).toMatchObject({ holder: 'slow', generation: 1 })
  await expectUsable(connection)
})

test('Expect: 100-continue', async () => {
  using connection = await openRaw(witness.port)
  const body = '{"holder":"careful"}'
  const headers = { 'If-Match': '0', Expect: '100-continue', 'Content-Length': body.length }
  connection.write(head('PUT', '/lease/careful', headers))
  const first = await Promise.race([connection.answer(), sleep(1_000).then(() => undefined)])
  if (first) expect(first.status).toBe(100)
  connection.write(body)
  const last = await connection.answer()
  expect(JSON.parse(last.text)).toMatchObject({ holder: 'careful', generation: 1 })
  await expectUsable(connection)
})

test('pipelined requests are answered in their order', async () => {
  using connection = await openRaw(witness.port)
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
  const answers: RawAnswer[] = []
  for (const isHead of [false, true, false, false, false, false, false]) answers.push(await connection.answer(isHead))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 401, 204, 304, 200])
  expect(answers.map(({ headers }) => headers.get('etag'))).toEqual([
    '"1"',
    '"1"',
    '"2"',
    undefined,
    undefined,
    '"3"',
    '"3"',
  ])
  expect(JSON.parse(answers[6]?.text ?? '')).toMatchObject({ holder: '', generation: 3 })
  expect(connection.unread()).toBe('')
})

test('what must have no body has none', async () => {
  using connection = await openRaw(witness.port)
  const put = head('PUT', '/lease/bare', { 'If-Match': 0, 'X-Holder': 'bare', 'Content-Length': 0 })
  connection.write(put)
  expect((await connection.answer()).status).toBe(200)
  const questions: [string, number][] = [
    [head('HEAD', '/lease/bare'), 200],
    [head('HEAD', '/lease/never'), 404],
    [head('HEAD', '/lease/bare', {}, null), 401],
    [head('GET', '/lease/bare', { 'If-None-Match': '"1"' }), 304],
    [head('OPTIONS', '/lease/bare', {}, null), 204],
    [head('DELETE', '/lease/bare', { 'If-Match': 1, 'X-Holder': 'bare' }), 204],
  ]
  for (const [question, status] of questions) {
    connection.write(question)
    expect((await connection.answer(question.startsWith('HEAD'))).status).toBe(status)
    // A body that should not be there would be taken for the next answer.
    await expectUsable(connection)
  }
})

test.each(['FIN', 'RST'] as const)('bodies that are broken off by %s hurt nobody', async how => {
  const partial = head('PUT', '/lease/broken', { 'If-Match': 0, 'X-Holder': 'broken', 'Content-Length': 1_000 })
  for (const text of [
    partial,
    `${partial}{"hol`,
    partial.replace('Content-Length: 1000', 'Transfer-Encoding: chunked'),
  ]) {
    using connection = await openRaw(witness.port)
    connection.write(text)
    await sleep(50)
    if (how === 'FIN') connection.socket.end()
    else connection.socket.resetAndDestroy()
    await sleep(50)
  }
  using next = await openRaw(witness.port)
  next.write(head('GET', '/lease/broken'))
  expectProblem(await next.answer(), 404, 'not-found')
})

test.each([
  ['no request at all', 'hello\r\n\r\n'],
  [
    'a chunk without a size',
    `${head('PUT', '/lease/g', { 'If-Match': 0, 'Transfer-Encoding': 'chunked' })}zz\r\nxx\r\n`,
  ],
  ['a length that is no number', head('PUT', '/lease/g', { 'If-Match': 0, 'Content-Length': 'many' })],
  ['a head that is too large', head('GET', '/lease/g', { 'X-Large': 'x'.repeat(300 * KIB) })],
])('%s ends in a refusal, not in silence', async (_what, bytes) => {
  using connection = await openRaw(witness.port)
  connection.write(bytes)
  const answer = await connection.answer().catch(() => undefined)
  if (answer) expect(Math.floor(answer.status / 100)).toBe(4)
  else expect(connection.isEnded()).toBe(true)
})

test.each(['%00', 'a b', '[::1', '127.0.0.1:99999'])('a Host that is none, %j, is no error of ours', async host => {
  using connection = await openRaw(witness.port)
  connection.write(`GET /leases?limit=1 HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
  const answer = await connection.answer()
  // What still makes an address is taken: of it only path and query are looked at.
  if (answer.status !== 200) expectProblem(answer, 400, 'invalid-request')
  expect(answer.headers.get('x-request-id')).toMatch(/./)
  if (host === '%00') expect(answer.status).toBe(400)
  await expectUsable(connection)
})

test('nothing of all that was an error of ours, and it still answers', async () => {
  using connection = await openRaw(witness.port)
  await expectUsable(connection)
  expect(witness.lines.filter(line => !line.includes('"msg":"ready"'))).toEqual([])
})

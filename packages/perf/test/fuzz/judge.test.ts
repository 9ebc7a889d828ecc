import { openApiDocument } from 'allocation-api/src/http/routes/docs.ts'
import { describe, expect, test } from 'vitest'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { type Rules, violations } from '../../src/fuzz/oracle/oracle.ts'
import { leakIn, markPattern, uuidsIn } from '../../src/fuzz/oracle/secrets.ts'
import { createLeaseLedger, type NameEvent, namesGrantedTwice } from '../../src/fuzz/oracle/uniqueness.ts'
import { brokenOff, readAnswer } from '../../src/fuzz/wire/answer.ts'
import type { Outcome } from '../../src/fuzz/wire/connection.ts'
import type { FuzzRequest } from '../../src/fuzz/wire/request.ts'

const MARK = 'ZqSecretMark42xK'
const TOKEN = 'a3bb189e-8bf9-4c1a-9f3e-0123456789ab'
const rules: Rules = {
  document: readDocument(openApiDocument(), { problem: 'Problem' }),
  isExplained: code => code === 'database-unavailable',
  isPlatforms: () => false,
  mark: markPattern(MARK),
  isToken: uuid => uuid === TOKEN,
}
const check: FuzzRequest = {
  row: 'checkName',
  method: 'GET',
  target: '/api/v1/pool/pool.test/check?sub=a',
  headers: [],
}
const reserve: FuzzRequest = {
  row: 'reserveName',
  method: 'POST',
  target: '/api/v1/pool/pool.test/reserve',
  headers: [],
}
const json = { 'content-type': 'application/json', 'x-request-id': 'r1' }

const answered = (status: number, body: unknown, headers: Readonly<Record<string, string>> = json): Outcome => ({
  kind: 'answered',
  leftOver: 0,
  answer: {
    status,
    headers: new Map(Object.entries(headers)),
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    isLast: false,
  },
})
const reserved = {
  poolDomain: 'pool.test',
  subdomain: 'a',
  state: 'reserved',
  reservedAt: '2026-01-31T12:00:00.000Z',
  expiresAt: '2026-01-31T12:10:00.000Z',
  createdBy: '',
  reservationToken: TOKEN,
}

const good: readonly (readonly [string, FuzzRequest, Outcome])[] = [
  ['a documented answer', check, answered(200, { available: true, fqdn: 'a.pool.test' })],
  ['the token to who reserved', reserve, answered(201, reserved)],
  ['a documented error', reserve, answered(409, { error: 'conflict', detail: 'Taken.' })],
  ['a 503 that is explained', check, answered(503, { error: 'database-unavailable' })],
  ['no such path', { ...check, target: '/nowhere' }, answered(404, { error: 'not-found' })],
  ['a HEAD', { ...check, method: 'HEAD' }, answered(200, '')],
  ['an end without an answer to what is no request', { ...check, raw: Buffer.from('x') }, { kind: 'closed' }],
  ['a refusal of what is no request', { ...check, raw: Buffer.from('x') }, answered(400, { error: 'invalid-format' })],
]
test.each(good)('%s is as it has to be', (_, request, outcome) => {
  expect(violations(rules, request, outcome)).toEqual([])
})

const planted: readonly (readonly [string, RegExp, FuzzRequest, Outcome])[] = [
  [
    'a token in a refusal',
    /^secret: a reservation token/,
    reserve,
    answered(409, { error: 'conflict', reservationToken: TOKEN }),
  ],
  [
    'a defect',
    /^500 internal-error that nothing explains$/,
    check,
    answered(500, { error: 'internal-error', requestId: 'r1' }),
  ],
  [
    'a 503 that nothing explains',
    /^503 dns-unavailable that nothing explains$/,
    reserve,
    answered(503, { error: 'dns-unavailable' }),
  ],
  ['another 5xx of what is explained', /^502/, check, answered(502, { error: 'database-unavailable' })],
  ['a field that is not named', /outside its schema/, check, answered(200, { available: true, secret: 1 })],
  ['a field of another type', /outside its schema/, check, answered(200, { available: 'yes' })],
  ['a time of another form', /outside its schema/, reserve, answered(201, { ...reserved, expiresAt: 'tomorrow' })],
  ['no JSON', /no JSON/, check, answered(200, '{')],
  [
    'another media type',
    /Content-Type/,
    check,
    answered(200, { available: true }, { ...json, 'content-type': 'text/html' }),
  ],
  ['a status that is not documented', /not documented/, check, answered(202, { available: true })],
  [
    'a code that is documented elsewhere',
    /not documented here: token-mismatch/,
    reserve,
    answered(422, { error: 'token-mismatch' }),
  ],
  [
    'an error in another shape',
    /one shape/,
    { ...check, target: '/x' },
    answered(404, { error: 'not-found', stack: 'at x' }),
  ],
  ['a 405 without Allow', /without Allow/, { ...check, method: 'PUT' }, answered(405, { error: 'method-not-allowed' })],
  ['a 401 that does not say how', /WWW-Authenticate/, check, answered(401, { error: 'unauthorized' })],
  [
    'no request id',
    /no X-Request-Id/,
    check,
    answered(200, { available: true }, { 'content-type': 'application/json' }),
  ],
  ['a HEAD that no GET is like', /not documented/, { ...check, method: 'HEAD' }, answered(202, '')],
  ['nothing at all', /^stuck/, check, { kind: 'stuck' }],
  ['an end without an answer', /^closed/, check, { kind: 'closed' }],
  ['half an answer', /no HTTP/, check, { kind: 'broken', detail: brokenOff }],
  [
    'a body of a HEAD',
    /^HEAD with a body$/,
    { ...check, method: 'HEAD' },
    { ...answered(200, ''), leftOver: 5 } as Outcome,
  ],
  ['bytes after the answer', /^bytes after/, check, { ...answered(200, { available: true }), leftOver: 5 } as Outcome],
  ['a secret in a body', /^secret: a marked/, check, answered(200, { available: true, detail: MARK })],
  [
    'a secret in a header',
    /^secret: a marked/,
    check,
    answered(200, { available: true }, { ...json, 'x-debug': `a${MARK}b` }),
  ],
  ["somebody's token", /^secret: a reservation token/, check, answered(200, { available: true, detail: TOKEN })],
  ['the token told twice', /^secret: a reservation token/, reserve, answered(201, { ...reserved, createdBy: TOKEN })],
]
test.each(planted)('%s is found', (_, expected, request, outcome) => {
  const found = violations(rules, request, outcome)
  expect(
    found.some(fault => expected.test(fault)),
    found.join('; ') || 'nothing was found',
  ).toBe(true)
})

describe('a secret', () => {
  const bytes = [...Buffer.from(`x${MARK}y`)].map(byte => byte.toString(16).padStart(2, '0'))
  const b64 = (before: string) => Buffer.from(`${before}${MARK}after`).toString('base64')
  test.each([
    ['as it is', `key=${MARK};`],
    ['in small letters', MARK.toLowerCase()],
    ['percent-encoded', bytes.map(byte => `%${byte}`).join('')],
    ['as JSON escapes', bytes.map(byte => `\\u00${byte.toUpperCase()}`).join('')],
    ['in hex', bytes.join('')],
    ['in base64', b64('')],
    ['in base64, one letter later', b64('a')],
    ['in base64, two letters later', b64('ab')],
    ['in the URL for a database', `postgres://fuzz:DB${MARK}01@127.0.0.1/fuzz`],
  ])('%s is found', (_, text) => {
    expect(leakIn(rules, text)).toBe('a marked secret')
  })
  test('a token inside of base64 is found', () => {
    expect(uuidsIn(Buffer.from(`Basic ${TOKEN}!`).toString('base64'))).toContain(TOKEN)
    expect(leakIn(rules, `x ${Buffer.from(TOKEN).toString('base64url')} y`)).toBe('a reservation token')
  })
  test('other text is none', () => {
    expect(
      leakIn(rules, `{"requestId":"00000000-0000-4000-8000-000000000000","detail":"${MARK.slice(0, -1)}"}`),
    ).toBeNull()
  })
})

describe('names', () => {
  const event = (
    kind: NameEvent['kind'],
    name: string | null,
    token: string,
    sentAt: number,
    answeredAt: number,
  ): NameEvent => ({ kind, name, token, sentAt, answeredAt })
  test.each<readonly [string, readonly NameEvent[], readonly string[]]>([
    [
      'two grants in a row',
      [event('granted', 'a', '1', 0, 1), event('granted', 'a', '2', 2, 3)],
      ['a was granted twice'],
    ],
    [
      'freed in between',
      [event('granted', 'a', '1', 0, 1), event('freed', 'a', '', 1, 2), event('granted', 'a', '2', 2, 3)],
      [],
    ],
    [
      'freed, and known later',
      [event('granted', 'a', '1', 0, 1), event('granted', 'a', '2', 3, 4), event('freed', 'a', '', 2, 9)],
      [],
    ],
    [
      'freed before',
      [event('freed', 'a', '', 0, 1), event('granted', 'a', '1', 2, 3), event('granted', 'a', '2', 4, 5)],
      ['a was granted twice'],
    ],
    [
      'freed once, granted three times',
      [
        event('granted', 'a', '1', 0, 1),
        event('freed', 'a', '', 0, 9),
        event('granted', 'a', '2', 2, 3),
        event('granted', 'a', '3', 4, 5),
      ],
      ['a was granted twice'],
    ],
    ['the same grant told again', [event('granted', 'a', '1', 0, 1), event('granted', 'a', '1', 2, 3)], []],
    ['another name', [event('granted', 'a', '1', 0, 1), event('granted', 'b', '2', 2, 3)], []],
    [
      'nobody knows what was freed',
      [event('granted', 'a', '1', 0, 1), event('freed', null, '', 1, 2), event('granted', 'a', '2', 2, 3)],
      [],
    ],
  ])('%s', (_, events, expected) => {
    expect(namesGrantedTwice(events)).toEqual(expected)
  })
  test('a generation of a slot is granted once', () => {
    const ledger = createLeaseLedger()
    expect([ledger.granted('s', 1, 'a'), ledger.granted('s', 2, 'b'), ledger.granted('t', 1, 'b')]).toEqual([
      null,
      null,
      null,
    ])
    expect(ledger.granted('s', 2, 'c')).toBe('generation 2 of s was granted to b and to c')
  })
})

describe('answers', () => {
  const read = (text: string, method = 'GET', isEnded = false) => readAnswer(Buffer.from(text), method, isEnded)
  test.each([
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 200, 'ok'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n', 200, 'ok!'],
    ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n', 204, ''],
    ['HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n', 304, ''],
  ])('%j', (text, status, body) => {
    const got = read(text)
    expect(got.kind === 'answer' && [got.answer.status, got.answer.body.toString(), got.length]).toEqual([
      status,
      body,
      text.length,
    ])
    for (let cut = 0; cut < text.length; cut += 1) expect(read(text.slice(0, cut)).kind).toBe('more')
  })
  test.each([
    ['no status line', 'hello\r\n\r\n', false],
    ['a bad header', 'HTTP/1.1 200 OK\r\nbad\r\n\r\n', false],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n', false],
    ['a bad chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', false],
    ['half a body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab', true],
  ])('broken: %s', (_, text, isEnded) => {
    expect(read(text, 'GET', isEnded).kind).toBe('broken')
  })
  test('what comes after the answer to a HEAD is seen', () => {
    const got = read('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'HEAD')
    expect(got.kind === 'answer' && got.length).toBe(38)
  })
})

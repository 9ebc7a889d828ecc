import { allocationApiDocument } from '@pool/contract/openapi/allocation-api'
import { HttpResponse } from '@pool/test-kit/http1.ts'
import { describe, expect, test } from 'vitest'
import { type RequestOutcome, TRUNCATED } from '../../src/fuzz/connection.ts'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { findLogStreamViolations } from '../../src/fuzz/oracle/log-stream.ts'
import { findViolations, type Rules } from '../../src/fuzz/oracle/oracle.ts'
import { createMarkPattern, findLeak, findUuids } from '../../src/fuzz/oracle/secrets.ts'
import { createGenerationLedger, findDuplicateNames, type NameEvent } from '../../src/fuzz/oracle/uniqueness.ts'
import type { FuzzRequest } from '../../src/fuzz/request.ts'

const MARK = 'ZqSecretMark42xK'
const TOKEN = 'a3bb189e-8bf9-4c1a-9f3e-0123456789ab'
const rules: Rules = {
  document: readDocument(allocationApiDocument(), { problem: 'Problem' }),
  isExplained: code => code === 'database-unavailable',
  isFromPlatform: () => false,
  mark: createMarkPattern(MARK),
  isToken: uuid => uuid === TOKEN,
  allowedOrigins: ['https://console.example'],
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
const create: FuzzRequest = { row: 'createDeployment', method: 'POST', target: '/api/v1/deployments', headers: [] }
const created = {
  id: '00000000-0000-4000-8000-000000000000',
  status: 'provisioning',
  streamURL: '/api/v1/deployments/00000000-0000-4000-8000-000000000000/logs',
  deploymentToken: TOKEN,
}
/** The check, with what a browser adds to a request of a page. */
const fromPage = (...headers: readonly string[]): FuzzRequest => ({ ...check, headers })
const crossSite = 'Sec-Fetch-Site: cross-site'
const allowed = 'Origin: https://console.example'
const available = { available: true, fqdn: 'a.pool.test' }
const rejectedPage = { error: 'forbidden', detail: 'A web page of another origin sent this request.' }
const json = { 'content-type': 'application/json', 'x-request-id': 'r1' }

const answered = (
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = json,
  extraBytes = 0,
): RequestOutcome => {
  const lines = Object.entries(headers).map(([name, value]) => `\r\n${name}: ${value}`)
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { kind: 'response', extraBytes, response: new HttpResponse(status, lines.join(''), Buffer.from(text), false) }
}
const reserved = {
  poolDomain: 'pool.test',
  subdomain: 'a',
  state: 'reserved',
  reservedAt: '2026-01-31T12:00:00.000Z',
  expiresAt: '2026-01-31T12:10:00.000Z',
  createdBy: '',
  reservationToken: TOKEN,
}

const good: readonly (readonly [string, FuzzRequest, RequestOutcome])[] = [
  ['a documented response', check, answered(200, { available: true, fqdn: 'a.pool.test' })],
  ['the token in the response to reserve', reserve, answered(201, reserved)],
  ['the token in the response to a creation', create, answered(201, created)],
  ['a rejection of a page of another site', fromPage(crossSite), answered(403, rejectedPage)],
  ['an unknown path for a page of another site', fromPage(crossSite), answered(404, { error: 'not-found' })],
  ['an allowed page', fromPage(crossSite, allowed), answered(200, available)],
  ['an own page', fromPage('Sec-Fetch-Site: same-origin', 'Origin: https://any.example'), answered(200, available)],
  ['a documented error', reserve, answered(409, { error: 'conflict', detail: 'Not free.' })],
  ['a 503 with a documented cause', check, answered(503, { error: 'database-unavailable' })],
  ['an unknown path', { ...check, target: '/nowhere' }, answered(404, { error: 'not-found' })],
  ['a HEAD', { ...check, method: 'HEAD' }, answered(200, '')],
  ['a closed connection after malformed bytes', { ...check, raw: Buffer.from('x') }, { kind: 'closed' }],
  ['a rejection of malformed bytes', { ...check, raw: Buffer.from('x') }, answered(400, { error: 'invalid-format' })],
]
test.each(good)('%s is accepted', (_, request, outcome) => {
  expect(findViolations(rules, request, outcome)).toEqual([])
})

const violations: readonly (readonly [string, RegExp, FuzzRequest, RequestOutcome])[] = [
  [
    'a token in an error',
    /^secret: a token of a client/,
    reserve,
    answered(409, { error: 'conflict', reservationToken: TOKEN }),
  ],
  ['a deployment token in another response', /^secret: a token/, create, answered(201, { ...created, id: TOKEN })],
  ['a request of another site', /page of another site was accepted/, fromPage(crossSite), answered(200, available)],
  [
    'a request of another origin',
    /page of another site was accepted/,
    fromPage('Origin: https://evil.example'),
    answered(200, available),
  ],
  [
    'a rejected request of an allowed page',
    /from a page was rejected/,
    fromPage(crossSite, allowed),
    answered(403, rejectedPage),
  ],
  [
    'an internal error',
    /^500 internal-error without a cause$/,
    check,
    answered(500, { error: 'internal-error', requestId: 'r1' }),
  ],
  [
    'a 503 without a cause',
    /^503 dns-unavailable without a cause$/,
    reserve,
    answered(503, { error: 'dns-unavailable' }),
  ],
  ['another 5xx with an explained code', /^502/, check, answered(502, { error: 'database-unavailable' })],
  ['an undocumented field', /outside its schema/, check, answered(200, { available: true, secret: 1 })],
  ['a field with another type', /outside its schema/, check, answered(200, { available: 'yes' })],
  ['a malformed time', /outside its schema/, reserve, answered(201, { ...reserved, expiresAt: 'tomorrow' })],
  ['invalid JSON', /not JSON/, check, answered(200, '{')],
  [
    'another media type',
    /Content-Type/,
    check,
    answered(200, { available: true }, { ...json, 'content-type': 'text/html' }),
  ],
  ['an undocumented status', /not documented/, check, answered(202, { available: true })],
  [
    'a code that is documented for another operation',
    /not documented here: token-mismatch/,
    reserve,
    answered(422, { error: 'token-mismatch' }),
  ],
  [
    'an error in another shape',
    /common shape/,
    { ...check, target: '/x' },
    answered(404, { error: 'not-found', stack: 'at x' }),
  ],
  ['a 405 without Allow', /without Allow/, { ...check, method: 'PUT' }, answered(405, { error: 'method-not-allowed' })],
  ['a 401 without WWW-Authenticate', /WWW-Authenticate/, check, answered(401, { error: 'unauthorized' })],
  [
    'no request id',
    /no X-Request-Id/,
    check,
    answered(200, { available: true }, { 'content-type': 'application/json' }),
  ],
  ['a HEAD with a status that GET does not have', /not documented/, { ...check, method: 'HEAD' }, answered(202, '')],
  ['neither a response nor the end of the connection', /^timeout/, check, { kind: 'timeout' }],
  ['a closed connection', /^closed/, check, { kind: 'closed' }],
  ['a truncated response', /^a malformed response/, check, { kind: 'malformed', detail: TRUNCATED }],
  ['a body of a HEAD', /^HEAD with a body$/, { ...check, method: 'HEAD' }, answered(200, '', json, 5)],
  ['bytes after the response', /^bytes after/, check, answered(200, { available: true }, json, 5)],
  ['a secret in a body', /^secret: a marked/, check, answered(200, { available: true, detail: MARK })],
  [
    'a secret in a header',
    /^secret: a marked/,
    check,
    answered(200, { available: true }, { ...json, 'x-debug': `a${MARK}b` }),
  ],
  [
    'the token of another client',
    /^secret: a token of a client/,
    check,
    answered(200, { available: true, detail: TOKEN }),
  ],
  ['a repeated token', /^secret: a token of a client/, reserve, answered(201, { ...reserved, createdBy: TOKEN })],
]
test.each(violations)('%s is reported', (_, expected, request, outcome) => {
  const found = findViolations(rules, request, outcome)
  expect(
    found.some(fault => expected.test(fault)),
    found.join('; ') || 'no violation',
  ).toBe(true)
})

describe('a log stream', () => {
  const follow: FuzzRequest = { row: 'followDeployment', method: 'GET', target: `/${TOKEN}/logs`, headers: [] }
  /** Sent at 0 ms and complete at 60,000 ms. */
  const find = (text: string, request = follow) =>
    findLogStreamViolations({
      request,
      outcome: answered(200, text, { 'content-type': 'text/event-stream' }),
      sentAt: 0,
      answeredAt: 60_000,
    })
  const line = (id: number) => `id: ${id}\ndata: {}\n\n`
  const done = (finishedMs: number) =>
    `event: done\ndata: {"finishedAt":"${new Date(performance.timeOrigin + finishedMs).toISOString()}"}\n\n`

  test.each<readonly [string, string, readonly string[]]>([
    ['that ends with its deployment', `retry: 1\n\n${line(3)}: idle\n\n${line(4)}${done(59_000)}`, []],
    ['without lines', done(59_000), []],
    ['that ends late', `${line(1)}${done(40_000)}`, ['a late end of a log stream']],
    ['of a deployment that was finished before, and ends late', done(-5_000), ['a late end of a log stream']],
    ['with a gap', `${line(1)}${line(3)}${done(59_000)}`, ['a gap in a log stream']],
    ['without done', line(1), ['a log stream that ends without done']],
    ['with a malformed done', 'event: done\ndata: {}\n\n', ['done without the end of the deployment']],
  ])('%s', (_, text, expected) => {
    expect(find(text)).toEqual(expected)
  })
  test('the response to a HEAD has no events', () => {
    expect(find('', { ...follow, method: 'HEAD' })).toEqual([])
  })
})

describe('a secret', () => {
  const bytes = [...Buffer.from(`x${MARK}y`)].map(byte => byte.toString(16).padStart(2, '0'))
  const b64 = (before: string) => Buffer.from(`${before}${MARK}after`).toString('base64')
  test.each([
    ['plain', `key=${MARK};`],
    ['in lower case', MARK.toLowerCase()],
    ['percent-encoded', bytes.map(byte => `%${byte}`).join('')],
    ['as JSON escapes', bytes.map(byte => `\\u00${byte.toUpperCase()}`).join('')],
    ['in hex', bytes.join('')],
    ['in base64', b64('')],
    ['in base64, at offset 1', b64('a')],
    ['in base64, at offset 2', b64('ab')],
    ['in a database URL', `postgres://fuzz:DB${MARK}01@127.0.0.1/fuzz`],
  ])('%s is found', (_, text) => {
    expect(findLeak(rules, text)).toBe('a marked secret')
  })
  test('a token inside base64 is found', () => {
    expect(findUuids(Buffer.from(`Basic ${TOKEN}!`).toString('base64'))).toContain(TOKEN)
    expect(findLeak(rules, `x ${Buffer.from(TOKEN).toString('base64url')} y`)).toBe('a token of a client')
  })
  test('other text is not a secret', () => {
    expect(
      findLeak(rules, `{"requestId":"00000000-0000-4000-8000-000000000000","detail":"${MARK.slice(0, -1)}"}`),
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
      'a release between two grants',
      [event('granted', 'a', '1', 0, 1), event('released', 'a', '', 1, 2), event('granted', 'a', '2', 2, 3)],
      [],
    ],
    [
      'a release with a late response',
      [event('granted', 'a', '1', 0, 1), event('granted', 'a', '2', 3, 4), event('released', 'a', '', 2, 9)],
      [],
    ],
    [
      'a release before both grants',
      [event('released', 'a', '', 0, 1), event('granted', 'a', '1', 2, 3), event('granted', 'a', '2', 4, 5)],
      ['a was granted twice'],
    ],
    [
      'one release, three grants',
      [
        event('granted', 'a', '1', 0, 1),
        event('released', 'a', '', 0, 9),
        event('granted', 'a', '2', 2, 3),
        event('granted', 'a', '3', 4, 5),
      ],
      ['a was granted twice'],
    ],
    ['a replayed grant', [event('granted', 'a', '1', 0, 1), event('granted', 'a', '1', 2, 3)], []],
    ['another name', [event('granted', 'a', '1', 0, 1), event('granted', 'b', '2', 2, 3)], []],
    [
      'a release of an unknown name',
      [event('granted', 'a', '1', 0, 1), event('released', null, '', 1, 2), event('granted', 'a', '2', 2, 3)],
      [],
    ],
  ])('%s', (_, events, expected) => {
    expect(findDuplicateNames(events)).toEqual(expected)
  })
  test('a generation of a slot is granted once', () => {
    const ledger = createGenerationLedger()
    expect([ledger.record('s', 1, 'a'), ledger.record('s', 2, 'b'), ledger.record('t', 1, 'b')]).toEqual([
      null,
      null,
      null,
    ])
    expect(ledger.record('s', 2, 'c')).toBe('generation 2 of s was granted to b and to c')
  })
})

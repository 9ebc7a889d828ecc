import { problem } from '@pool/contract'
import { encodeRequest, HttpConnection, type HttpRequest } from '@pool/test-kit/http1.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashIdempotencyKey } from '../../src/lib/token.ts'
import { createSteps, poolPath, startTestService } from '../support/service.ts'
import { expectContract } from '../support/validate.ts'
import { credentialRows, deploymentRequestRows, deploymentRows } from './bad-input/deployments.ts'
import { LIMIT_BYTES, poolRows } from './bad-input/pool.ts'
import { malformedRows, requestRows } from './bad-input/requests.ts'
import { type BadRow, createWith, type RowContext, reserve, sshPublicKey, storageFields } from './bad-input/row.ts'

/** Without Terraform, a valid deployment request fails after its validation and before any side effect. */
const { api, call, database } = await startTestService({
  PDM_TERRAFORM_BINARY: '/nowhere/terraform',
  PDM_PROVIDERS: 'tostring',
})
const { reserveName, reserveAndCommit } = createSteps(call)
const port = Number(new URL(api.url).port)

let rowContext: RowContext
let connection: HttpConnection
/** The relevant rows of all tables. */
const readDatabase = async () => ({
  allocations: await database.sql`select to_jsonb(a) as row from pool_allocations a order by subdomain`,
  history: await database.sql`select to_jsonb(h) as row from allocation_history h order by id`,
  keys: await database.sql`select to_jsonb(k) as row from idempotency_keys k`,
  dns: await database.sql`select zone, subdomain, version, desired from dns_names`,
  deployments: await database.sql`select id from deployments`,
  buckets: await database.sql`select bucket from bucket_claims`,
})
let before: Awaited<ReturnType<typeof readDatabase>>

beforeAll(async () => {
  rowContext = { token: (await reserveName('held')).reservationToken }
  await reserveAndCommit('live')
  before = await readDatabase()
  connection = await HttpConnection.open(port)
})

afterAll(() => connection.close())

/** Matches the keys and tokens in the requests. */
const secrets = /access-key-0123|secret-key-of|token-of-a-provider|k{15}|s{31}|t{30}/

/** Sends on a connection that all rows share. Opens a new one if the last response closed it. */
const send = async (bytes: Buffer) => {
  if (!connection.isOpen) connection = await HttpConnection.open(port)
  const answer = await connection.send(bytes)
  if (answer.headers.get('connection') === 'close') connection.close()
  return answer
}

const expectAlive = async () => {
  const alive = await send(encodeRequest({ path: '/livez' }))
  expect(alive.status, 'the connection serves the next request').toBe(200)
}

/** Malformed bytes belong to no operation, so no operation documents the response. */
const expectRejected = async ({ toBytes: bytes, status, code, fields }: BadRow, isRequest = true) => {
  const sent = bytes(rowContext)
  const answer = await send(sent)
  const closes = answer.headers.get('connection') === 'close'
  expect(answer.status, answer.text).toBe(status)
  expect(answer.text, 'the response quotes no secret').not.toMatch(secrets)
  expect(answer.headers.get('content-type')).toBe('application/json')
  const body = JSON.parse(answer.text)
  expect(body.error).toBe(code)
  const [method = '', path = ''] = sent.toString('latin1', 0, 20_000).split(' ')
  if (isRequest) expectContract(method, path, answer)
  else expect(problem.parse(body)).toEqual(body)
  if (fields) expect(body.faults.map(({ field }: { field: string }) => field)).toEqual(fields)
  if (status === 405) expect(answer.headers.get('allow')).toMatch(/^[A-Z]+(, [A-Z]+)*$/)
  if (!closes) expect(connection.isOpen, 'the connection stays open').toBe(true)
  await expectAlive()
}

const groups: readonly (readonly [what: string, rows: readonly BadRow[]])[] = [
  ['bodies, names and fields', poolRows],
  ['paths, methods, headers and queries', requestRows],
  ['fields of deployments', deploymentRows],
  ['bodies, paths, headers and queries of deployments', deploymentRequestRows],
  ['credentials', credentialRows],
  ['malformed HTTP', malformedRows],
]

describe.each(groups)('invalid %s', (_, rows) => {
  // With %s, because vitest truncates $rule.
  const named = rows.map(row => [row.rule, row.status, row.code, row] as const)
  test.each(named)('%s -> %i %s', (_rule, _status, _code, row) => expectRejected(row, rows !== malformedRows))
})

describe('a response to HEAD has no body', () => {
  const rows: readonly (readonly [path: string, status: number])[] = [
    ['/livez', 200],
    [`${poolPath}/check?sub=a`, 200],
    [`${poolPath}/list`, 200],
    [`${poolPath}/reserve`, 405],
    ['/nope', 404],
    [`${poolPath}/list?limit=0`, 422],
  ]
  test.each(rows)('HEAD %s -> %i', async (path, status) => {
    const answer = await send(encodeRequest({ method: 'HEAD', path }))
    expect(answer).toMatchObject({ status, text: '' })
    await expectAlive()
  })
})

describe('valid requests at the limits', () => {
  const exact = JSON.stringify({ subdomain: 'exact' }).padEnd(LIMIT_BYTES)
  const deep = `{"subdomain":"deep","extra":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
  const rows: readonly (readonly [rule: string, subdomain: string, request: HttpRequest])[] = [
    ['a body of exactly 64 KiB', 'exact', reserve(exact)],
    [
      'a chunked body of exactly 64 KiB',
      'chunks',
      { ...reserve(exact.replace('exact', 'chunks').slice(0, -1)), chunked: true },
    ],
    ['an unknown field of any depth', 'deep', reserve(deep)],
    ['an unknown field called __proto__', 'proto', reserve('{"subdomain":"proto","__proto__":{"createdBy":"x"}}')],
    ['one byte order mark', 'bom', reserve('\ufeff{"subdomain":"bom"}')],
    ['the last of two equal keys counts', 'last', reserve('{"subdomain":"-","subdomain":"last"}')],
    ['escapes in a key and a value', 'escaped', reserve('{"sub\\u0064omain":"\\u0065scaped"}')],
    [
      'white space around a name, including the no-break space',
      'trimmed',
      reserve({ subdomain: '\u00a0\t Trimmed \r\n' }),
    ],
    ['63 characters', 'a'.repeat(63), reserve({ subdomain: 'a'.repeat(63) })],
    ['one letter', 'b', reserve({ subdomain: 'B' })],
    ['"--" anywhere else', 'a--b---c', reserve({ subdomain: 'a--b---c' })],
    [
      'an upper-case pool, percent-encoded, with white space',
      'pooled',
      { ...reserve({ subdomain: 'pooled' }), path: '/api/v1/pool/%20P%4fol%2ETEST%20/reserve' },
    ],
    ['no Content-Type', 'plain', reserve({ subdomain: 'plain' })],
    ['a wrong Content-Type', 'typed', reserve({ subdomain: 'typed' }, ['Content-Type: image/png'])],
    [
      'an Idempotency-Key of 255 visible characters',
      'keyed',
      reserve({ subdomain: 'keyed' }, [`Idempotency-Key: ${'~!"'.repeat(85)}`]),
    ],
    [
      'createdBy of 253 characters that take two code units each',
      'astral',
      reserve({ subdomain: 'astral', createdBy: '\u{1f600}'.repeat(253) }),
    ],
  ]
  test.each(rows)('%s', async (_, subdomain, request) => {
    const answer = await send(encodeRequest(request))
    expect(answer.status, answer.text).toBe(201)
    expect(JSON.parse(answer.text).subdomain).toBe(subdomain)
    await call('DELETE', `${poolPath}/release?sub=${subdomain}`)
  })
})

describe('valid deployment requests at the limits', () => {
  const rows: readonly (readonly [rule: string, change: object])[] = [
    ['an ordinary request', {}],
    ['a trailing dot, capitals and space', { sovereignFQDN: ' Cloud.ACME.example. ' }],
    ['an FQDN of 253 characters', { sovereignFQDN: `${'a.'.repeat(123)}example` }],
    ['an A-label', { sovereignFQDN: 'xn--bcher-kva.example' }],
    [
      'a name that is a property of every JavaScript object',
      { orgName: 'constructor', region: 'constructor', providers: ['tostring'] },
    ],
    ['a name of any script', { orgName: '\u0646\u0627\u0645\u0647\u200c\u0647\u0627 \u5c71\u7530 \u{1f600}' }],
    ['100 characters that take two code units each', { orgName: '\u{1f600}'.repeat(100) }],
    ['an address of 254 characters', { orgEmail: `${'a'.repeat(64)}@${'b.'.repeat(91)}example` }],
    ['invalid storage fields without the storage provider', { objectStorageRegion: '..', objectStorageAccessKey: {} }],
    ['object storage', storageFields],
    ['invalid pool fields with a domain of the tenant', { sovereignPoolDomain: 5, sovereignSubdomain: '\u0000' }],
    ['an unknown field', { ['__proto__']: { orgName: '' }, consoleLoadBalancerIP: null }],
    ['an SSH key with a trailing CRLF, as in a file written on Windows', { sshPublicKey: `${sshPublicKey}\r\n` }],
  ]
  test.each(rows)('%s', async (_, change) => {
    const answer = await send(encodeRequest(createWith(change)))
    expectContract('POST', '/api/v1/deployments', answer)
    expect([answer.status, JSON.parse(answer.text).error]).toEqual([503, 'provisioning-unavailable'])
  })
})

describe('an unusual but valid request', () => {
  const path = `${poolPath}/check?sub=unusual`
  const rows: readonly (readonly [rule: string, request: string])[] = [
    ['an absolute URL', `GET http://127.0.0.1${path} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['an absolute URL of another host', `GET https://user:pass@b.example:99${path} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['dot segments', `GET ${path.replace('/check', '/x/.././check')} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['a percent-encoded route', `GET ${path.replace('check', '%63heck')} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['the parameter twice: the first counts', `GET ${path}&sub=- HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['a percent-encoded parameter', `GET ${path.replace('sub', '%73ub')} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['other parameters', `GET ${path}&&=x&__proto__[x]=1&constructor=2 HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['empty lines before it', `\r\n\r\nGET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['400 header fields', `GET ${path} HTTP/1.1\r\nHost: a\r\n${'X: 1\r\n'.repeat(400)}\r\n`],
    [
      'an upgrade to WebSocket, which is ignored',
      `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    ],
    [
      'an upgrade to HTTP/2, which is ignored',
      `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n`,
    ],
  ]
  test.each(rows)('%s', async (_, request) => {
    const answer = await send(Buffer.from(request))
    expect([answer.status, JSON.parse(answer.text).available], answer.text).toEqual([200, true])
    await expectAlive()
  })

  test.each([
    'sub=',
    'sub',
    'sub[]=a',
    'SUB=a',
    'sub=a%',
    'sub=a%zz',
    'sub=%ff%fe',
    'sub=%00',
    'sub=%ed%a0%80',
    'sub;sub=a',
  ])('a query without a name: %s', async query => {
    const answer = await send(encodeRequest({ path: `${poolPath}/check?${query}` }))
    expect([answer.status, JSON.parse(answer.text).reason], answer.text).toEqual([200, 'invalid-format'])
  })

  test('a trailer has no effect', async () => {
    const head = `DELETE ${poolPath}/release HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`
    const answer = await send(Buffer.from(`${head}2\r\n{}\r\n0\r\nX-Trailer: 1\r\nHost: other\r\n\r\n`))
    expect(answer.status).toBe(422)
    await expectAlive()
  })
})

test('405 names the methods of the route, and 404 says where the routes are', async () => {
  const get = async (method: string, path: string) =>
    JSON.parse((await send(Buffer.from(`${method} ${path} HTTP/1.0\r\n\r\n`))).text)
  expect(await get('PUT', '/api/v1/pool/pool.test/reserve')).toMatchObject({ detail: 'This route has only POST.' })
  for (const path of ['/', '/api/v1/reserved/', '/pool/pool.test/check', '/api/v1/pool/pool.test/chek']) {
    expect(await get('GET', path)).toMatchObject({
      error: 'not-found',
      detail: expect.stringMatching(/\/api\/v1.*\/docs.*operator listener/),
    })
  }
})

test('CONNECT is 405 with an empty Allow header (RFC 9110 section 15.5.6)', async () => {
  const answer = await send(Buffer.from('CONNECT 127.0.0.1:5432 HTTP/1.1\r\nHost: 127.0.0.1:5432\r\n\r\n'))
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, ''])
  expect(JSON.parse(answer.text)).toMatchObject({ error: 'method-not-allowed' })
})

test('Host is optional in HTTP/1.0 and required in HTTP/1.1 (RFC 9112 section 3.2)', async () => {
  expect((await send(Buffer.from('GET /livez HTTP/1.0\r\n\r\n'))).status).toBe(200)
  expect((await send(Buffer.from('GET /livez HTTP/1.1\r\n\r\n'))).status).toBe(400)
})

test('an unsupported Expect has the common error body', async () => {
  const answer = await send(encodeRequest({ path: '/livez', headers: ['Expect: banana'] }))
  expect(answer.status).toBe(417)
  expect(problem.safeParse(JSON.parse(answer.text || 'null')).success).toBe(true)
})

test('OPTIONS * gets the common error body', async () => {
  const answer = await send(encodeRequest({ method: 'OPTIONS', path: '*' }))
  expect(answer.status).toBeLessThan(500)
  expect(problem.safeParse(JSON.parse(answer.text || 'null')).success).toBe(true)
})

test('a valid request gets its response even if malformed bytes follow it', async () => {
  const connection = await HttpConnection.open(port)
  const first = await connection
    .send(Buffer.concat([encodeRequest({ path: `${poolPath}/list` }), Buffer.from('broken\r\n\r\n')]))
    .catch(() => null)
  connection.close()
  // Without a response the client knows that the outcome is unknown; the 400 of another request would mislead it.
  expect(first?.status ?? 200).toBe(200)
})

test('the database is unchanged afterwards', async () => {
  const after = await readDatabase()
  const existedBefore = ({ row }: { row: { subdomain?: string } }) => ['held', 'live'].includes(row.subdomain ?? '')
  expect(after.allocations).toEqual(before.allocations)
  expect(after.dns).toEqual(before.dns)
  expect([after.deployments, after.buckets]).toEqual([[], []])
  expect(after.history.filter(entry => existedBefore(entry as never))).toEqual(before.history)
  const keyHash = hashIdempotencyKey('~!"'.repeat(85))
  expect(after.keys.map(({ row }) => row.key_hash)).toEqual([`\\x${keyHash}`])
})

test('no request ended with a 5xx, not even a truncated one', () => {
  const isBad = (line: string) => /"status":5\d\d|request failed|unhandled/.test(line)
  expect(api.lines.filter(line => isBad(line) && !line.includes('"outcome":"provisioning-unavailable"'))).toEqual([])
})

test('a rejected request is counted by its operation', async () => {
  const { text } = await call('GET', '/metrics')
  const counted = [...text.matchAll(/^pdm_operations_total\{operation="([^"]+)",outcome="([^"]+)"\} [1-9]\d*$/gm)]
  const pairs = counted.map(([, verb, outcome]) => `${verb} ${outcome}`)
  for (const verb of ['reserve', 'commit', 'renew', 'release']) expect(pairs).toContain(`${verb} invalid-format`)
  expect(pairs).toEqual(
    expect.arrayContaining([
      'create-deployment invalid-deployment',
      'list-deployments invalid-state',
      'get-deployment not-found',
      'remove-deployment not-found',
      'follow-deployment invalid-cursor',
      'validate-keys invalid-region',
      'validate-token invalid-token',
    ]),
  )
  expect(text, 'no provider was called').not.toContain('pdm_credential_validations_total{')
})

test('no log line has a key or a token', () => {
  expect(api.lines.filter(line => secrets.test(line))).toEqual([])
})

test('the service is healthy', async () => {
  expect((await call('GET', '/healthz')).body).toEqual({ status: 'ok', managedDomains: ['pool.test'] })
})

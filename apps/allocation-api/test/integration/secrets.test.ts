import { randomBytes, randomUUID } from 'node:crypto'
import { until } from '@pool/test-kit/poll.ts'
import { type ApiResponse, sendRequest, startApi } from '@pool/test-kit/services.ts'
import postgres from 'postgres'
import { afterAll, describe, expect, test } from 'vitest'
import { createTestDatabase, getTestDsn } from '../support/database.ts'
import { poolPath } from '../support/service.ts'
import { expectProblem } from '../support/validate.ts'

const mark = (what: string) => `mark-${what}-${randomBytes(8).toString('hex')}`
const secrets = {
  operatorToken: mark('operator'),
  secondOperatorToken: mark('second-operator'),
  wrongOperatorToken: mark('wrong-operator'),
  databasePassword: mark('database'),
  idempotencyKey: mark('key'),
  witnessToken: mark('witness'),
}
/** Every issued or invented reservation token, and every id of a session. */
const tokens: string[] = []

const runOnServer = async (statement: string) => {
  const sql = postgres(getTestDsn(), { max: 1, onnotice: () => {} })
  await sql.unsafe(statement)
  await sql.end()
}
const role = `marked_${randomBytes(6).toString('hex')}`
await runOnServer(`create role ${role} login superuser password '${secrets.databasePassword}'`)

const database = await createTestDatabase({ connections: 2 })
const url = Object.assign(new URL(database.url), { username: role, password: secrets.databasePassword }).href
const api = await startApi(url, {
  PDM_LOG_LEVEL: 'trace',
  PDM_OPERATOR_TOKENS: `${secrets.operatorToken},${secrets.secondOperatorToken}`,
  PDM_DATABASE_TIMEOUT: '2s',
  // Nothing listens there.
  PDM_WITNESS_URL: 'http://127.0.0.1:1',
  PDM_WITNESS_TOKEN: secrets.witnessToken,
})

afterAll(async () => {
  await api.process.stop()
  await runOnServer(`drop role if exists ${role}`)
})

const leaksIn = (text: string): string[] =>
  [...Object.values(secrets), ...tokens].filter(secret => text.toLowerCase().includes(secret.toLowerCase()))

const formatHeaders = ({ headers }: ApiResponse) => [...headers].map(([name, value]) => `${name}: ${value}`).join('\n')

/** Sends a request. Fails if the response contains a secret, except for the token in the response to a reserve. */
const send = async (
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  base = api.url,
) => {
  const response = await sendRequest(base + path, method, body, headers)
  const shown = path.endsWith('/reserve') && response.status === 201 ? response.body.reservationToken : undefined
  if (shown) tokens.push(shown)
  expect(leaksIn(`${formatHeaders(response)}\n${response.text}`)).toEqual(shown ? [shown] : [])
  return response
}
const operator = (token: string) => ({ Authorization: `Bearer ${token}` })
const inventToken = () => {
  const token = randomUUID()
  tokens.push(token)
  return token
}

const commitBody = (subdomain: string, reservationToken: unknown) => ({
  subdomain,
  reservationToken,
  sovereignFQDN: `${subdomain}.pool.test`,
  loadBalancerIP: '203.0.113.10',
})

/** All operations on a name, valid and invalid, with a token in every possible place. */
const runAllOperations = async (subdomain: string) => {
  const key = { 'Idempotency-Key': secrets.idempotencyKey }
  const { reservationToken } = (await send('POST', `${poolPath}/reserve`, { subdomain }, key)).body
  const attempts = [
    ['POST', 'reserve', { subdomain }],
    ['POST', 'reserve', { subdomain: 'other' }, key],
    ['POST', 'reserve', { subdomain, reservationToken, createdBy: 5 }],
    ['POST', 'reserve', `{"subdomain":"x","reservationToken":"${reservationToken}"`],
    ['POST', 'renew', { subdomain, reservationToken }],
    ['POST', 'renew', { subdomain, reservationToken: inventToken() }],
    ['POST', 'renew', { subdomain: `-${reservationToken}`, reservationToken }],
    ['POST', 'commit', commitBody(subdomain, inventToken())],
    ['POST', 'commit', commitBody(subdomain, [reservationToken])],
    ['POST', 'commit', { ...commitBody(subdomain, reservationToken), loadBalancerIP: reservationToken }],
    ['POST', 'commit', { ...commitBody(subdomain, reservationToken), sovereignFQDN: reservationToken }],
    ['POST', 'commit', commitBody(subdomain, reservationToken)],
    ['POST', 'commit', commitBody(subdomain, reservationToken)],
    ['POST', 'commit', commitBody(subdomain, reservationToken), key],
    ['POST', 'commit', commitBody(subdomain, reservationToken), { 'Idempotency-Key': `${reservationToken} ` }],
    ['DELETE', 'release', { subdomain, reservationToken: inventToken() }],
    ['DELETE', 'release', { subdomain, reservationToken: { token: reservationToken } }],
    ['GET', 'list', undefined],
    ['GET', `list?cursor=${reservationToken}`, undefined],
    ['GET', `list?state=${reservationToken}`, undefined],
    ['GET', `history?sub=${subdomain}`, undefined],
    ['GET', `allocations/${subdomain}`, undefined],
    ['GET', `check?sub=${subdomain}&reservationToken=${reservationToken}`, undefined],
    ['DELETE', 'release', { subdomain, reservationToken }],
    ['DELETE', 'release', { subdomain, reservationToken }],
    ['GET', reservationToken, undefined],
  ] as const
  const statuses: number[] = []
  for (const [method, verb, body, headers] of attempts) {
    statuses.push((await send(method, `${poolPath}/${verb}`, body, headers)).status)
  }
  return statuses
}

test('the token of a name is in the response to reserve and in no other response', async () => {
  const statuses = await runAllOperations('marked')
  expect(statuses).toEqual([
    409, 422, 422, 400, 200, 403, 422, 403, 422, 422, 422, 200, 409, 422, 409, 403, 403, 200, 422, 422, 200, 200, 200,
    200, 404, 404,
  ])
})

test('no response contains an operator token, valid or invalid', async () => {
  const base = api.operatorUrl ?? ''
  for (const token of [secrets.operatorToken, secrets.secondOperatorToken]) {
    expect((await send('GET', `${poolPath}/list`, undefined, operator(token), base)).status).toBe(200)
  }
  for (const header of [
    secrets.wrongOperatorToken,
    `${secrets.operatorToken}x`,
    `${secrets.operatorToken} ${secrets.wrongOperatorToken}`,
  ]) {
    expect((await send('GET', `${poolPath}/list`, undefined, operator(header), base)).status).toBe(401)
  }
  expect((await send('GET', `/${secrets.wrongOperatorToken}`, undefined, {}, base)).status).toBe(401)
})

test('the id of a session is in the cookie of its start and in no other response, nor in the database', async () => {
  const base = api.operatorUrl ?? ''
  const path = '/api/v1/session'
  const response = await sendRequest(base + path, 'POST', { token: secrets.operatorToken }, { Origin: base })
  const [cookie = ''] = response.headers.getSetCookie()
  const id = /^pool-session=([^;]+)/.exec(cookie)?.[1] ?? ''
  expect([response.status, id.length]).toEqual([201, 43])
  expect(leaksIn(response.text)).toEqual([])
  tokens.push(id)
  const session = { Cookie: `pool-session=${id}`, Origin: base }
  expect((await send('POST', path, { token: secrets.wrongOperatorToken }, session, base)).status).toBe(401)
  expect((await send('POST', path, { token: [secrets.operatorToken] }, session, base)).status).toBe(422)
  for (const read of [
    path,
    '/api/v1/settings',
    '/api/v1/zones',
    '/api/v1/names',
    `/api/v1/names?q=${id}`,
    '/metrics',
  ]) {
    expect((await send('GET', read, undefined, session, base)).status, read).toBe(200)
  }
  expect((await send('GET', `/api/v1/leases`, undefined, session, base)).status).toBe(503)
  expect((await send('GET', `/${id}`, undefined, session, base)).status).toBe(404)
  const rows =
    await database.sql`select row_to_json(s)::text as text, encode(token_mac, 'escape') as mac from operator_sessions s`
  expect(rows).toHaveLength(1)
  expect(leaksIn(JSON.stringify(rows))).toEqual([])
  const isWritten = (text: string) => text.toLowerCase().includes(Buffer.from(id).toString('hex'))
  expect(rows.some(({ text }) => isWritten(text))).toBe(false)
  expect((await send('DELETE', path, undefined, session, base)).status).toBe(204)
  expect((await send('GET', path, undefined, session, base)).status).toBe(401)
})

test.each([
  '/metrics',
  '/openapi.json',
  '/docs',
  '/healthz',
  '/readyz',
  '/api/v1/reserved',
  `${poolPath}/history`,
  `${poolPath}/list`,
])('no secret in %s', async path => {
  expect((await send('GET', path)).status).toBe(200)
})

test('the history contains no secret', async () => {
  const rows = await database.sql`select * from allocation_history`
  expect(leaksIn(JSON.stringify(rows))).toEqual([])
})

describe('without a database', () => {
  test('every operation responds 503 with the common error body and exposes nothing', async () => {
    const { reservationToken } = (await send('POST', `${poolPath}/reserve`, { subdomain: 'orphan' })).body
    await database.drop()
    const base = api.operatorUrl ?? ''
    const session = { Cookie: `pool-session=${randomBytes(32).toString('base64url')}`, Origin: base }
    const key = { 'Idempotency-Key': secrets.idempotencyKey }
    const answers = [
      await send('GET', `${poolPath}/check?sub=orphan`),
      await send('POST', `${poolPath}/reserve`, { subdomain: 'orphan' }),
      await send('POST', `${poolPath}/reserve`, { subdomain: 'orphan' }, key),
      await send('POST', `${poolPath}/commit`, commitBody('orphan', reservationToken)),
      await send('POST', `${poolPath}/commit`, commitBody('orphan', reservationToken), key),
      await send('POST', `${poolPath}/renew`, { subdomain: 'orphan', reservationToken }),
      await send('DELETE', `${poolPath}/release`, { subdomain: 'orphan', reservationToken }),
      await send('GET', `${poolPath}/allocations/orphan`),
      await send('GET', `${poolPath}/list`),
      await send('GET', `${poolPath}/history`),
      await send('POST', '/api/v1/session', { token: secrets.operatorToken }, { Origin: base }, base),
      await send('GET', '/api/v1/session', undefined, session, base),
      await send('DELETE', '/api/v1/session', undefined, session, base),
      await send('GET', '/api/v1/names', undefined, operator(secrets.operatorToken), base),
      await send('GET', `${poolPath}/names/orphan`, undefined, operator(secrets.operatorToken), base),
      await send('GET', '/api/v1/zones', undefined, operator(secrets.operatorToken), base),
      await send('GET', '/api/v1/overview', undefined, operator(secrets.operatorToken), base),
      await send('GET', '/api/v1/changes', undefined, operator(secrets.operatorToken), base),
    ]
    for (const answer of answers) {
      expect(expectProblem(answer)).toBe('database-unavailable')
      expect(answer.text).not.toMatch(/3D000|does not exist|postgres|select|insert| at /i)
    }
  })

  test('healthz is 503 unhealthy with the managed domains, readyz 503, livez 200', async () => {
    const health = await send('GET', '/healthz')
    expect([health.status, health.body]).toEqual([503, { status: 'unhealthy', managedDomains: ['pool.test'] }])
    // It checks at most once per second whether the database accepts writes.
    await until('readyz is 503', async () => (await send('GET', '/readyz')).status === 503)
    expect((await send('GET', '/livez')).status).toBe(200)
  })

  test('the metrics are available', async () => {
    expect((await send('GET', '/metrics')).status).toBe(200)
  })
})

test('no line of the log contains a secret, at the most verbose level', async () => {
  await api.process.stop()
  expect(api.lines.length).toBeGreaterThan(30)
  expect(api.lines.filter(line => leaksIn(line).length > 0)).toEqual([])
  expect(api.lines.filter(line => /postgres(ql)?:\/\/[^*]/i.test(line))).toEqual([])
  expect(tokens.length).toBeGreaterThan(4)
})

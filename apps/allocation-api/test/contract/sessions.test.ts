import { randomBytes } from 'node:crypto'
import { operations } from '@pool/contract'
import { createSignInCode, SIGN_IN_CODE_MS } from '@pool/runtime/service/sign-in-code'
import { type ApiResponse, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createContractCall, poolPath, startTestService } from '../support/service.ts'

const env = {
  PDM_OPERATOR_TOKENS: 'first-token-of-tests,second-token-of-tests',
  PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 10_000 }),
  PDM_SWEEPER_INTERVAL: '1h',
}
const { api, database } = await startTestService(env)
/** A replica without the first token, whose limit is one attempt. */
const other = await startApi(database.url, {
  ...env,
  PDM_OPERATOR_TOKENS: 'second-token-of-tests',
  PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 1 }),
  PDM_TRUSTED_PROXIES: '127.0.0.0/8, ::1',
})
afterAll(() => other.process.stop())

const url = api.operatorUrl ?? ''
const call = createContractCall(url)
const callOther = createContractCall(other.operatorUrl ?? '')
const origin = { Origin: url }
const SESSION = '/api/v1/session'

const signIn = (token: unknown, headers: Record<string, string> = origin) => call('POST', SESSION, { token }, headers)
const getCookies = ({ headers }: ApiResponse) => headers.getSetCookie()
const toCookie = (response: ApiResponse) => ({ Cookie: getCookies(response)[0]?.split(';')[0] ?? '' })
const start = async (token = 'first-token-of-tests') => toCookie(await signIn(token))
const list = (headers: Record<string, string>) => call('GET', `${poolPath}/list`, undefined, headers)

beforeEach(() => database.sql`delete from operator_sessions`)

describe('sign-in', () => {
  test('exchanges a token for a cookie that scripts cannot read', async () => {
    const response = await signIn('first-token-of-tests')
    expect(response.status).toBe(201)
    expect(getCookies(response)).toEqual([
      expect.stringMatching(/^pool-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/),
    ])
    expect(response.headers.get('cache-control')).toBe('no-store')
    const { createdAt, expiresAt, idleSeconds } = response.body
    expect([Date.parse(expiresAt) - Date.parse(createdAt), idleSeconds]).toEqual([12 * 3_600_000, 1_800])
  })

  test('behind TLS, the cookie is Secure and has the prefix __Host-', async () => {
    const { host } = new URL(url)
    expect(getCookies(await signIn('first-token-of-tests', { Origin: `https://${host}` }))).toEqual([
      expect.stringMatching(/^__Host-pool-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/),
    ])
  })

  test.each([
    ['another token', 'third-token', 401, 'unauthorized'],
    ['the beginning of a token', 'first', 401, 'unauthorized'],
    ['both tokens', 'first-token-of-tests,second-token-of-tests', 401, 'unauthorized'],
    ['no token', undefined, 422, 'missing-token'],
    ['an empty token', '', 422, 'missing-token'],
    ['a number', 7, 422, 'missing-token'],
  ])('with %s it is %i', async (_, token, status, error) => {
    const response = await signIn(token)
    expect([response.status, response.body.error]).toEqual([status, error])
    expect(response.headers.get('WWW-Authenticate')).toBe(status === 401 ? 'Bearer realm="operator"' : null)
    expect(getCookies(response)).toEqual([])
  })

  test.each([
    ['cross-site', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }],
    ['same-site', { 'Sec-Fetch-Site': 'same-site' }],
    ['another Origin', { Origin: 'https://evil.example' }],
  ])('a page of another origin cannot sign in: %s', async (_, headers) => {
    expect((await signIn('first-token-of-tests', headers)).status).toBe(403)
  })

  describe.each<readonly [kind: string, send: (token: string, from: object) => ReturnType<typeof callOther>]>([
    ['sign-in', (token, from) => callOther('POST', SESSION, { token }, { ...from })],
    ['Bearer', (token, from) => callOther('GET', '/healthz', undefined, { ...from, Authorization: `Bearer ${token}` })],
    [
      'Basic',
      (token, from) =>
        callOther('GET', '/healthz', undefined, { ...from, Authorization: `Basic ${btoa(`a:${token}`)}` }),
    ],
  ])('failures of each client are limited, and no right credential is: %s', (kind, send) => {
    const address = (last: number) => ({ 'X-Forwarded-For': `192.0.2.${kind.length * 10 + last}` })
    test('the second wrong one is 429', async () => {
      expect((await send('wrong', address(1))).status).toBe(401)
      const limited = await send('wrong', address(1))
      expect([limited.status, limited.body.error]).toEqual([429, 'too-many-attempts'])
      expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
      expect((await send('wrong', address(2))).status).toBe(401)
    })

    test('a right token, a session and a request without a credential are neither counted nor locked out', async () => {
      const cookie = await start('second-token-of-tests')
      for (let i = 0; i < 3; i += 1) {
        expect((await send('second-token-of-tests', address(1))).status).toBeLessThan(300)
        const withSession = { ...address(1), ...cookie, 'Sec-Fetch-Site': 'same-origin' }
        expect((await callOther('GET', '/healthz', undefined, withSession)).status).toBe(200)
        expect((await callOther('GET', '/healthz', undefined, address(3))).status).toBe(401)
      }
      expect((await send('wrong', address(3))).status).toBe(401)
    })
  })

  test('wrong sessions count as well', async () => {
    const wrong = { 'X-Forwarded-For': '192.0.2.99', Cookie: `pool-session=${'a'.repeat(43)}` }
    const statuses = []
    for (let i = 0; i < 2; i += 1) statuses.push((await callOther('GET', '/healthz', undefined, wrong)).status)
    expect(statuses).toEqual([401, 429])
  })
})

describe('a sign-in code', () => {
  const token = 'second-token-of-tests'
  const code = (age = 0) => createSignInCode(token, Date.now() - age)
  const from = { 'X-Forwarded-For': '192.0.2.98' }

  test('starts one session, whichever of concurrent sign-ins on two replicas is first', async () => {
    const once = code()
    const responses = await Promise.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 ? call : callOther)('POST', SESSION, { token: once }, from)),
    )
    const [started, ...more] = responses.filter(({ status }) => status === 201)
    expect([more.length, responses.filter(({ status }) => status === 401 || status === 429).length]).toEqual([0, 7])
    expect((await list(toCookie(started ?? (await signIn(''))))).status).toBe(200)
    const again = await signIn(once)
    expect([again.status, getCookies(again)]).toEqual([401, []])
  })

  test.each([
    ['older than five minutes', () => code(SIGN_IN_CODE_MS + 1_000)],
    ['of the future', () => code(-60_000)],
    ['of a token that is not configured', () => createSignInCode('another-token-of-tests', Date.now())],
    ['with another time', () => `${(Date.now() - 1).toString(36)}${code(1_000).slice(8)}`],
    ['with a zero in front', () => `0${code().slice(1)}`],
    ['cut off', () => code().slice(0, -1)],
  ])('%s is 401', async (_, create) => {
    expect((await signIn(create())).status).toBe(401)
    expect(await database.sql`select from operator_sessions`).toHaveLength(0)
  })

  test('is neither a bearer token nor a cookie, before and after its use, and has nothing of the token', async () => {
    const once = code()
    expect(once).not.toContain(token)
    for (const use of [() => null, () => signIn(once)]) {
      await use()
      expect((await list({ Authorization: `Bearer ${once}` })).status).toBe(401)
      expect((await list({ Cookie: `pool-session=${once}` })).status).toBe(401)
    }
  })
})

describe('a session', () => {
  test('replaces the token, on every replica', async () => {
    const cookie = await start('second-token-of-tests')
    expect((await list(cookie)).status).toBe(200)
    expect((await callOther('GET', `${poolPath}/list`, undefined, cookie)).status).toBe(200)
    expect((await callOther('GET', SESSION, undefined, cookie)).body).toHaveProperty('expiresAt')
  })

  test('ends when its token is removed from the configuration', async () => {
    const cookie = await start('first-token-of-tests')
    expect((await list(cookie)).status).toBe(200)
    expect((await callOther('GET', SESSION, undefined, cookie)).status).toBe(401)
  })

  test('ends with sign-out, on every replica', async () => {
    const cookie = await start('second-token-of-tests')
    const end = await callOther('DELETE', SESSION, undefined, { ...cookie, Origin: other.operatorUrl ?? '' })
    expect(end.status).toBe(204)
    expect(getCookies(end)).toEqual([
      expect.stringMatching(/^__Host-pool-session=; .*Max-Age=0$/),
      expect.stringMatching(/^pool-session=; .*Max-Age=0$/),
    ])
    expect((await list(cookie)).status).toBe(401)
  })

  test.each([
    ['30 minutes without a request', { last_used_at: '30 minutes' }],
    ['12 hours', { created_at: '12 hours' }],
  ])('ends after %s', async (_, ages) => {
    const cookie = await start()
    for (const [column, age] of Object.entries(ages)) {
      await database.sql`update operator_sessions set ${database.sql(column)} = now() - ${age}::interval + interval '1 minute'`
      expect((await list(cookie)).status).toBe(200)
      await database.sql`update operator_sessions set ${database.sql(column)} = now() - ${age}::interval - interval '1 second'`
    }
    expect((await list(cookie)).status).toBe(401)
  })

  test('is prolonged by a request', async () => {
    const cookie = await start()
    await database.sql`update operator_sessions set last_used_at = now() - interval '29 minutes'`
    expect((await list(cookie)).status).toBe(200)
    const [row] =
      await database.sql`select now() - last_used_at < interval '1 minute' as "isRecent" from operator_sessions`
    expect(row?.isRecent).toBe(true)
  })

  test('is stored without its id and without its token', async () => {
    const { Cookie } = await start()
    const id = Cookie.slice('pool-session='.length)
    const rows =
      await database.sql`select operator_sessions::text as text, encode(id_hash, 'escape') as hash from operator_sessions`
    expect(rows).toHaveLength(1)
    const text = JSON.stringify(rows)
    for (const secret of [
      id,
      Buffer.from(id, 'base64url').toString('hex'),
      Buffer.from(id).toString('hex'),
      'first-token-of-tests',
    ]) {
      expect(text).not.toContain(secret)
    }
  })

  test.each([
    ['an unknown id', () => `pool-session=${randomBytes(32).toString('base64url')}`],
    ['an id of another form', () => 'pool-session=../../etc'],
    ['an empty cookie', () => 'pool-session='],
  ])('%s is 401', async (_, toHeader) => {
    const response = await list({ Cookie: toHeader() })
    expect([response.status, response.headers.get('WWW-Authenticate')]).toEqual([401, 'Bearer realm="operator"'])
  })

  test('its id is not a bearer token, and not accepted in the query', async () => {
    const { Cookie } = await start()
    const id = Cookie.slice('pool-session='.length)
    expect((await list({ Authorization: `Bearer ${id}` })).status).toBe(401)
    expect((await call('GET', `${poolPath}/list?pool-session=${id}`)).status).toBe(401)
  })

  test('a request with a token is decided by its token', async () => {
    const cookie = await start()
    expect((await list({ ...cookie, Authorization: 'Bearer wrong' })).status).toBe(401)
    expect(
      (await call('GET', SESSION, undefined, { ...cookie, Authorization: 'Bearer first-token-of-tests' })).status,
    ).toBe(404)
  })

  test('the in-cluster listener has no sessions', async () => {
    expect((await api.call('POST', SESSION, { token: 'first-token-of-tests' })).status).toBe(404)
    expect((await api.call('GET', '/console')).status).toBe(404)
  })
})

describe('each operation of operators', () => {
  const requests = Object.values(operations)
    .filter(operation => 'listener' in operation && operation.listener === 'operator')
    .map(({ id, method, path }) => {
      const target = path.replace('{domain}', 'pool.test').replace(/\{\w+\}/g, 'acme')
      return [id, method.toUpperCase(), target] as const
    })
  const body = (method: string) => (method === 'GET' ? undefined : {})

  test.each(requests)('%s does not exist on the in-cluster listener, also with a session', async (_, method, path) => {
    const { status, body: problem } = await api.call(method, path, body(method), {
      ...(await start()),
      Origin: api.url,
    })
    expect([status, problem.error]).toEqual([404, 'not-found'])
  })
})

describe('a write with a session', () => {
  const reserve = (subdomain: string, headers: Record<string, string>) =>
    call('POST', `${poolPath}/reserve`, { subdomain }, headers)

  test.each([
    ['the origin of the console', { Origin: url }],
    ['Sec-Fetch-Site: same-origin', { 'Sec-Fetch-Site': 'same-origin' }],
  ])('is accepted with %s', async (name, headers) => {
    const cookie = await start()
    expect((await reserve(`ok${name.length}`, { ...cookie, ...headers })).status).toBe(201)
  })

  test.each([
    ['without either header', {}],
    ['from another origin', { Origin: 'https://evil.example' }],
    ['cross-site', { 'Sec-Fetch-Site': 'cross-site', Origin: url }],
    ['with a repeated header', { 'Sec-Fetch-Site': 'same-origin, cross-site', Origin: url }],
  ])('is rejected %s', async (_, headers) => {
    const cookie = await start()
    const response = await reserve('intruder', { ...cookie, ...headers })
    expect([response.status, response.body.error]).toEqual([403, 'forbidden'])
    const check = await call('GET', `${poolPath}/check?sub=intruder`, undefined, {
      Authorization: 'Bearer first-token-of-tests',
    })
    expect(check.body.available).toBe(true)
  })
})

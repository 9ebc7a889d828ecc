import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem } from './support/bodies.ts'
import { freshSlot, get, leasePath, OTHER_TOKEN, put, send, sendWith, TOKEN } from './support/client.ts'

const RESOURCES = [
  ['/lease/a%2Fb', 'GET, HEAD, PUT, DELETE, OPTIONS'],
  ['/lease/a/b', 'GET, HEAD, PUT, DELETE, OPTIONS'],
  ['/history/a', 'GET, HEAD, OPTIONS'],
  ['/leases', 'GET, HEAD, OPTIONS'],
  ['/leases/renew', 'POST, OPTIONS'],
  ['/healthz', 'GET, HEAD, OPTIONS'],
] as const

describe('OPTIONS', () => {
  test.each(RESOURCES)('%s: 204 with Allow, without a token', async (path, allow) => {
    const response = await send('OPTIONS', path, { authorization: null })
    expect([response.status, response.text, response.headers.get('Allow')]).toEqual([204, '', allow])
  })

  test('of an unknown path: 404', async () => {
    expectProblem(await send('OPTIONS', '/', { authorization: null }), 404, 'not-found')
  })
})

describe('an unsupported method', () => {
  test.each(
    RESOURCES.flatMap(([path, allow]) =>
      ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND']
        .filter(method => !allow.split(', ').includes(method))
        .map(method => [method, path, allow] as const),
    ),
  )('%s %s: 405 with Allow', async (method, path, allow) => {
    const response = await send(method, path)
    const { detail } = expectProblem(response, 405, 'method-not-allowed')
    expect(detail).toBe(`This path has only ${allow}.`)
    expect(response.headers.get('Allow')).toBe(allow)
  })
})

describe('an unknown or misspelt parameter', () => {
  test.each([
    ['GET', '/lease/a?Until=vacant', 'until'],
    ['GET', '/lease/a?until=vacant&wait=5', 'until'],
    ['PUT', '/lease/a?ttlSeconds=5', null],
    ['DELETE', '/lease/a?holder=region-a', null],
    ['GET', '/history/a?limit=1', null],
    ['GET', '/leases?slots=a', 'slot'],
    ['GET', '/leases?slot=a&=b', 'slot'],
    ['GET', '/leases?__proto__=x&constructor=y', 'prefix'],
    ['POST', '/leases/renew?dryRun=true', null],
  ])('%s %s: 422, and nothing is written', async (method, path, nearest) => {
    const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }
    const response = await send(method, path.replace('/a', `/${freshSlot()}`), method === 'GET' ? {} : write)
    const { detail } = expectProblem(response, 422, 'unknown-parameter')
    expect(detail).toContain(nearest === null ? 'takes none' : `correct it to ${nearest},`)
  })

  test('of a probe is ignored', async () => {
    expect((await send('GET', '/healthz?t=1', { authorization: null })).status).toBe(200)
  })
})

describe('an unknown path', () => {
  test.each([
    '/',
    '/lease',
    '/lease/',
    '/history/',
    '/leases/',
    '/leases/a',
    '/LEASE/a',
    '//lease/a',
    '/v1/lease/a',
    '/%6Cease/a',
    '/lease%2Fa',
    '/healthz/',
    '/leases/renew/',
    '/lease/%2e%2e',
    '/lease/.',
  ])('%s: 404', async path => {
    expectProblem(await send('GET', path), 404, 'not-found')
    const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }
    expectProblem(await send('PUT', path, write), 404, 'not-found')
  })
})

describe('one slot in every encoding', () => {
  test('ns/name, ns%2Fname and ns%2fname', async () => {
    const name = crypto.randomUUID()
    const write = (encoded: string, ifMatch: number) =>
      send('PUT', `/lease/ns${encoded}${name}`, { headers: { 'If-Match': `${ifMatch}`, 'X-Holder': 'region-a' } })
    expectLease(await write('/', 0), 200, { generation: 1 })
    expectLease(await write('%2F', 1), 200, { generation: 2 })
    expectLease(await write('%2f', 2), 200, { generation: 3 })
    for (const encoded of ['/', '%2F', '%2f', '%2F'.toLowerCase()]) {
      expectLease(await send('GET', `/lease/ns${encoded}${name}`), 200, { generation: 3 })
    }
  })

  test('decoded only once: %252F is another slot', async () => {
    const name = crypto.randomUUID()
    const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }
    await send('PUT', `/lease/ns%2F${name}`, write)
    expect((await send('GET', `/lease/ns%252F${name}`)).status).toBe(404)
    expect((await get(`ns%2F${name}`)).status).toBe(404)
  })

  test('an empty segment must be encoded', async () => {
    const name = crypto.randomUUID()
    expectProblem(await send('GET', `/lease/${name}//b`), 400, 'invalid-slot')
    expectLease(await put(`${name}//b`, 0), 200, { generation: 1 })
    expectLease(await send('GET', `/lease/${name}/%2Fb`), 200, { generation: 1 })
  })

  test('a trailing slash is part of the slot', async () => {
    const name = crypto.randomUUID()
    expectLease(await put(`${name}/`, 0), 200, { generation: 1 })
    expectLease(await send('GET', `/lease/${name}/`), 200, { generation: 1 })
    expectProblem(await send('GET', `/lease/${name}`), 404, 'not-found')
  })

  test('different names are different slots: case, extra slash, space, Unicode composition', async () => {
    const name = crypto.randomUUID()
    await put(`${name}/é`, 0)
    for (const other of [`${name}/É`, `${name}//é`, `${name}/é/`, `/${name}/é`, `${name}/é `, `${name}/e\u0301`]) {
      expect((await get(other)).status, other).toBe(404)
    }
  })

  test.each([
    ['a slash', '/'],
    ['encoded dots and slashes', '../../leases'],
    ['NUL', 'a\0b'],
    ['a options mark and a hash', 'a?b#c'],
    ['an emoji', '😀'],
    ['a byte order mark', '\uFEFFa'],
  ])('%s is valid', async (_, slot) => {
    const own = `${slot}${crypto.randomUUID()}`
    expectLease(await put(own, 0), 200, { generation: 1 })
    expectLease(await get(own), 200, { generation: 1 })
  })

  test.each([
    ['506 bytes', `${crypto.randomUUID()}${'x'.repeat(470)}`],
    ['506 bytes in fewer characters', `${crypto.randomUUID()}${'ä'.repeat(235)}`],
    ['506 bytes that are longer when encoded', `${crypto.randomUUID()}${'/'.repeat(470)}`],
  ])('%s are valid', async (_, slot) => {
    expect(new TextEncoder().encode(slot).length).toBe(506)
    expectLease(await put(slot, 0), 200, { generation: 1 })
    expectLease(await get(slot), 200, { generation: 1 })
  })
})

describe('GET /healthz', () => {
  test.each([null, 'Bearer wrong', `Bearer ${TOKEN}`])(
    'needs no token (%s): 200 and the status',
    async authorization => {
      const response = await send('GET', '/healthz', { authorization })
      expect([response.status, response.json]).toEqual([200, { status: 'ok' }])
      expect(response.headers.get('Cache-Control')).toBe('no-store')
    },
  )

  test('HEAD: 200 without a body', async () => {
    const response = await send('HEAD', '/healthz', { authorization: null })
    expect([response.status, response.text]).toEqual([200, ''])
  })

  test('works without any token in the settings', async () => {
    const response = await sendWith({ BEARER_TOKENS_CSV: '' }, 'GET', '/healthz', { authorization: null })
    expect(response.status).toBe(200)
  })
})

describe('a token', () => {
  const expectUnauthorized = async (
    authorization: string | null,
    path = leasePath('a'),
    challenge = 'Bearer',
  ): Promise<void> => {
    for (const method of ['GET', 'PUT', 'DELETE', 'POST']) {
      const response = await send(method, path, { authorization, headers: { 'If-Match': '0', 'X-Holder': 'region-a' } })
      expect(response.status).toBe(401)
      expect(response.text).toBe('{"error":"unauthorized"}')
      expect(response.headers.get('WWW-Authenticate')).toBe(challenge)
      expect(response.headers.get('Content-Type')).toBe('application/json')
    }
  }

  test.each([TOKEN, OTHER_TOKEN])('of the allow-list is accepted: %s', async token => {
    expect((await send('GET', '/leases?limit=1', { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  test.each(['bearer', 'BEARER', 'bEARER'])('the scheme can be written %s', async scheme => {
    expect((await send('GET', '/leases?limit=1', { authorization: `${scheme} ${TOKEN}` })).status).toBe(200)
  })

  test.each<readonly [rule: string, authorization: string]>([
    ['a wrong token', 'Bearer wrong'],
    ['the beginning of a valid token', `Bearer ${TOKEN.slice(0, -1)}`],
    ['a valid token in upper case', `Bearer ${TOKEN.toUpperCase()}`],
    ['a long token', `Bearer ${'x'.repeat(16_000)}`],
  ])('%s: 401 with the exact body and invalid_token', async (_, authorization) => {
    await expectUnauthorized(authorization, leasePath('a'), 'Bearer error="invalid_token"')
  })

  test.each<readonly [rule: string, authorization: string | null]>([
    ['none', null],
    ['an empty header', ''],
    ['a valid token with another scheme', `Token ${TOKEN}`],
    ['two valid tokens', `Bearer ${TOKEN} ${OTHER_TOKEN}`],
    ['two headers', `Bearer ${TOKEN}, Bearer ${OTHER_TOKEN}`],
  ])('%s: 401 with the exact body', async (_, authorization) => {
    await expectUnauthorized(authorization)
  })

  test('is required before routing', async () => {
    for (const path of ['/', '/nonsense', '/lease/%', '/leases?limit=x', '/history/a'])
      await expectUnauthorized(null, path)
  })

  test('in the query is ignored', async () => {
    await expectUnauthorized(null, `/lease/a?access_token=${TOKEN}&token=${TOKEN}`)
  })

  test.each<readonly [rule: string, csv: string]>([
    ['empty', ''],
    ['only commas', ' , ,,'],
  ])('with an allow-list that is %s all requests are rejected', async (_, csv) => {
    for (const authorization of [`Bearer ${TOKEN}`, 'Bearer', 'Bearer ', 'Bearer ,', null]) {
      const response = await sendWith({ BEARER_TOKENS_CSV: csv }, 'GET', '/lease/a', { authorization })
      expect([response.status, response.text]).toEqual([401, '{"error":"unauthorized"}'])
    }
  })

  test('a token of fewer than 16 characters is rejected, and its list is not', async () => {
    const settings = { BEARER_TOKENS_CSV: `fifteen-letters,${TOKEN}` }
    const statuses = []
    for (const token of ['fifteen-letters', TOKEN])
      statuses.push((await sendWith(settings, 'GET', '/leases', { authorization: `Bearer ${token}` })).status)
    expect(statuses).toEqual([401, 200])
  })

  test('a new list takes effect with the next request', async () => {
    const path = leasePath(freshSlot())
    const authorization = 'Bearer rotated-token-1-of-2'
    expect((await sendWith({ BEARER_TOKENS_CSV: 'rotated-token-1-of-2' }, 'GET', path, { authorization })).status).toBe(
      404,
    )
    expect((await sendWith({ BEARER_TOKENS_CSV: 'rotated-token-2-of-2' }, 'GET', path, { authorization })).status).toBe(
      401,
    )
    expect((await send('GET', path)).status).toBe(404)
  })
})

describe('every response', () => {
  const sendEveryKind = async (headers: Readonly<Record<string, string>> = {}) => {
    const slot = freshSlot()
    const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a', ...headers } }
    return [
      await send('GET', leasePath(slot), { headers }),
      await send('PUT', leasePath(slot), write),
      await send('PUT', leasePath(slot), write),
      await send('GET', leasePath(slot), { headers }),
      await send('GET', leasePath(slot), { headers: { 'If-None-Match': '"1"', ...headers } }),
      await send('DELETE', leasePath(slot), { headers: { 'If-Match': '1', 'X-Holder': 'region-a', ...headers } }),
      await send('OPTIONS', leasePath(slot), { headers }),
      await send('POST', leasePath(slot), { headers }),
      await send('GET', '/leases?limit=1', { headers }),
      await send('GET', '/leases?limit=x', { headers }),
      await send('GET', '/nowhere', { headers }),
      await send('GET', leasePath(slot), { headers, authorization: null }),
      await send('PUT', leasePath(slot), { ...write, body: 'x'.repeat(65_537) }),
    ]
  }
  const STATUSES = [404, 200, 412, 200, 304, 204, 204, 405, 200, 400, 404, 401, 413]

  test('has Cache-Control: no-store and a unique X-Request-Id', async () => {
    const responses = await sendEveryKind()
    expect(responses.map(({ status }) => status)).toEqual(STATUSES)
    for (const { headers } of responses) expect(headers.get('Cache-Control')).toBe('no-store')
    const ids = responses.map(({ headers }) => headers.get('X-Request-Id'))
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test("returns the client's X-Request-Id", async () => {
    const responses = await sendEveryKind({ 'X-Request-Id': 'req_1.2:3/4+5=6@7-8' })
    for (const { headers } of responses) expect(headers.get('X-Request-Id')).toBe('req_1.2:3/4+5=6@7-8')
  })

  test.each([
    ['128 characters', 'x'.repeat(128), true],
    ['129 characters', 'x'.repeat(129), false],
    ['a space', 'a b', false],
    ['a quote', 'a"b', false],
    ['a comma', 'a,b', false],
    ['letters outside ASCII', 'ä', false],
    ['empty', '', false],
  ])('an X-Request-Id of %s is returned: %s', async (_, id, isReturned) => {
    const response = await send('GET', '/nowhere', { headers: { 'X-Request-Id': id } })
    expect(response.headers.get('X-Request-Id') === id).toBe(isReturned)
  })

  test('has no body with 204 and 304, and an ETag that matches its body', async () => {
    for (const { status, text, json, headers } of await sendEveryKind()) {
      if (status === 204 || status === 304) expect(text).toBe('')
      if (status === 200 || status === 412) {
        const tag = headers.get('ETag')
        if (tag !== null) expect(json).toMatchObject({ generation: Number(tag.slice(1, -1)) })
      }
    }
  })
})

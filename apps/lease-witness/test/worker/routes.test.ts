import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem } from './support/bodies.ts'
import { freshSlot, get, leasePath, OTHER_TOKEN, put, send, sendWith, TOKEN } from './support/client.ts'

const RESOURCES = [
  ['/lease/a%2Fb', 'GET, HEAD, PUT, DELETE, OPTIONS'],
  ['/lease/a/b', 'GET, HEAD, PUT, DELETE, OPTIONS'],
  ['/history/a', 'GET, HEAD, OPTIONS'],
  ['/leases', 'GET, HEAD, OPTIONS'],
] as const

describe('OPTIONS', () => {
  test.each(RESOURCES)('%s: 204 with Allow, and no token is needed', async (path, allow) => {
    const answer = await send('OPTIONS', path, { authorization: null })
    expect([answer.status, answer.text, answer.headers.get('Allow')]).toEqual([204, '', allow])
  })

  test('of another path: 404', async () => {
    expectProblem(await send('OPTIONS', '/', { authorization: null }), 404, 'not-found')
  })
})

describe('a method that a path does not have', () => {
  test.each(
    RESOURCES.flatMap(([path, allow]) =>
      ['POST', 'PATCH', 'TRACE', 'PROPFIND', ...(allow.includes('PUT') ? [] : ['PUT', 'DELETE'])].map(
        method => [method, path, allow] as const,
      ),
    ),
  )('%s %s: 405 with Allow', async (method, path, allow) => {
    const answer = await send(method, path)
    expectProblem(answer, 405, 'method-not-allowed')
    expect(answer.headers.get('Allow')).toBe(allow)
  })
})

describe('a path that is none', () => {
  test.each([
    '/',
    '/lease',
    '/lease/',
    '/lease?slot=a',
    '/history',
    '/history/',
    '/leases/',
    '/leases/a',
    '/lease2/a',
    '/LEASE/a',
    '//lease/a',
    '/v1/lease/a',
    '/%6Cease/a',
    '/lease%2Fa',
    '/healthz',
    '/lease/%2e%2e',
    '/lease/.',
  ])('%s: 404', async path => {
    expectProblem(await send('GET', path), 404, 'not-found')
    const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }
    expectProblem(await send('PUT', path, write), 404, 'not-found')
  })
})

describe('one slot, however it is spelled', () => {
  test('ns/name, ns%2Fname and ns%2fname', async () => {
    const name = crypto.randomUUID()
    const write = (spelling: string, ifMatch: number) =>
      send('PUT', `/lease/ns${spelling}${name}`, { headers: { 'If-Match': `${ifMatch}`, 'X-Holder': 'region-a' } })
    expectLease(await write('/', 0), 200, { generation: 1 })
    expectLease(await write('%2F', 1), 200, { generation: 2 })
    expectLease(await write('%2f', 2), 200, { generation: 3 })
    for (const spelling of ['/', '%2F', '%2f', '%2F'.toLowerCase()]) {
      expectLease(await send('GET', `/lease/ns${spelling}${name}`), 200, { generation: 3 })
    }
  })

  test('decoded once only: %252F is a slot of its own', async () => {
    const name = crypto.randomUUID()
    const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }
    await send('PUT', `/lease/ns%2F${name}`, write)
    expect((await send('GET', `/lease/ns%252F${name}`)).status).toBe(404)
    expect((await get(`ns%2F${name}`)).status).toBe(404)
  })

  test('names that differ are different slots: case, a slash more, a space, composed letters', async () => {
    const name = crypto.randomUUID()
    await put(`${name}/é`, 0)
    for (const other of [`${name}/É`, `${name}//é`, `${name}/é/`, `/${name}/é`, `${name}/é `, `${name}/e\u0301`]) {
      expect((await get(other)).status, other).toBe(404)
    }
  })

  test.each([
    ['one byte', '\u0001'],
    ['a slash', '/'],
    ['a dot within a segment', 'a.b'],
    ['encoded dots beside an encoded slash', '../../leases'],
    ['NUL', 'a\0b'],
    ['a line break', 'a\nb'],
    ['a question mark and a hash', 'a?b#c'],
    ['a backslash', 'a\\b'],
    ['a percent sign', '100%'],
    ['an emoji', '😀'],
    ['a byte order mark', '\uFEFFa'],
  ])('%s is good', async (_, slot) => {
    const own = `${slot}${crypto.randomUUID()}`
    expectLease(await put(own, 0), 200, { generation: 1 })
    expectLease(await get(own), 200, { generation: 1 })
  })

  test.each([
    ['506 bytes', `${crypto.randomUUID()}${'x'.repeat(470)}`],
    ['506 bytes in fewer characters', `${crypto.randomUUID()}${'ä'.repeat(235)}`],
    ['506 bytes that are long when encoded', `${crypto.randomUUID()}${'/'.repeat(470)}`],
  ])('%s are good', async (_, slot) => {
    expect(new TextEncoder().encode(slot).length).toBe(506)
    expectLease(await put(slot, 0), 200, { generation: 1 })
    expectLease(await get(slot), 200, { generation: 1 })
  })
})

describe('a token', () => {
  const refused = async (authorization: string | null, path = leasePath('a')): Promise<void> => {
    for (const method of ['GET', 'PUT', 'DELETE', 'POST']) {
      const answer = await send(method, path, { authorization, headers: { 'If-Match': '0', 'X-Holder': 'region-a' } })
      expect(answer.status).toBe(401)
      expect(answer.text).toBe('{"error":"unauthorized"}')
      expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer')
      expect(answer.headers.get('Content-Type')).toBe('application/json')
    }
  }

  test.each([TOKEN, OTHER_TOKEN])('of the allow-list lets in: %s', async token => {
    expect((await send('GET', '/leases?limit=1', { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  test.each(['bearer', 'BEARER', 'bEARER'])('the scheme may be written %s', async scheme => {
    expect((await send('GET', '/leases?limit=1', { authorization: `${scheme} ${TOKEN}` })).status).toBe(200)
  })

  test.each<readonly [rule: string, authorization: string | null]>([
    ['none', null],
    ['an empty header', ''],
    ['the scheme alone', 'Bearer'],
    ['a wrong one', 'Bearer wrong'],
    ['the beginning of a right one', `Bearer ${TOKEN.slice(0, -1)}`],
    ['a right one and more', `Bearer ${TOKEN}x`],
    ['a right one in capitals', `Bearer ${TOKEN.toUpperCase()}`],
    ['the whole list', `Bearer ${TOKEN},${OTHER_TOKEN}`],
    ['a right one under another scheme', `Token ${TOKEN}`],
    ['a right one as Basic', `Basic ${btoa(`x:${TOKEN}`)}`],
    ['a right one without a scheme', TOKEN],
    ['two right ones', `Bearer ${TOKEN} ${OTHER_TOKEN}`],
    ['two headers', `Bearer ${TOKEN}, Bearer ${OTHER_TOKEN}`],
    ['letters outside ASCII', 'Bearer tökén'],
    ['a long one', `Bearer ${'x'.repeat(16_000)}`],
  ])('%s: 401, word for word', async (_, authorization) => {
    await refused(authorization)
  })

  test('is asked for before it is told whether a path is one', async () => {
    for (const path of ['/', '/nonsense', '/lease/%', '/leases?limit=x', '/history/a']) await refused(null, path)
  })

  test('in the query counts for nothing', async () => {
    await refused(null, `/lease/a?access_token=${TOKEN}&token=${TOKEN}`)
  })

  test.each<readonly [rule: string, csv: string]>([
    ['empty', ''],
    ['of commas', ' , ,,'],
  ])('an allow-list that is %s lets nobody in', async (_, csv) => {
    for (const authorization of [`Bearer ${TOKEN}`, 'Bearer', 'Bearer ', 'Bearer ,', null]) {
      const answer = await sendWith({ BEARER_TOKENS_CSV: csv }, 'GET', '/lease/a', { authorization })
      expect([answer.status, answer.text]).toEqual([401, '{"error":"unauthorized"}'])
    }
  })

  test('an absent allow-list lets nobody in', async () => {
    const question = { authorization: 'Bearer undefined' }
    expect((await sendWith({ BEARER_TOKENS_CSV: undefined }, 'GET', '/lease/a', question)).status).toBe(401)
  })

  test('white space and empty entries of the list are nothing', async () => {
    const bindings = { BEARER_TOKENS_CSV: ' ,\n first-token-12 ,, second-token-34\t' }
    for (const token of ['first-token-12', 'second-token-34']) {
      const answer = await sendWith(bindings, 'GET', leasePath(freshSlot()), { authorization: `Bearer ${token}` })
      expect(answer.status).toBe(404)
    }
    expect((await sendWith(bindings, 'GET', '/lease/a')).status).toBe(401)
  })

  test('a new list counts from the next request on', async () => {
    const path = leasePath(freshSlot())
    const authorization = 'Bearer rotated-token-1'
    expect((await sendWith({ BEARER_TOKENS_CSV: 'rotated-token-1' }, 'GET', path, { authorization })).status).toBe(404)
    expect((await sendWith({ BEARER_TOKENS_CSV: 'rotated-token-2' }, 'GET', path, { authorization })).status).toBe(401)
    expect((await send('GET', path)).status).toBe(404)
  })
})

describe('on every answer', () => {
  const everyKind = async (headers: Readonly<Record<string, string>> = {}) => {
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

  test('Cache-Control: no-store, and an X-Request-Id of its own', async () => {
    const answers = await everyKind()
    expect(answers.map(({ status }) => status)).toEqual(STATUSES)
    for (const { headers } of answers) expect(headers.get('Cache-Control')).toBe('no-store')
    const ids = answers.map(({ headers }) => headers.get('X-Request-Id'))
    for (const id of ids) expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test("the caller's own X-Request-Id is kept", async () => {
    const answers = await everyKind({ 'X-Request-Id': 'req_1.2:3/4+5=6@7-8' })
    for (const { headers } of answers) expect(headers.get('X-Request-Id')).toBe('req_1.2:3/4+5=6@7-8')
  })

  test.each([
    ['128 characters', 'x'.repeat(128), true],
    ['129 characters', 'x'.repeat(129), false],
    ['a space', 'a b', false],
    ['a quote', 'a"b', false],
    ['a comma', 'a,b', false],
    ['letters outside ASCII', 'ä', false],
    ['empty', '', false],
  ])('an X-Request-Id of %s is kept: %s', async (_, id, isKept) => {
    const answer = await send('GET', '/nowhere', { headers: { 'X-Request-Id': id } })
    expect(answer.headers.get('X-Request-Id') === id).toBe(isKept)
  })

  test('204 and 304 have no body, and no answer names another entity tag than that of its body', async () => {
    for (const { status, text, json, headers } of await everyKind()) {
      if (status === 204 || status === 304) expect(text).toBe('')
      if (status === 200 || status === 412) {
        const tag = headers.get('ETag')
        if (tag !== null) expect(json).toMatchObject({ generation: Number(tag.slice(1, -1)) })
      }
    }
  })
})

import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem, parseHistory } from './support/bodies.ts'
import {
  FINGERPRINT,
  hashToken,
  leasePath,
  put,
  type ReceivedResponse,
  type SendOptions,
  send,
  sendWith,
} from './support/client.ts'
import { captureLogs } from './support/logs.ts'

const WRITER = 'token-of-the-eu-writer-0123456789'
const READER = 'token-of-the-eu-reader-0123456789'
const ANY_HOLDER = 'token-for-any-holder-0123456789'
const EXPIRED = 'token-that-has-expired-0123456789'
const TOKENS = [WRITER, READER, ANY_HOLDER, EXPIRED]

const policies = [
  { name: 'eu-writer', token: await hashToken(WRITER), access: 'write', slots: ['eu/', 'é/'], holders: ['eu/*', 'eu'] },
  { name: 'eu-reader', token: await hashToken(READER), access: 'read', slots: ['eu/'] },
  { name: 'any-holder', token: await hashToken(ANY_HOLDER), access: 'write', slots: ['eu/'] },
  { name: 'expired', token: await hashToken(EXPIRED), access: 'write', expiresAt: '2020-01-01T00:00:00Z' },
]
const TOKEN_POLICIES = JSON.stringify(policies)

const sendAs = (token: string, method: string, path: string, options: SendOptions = {}): Promise<ReceivedResponse> =>
  sendWith({ TOKEN_POLICIES }, method, path, { authorization: `Bearer ${token}`, ...options })

const expectForbidden = (response: ReceivedResponse): void => {
  expectProblem(response, 403, 'forbidden')
  expect(response.headers.get('WWW-Authenticate')).toBe('Bearer error="insufficient_scope"')
  expect(response.headers.get('ETag')).toBeNull()
}

/** A PUT as one of the holders of the writer. */
const write = (ifMatch: number, holder = 'eu/0'): SendOptions => ({
  headers: { 'If-Match': String(ifMatch) },
  body: JSON.stringify({ holder }),
})

describe('a token with slot prefixes', () => {
  test('reads and writes slots in them, in every encoding', async () => {
    const name = crypto.randomUUID()
    expectLease(await sendAs(WRITER, 'PUT', `/lease/eu/${name}`, write(0)), 200, { generation: 1 })
    for (const path of [`/lease/eu/${name}`, `/lease/eu%2F${name}`, `/lease/eu%2f${name}`, `/lease/%65u%2F${name}`]) {
      expectLease(await sendAs(WRITER, 'GET', path), 200, { generation: 1 })
      expectLease(await sendAs(READER, 'GET', path), 200, { generation: 1 })
    }
    expect((await sendAs(WRITER, 'GET', `/history/eu/${name}`)).status).toBe(200)
    expect((await sendAs(READER, 'HEAD', `/lease/eu/${name}`)).status).toBe(200)
    const headers = { 'If-Match': '1', 'X-Holder': 'eu/0' }
    expect((await sendAs(WRITER, 'DELETE', `/lease/eu%2f${name}`, { headers })).status).toBe(204)
    expectLease(await sendAs(WRITER, 'PUT', `/lease/%C3%A9/${name}`, write(0, 'eu')), 200, { generation: 1 })
  })

  const OUTSIDE: readonly (readonly [rule: string, toPath: (name: string) => string])[] = [
    ['another prefix', name => `us/${name}`],
    ['an encoded slash', name => `us%2F${name}`],
    ['upper case', name => `EU/${name}`],
    ['the prefix without its slash', name => `eu${name}`],
    ['the prefix encoded twice', name => `eu%252F${name}`],
    ['the prefix in the middle', name => `us/eu/${name}`],
    ['encoded dot segments that lead into the prefix', name => `us%2F..%2Feu%2F${name}`],
    ['dot segments in encoded dots that lead out of the prefix', name => `eu/%2e%2E/us/${name}`],
    ['fullwidth letters', name => `%EF%BD%85%EF%BD%95/${name}`],
    ['another composition of a letter', name => `e%CC%81/${name}`],
    ['a backslash', name => `eu%5C${name}`],
  ]

  test.each(OUTSIDE)('cannot use a slot outside: %s', async (_, toPath) => {
    const path = toPath(crypto.randomUUID())
    const written = await send('PUT', `/lease/${path}`, { headers: { 'If-Match': '0' }, body: '{"holder":"eu/0"}' })
    expect(written.status).toBe(200)
    const headers = { 'If-Match': '1', 'If-None-Match': '"0"', Prefer: 'wait=1', 'X-Holder': 'eu/0' }
    for (const token of [WRITER, READER]) {
      for (const resource of ['lease', 'history']) {
        expectForbidden(await sendAs(token, 'GET', `/${resource}/${path}`, { headers }))
        const head = await sendAs(token, 'HEAD', `/${resource}/${path}`)
        expect([head.status, head.headers.get('ETag')]).toEqual([403, null])
      }
      expectForbidden(await sendAs(token, 'PUT', `/lease/${path}`, write(1)))
      expectForbidden(await sendAs(token, 'PUT', `/lease/${path}`, { headers: { 'If-None-Match': '*' } }))
      expectForbidden(await sendAs(token, 'PUT', `/lease/${path}`, { body: '{' }))
      const release = { headers: { 'If-Match': '1', 'X-Holder': 'eu/0' } }
      expectForbidden(await sendAs(token, 'DELETE', `/lease/${path}`, release))
    }
    expectLease(await send('GET', `/lease/${path}`), 200, { generation: 1 })
  })

  test.each(['', '?prefix=', '?prefix=eu', '?prefix=EU/', '?prefix=us/', '?prefix=eu%2', '?limit=1', '?cursor=x'])(
    'cannot list %j',
    async query => {
      for (const token of [WRITER, READER]) expectForbidden(await sendAs(token, 'GET', `/leases${query}`))
      const head = await sendAs(READER, 'HEAD', `/leases${query}`)
      expect(head.status).toBe(403)
    },
  )

  test.each(['?prefix=eu/', '?prefix=eu%2F', '?prefix=eu/x&limit=1'])('can list %j', async query => {
    for (const token of [WRITER, READER]) {
      const { status, json } = await sendAs(token, 'GET', `/leases${query}`)
      expect([status, Object(json).consistency]).toEqual([200, 'eventual'])
    }
  })

  test.each(['us//a', '/eu/a', 'us//../us/a', '//us/a'])(
    'cannot use the path %s, which a proxy may change',
    async path => {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const headers = { 'If-Match': '0', 'X-Holder': 'eu/0' }
        const { status } = await sendAs(WRITER, method, `/lease/${path}`, { headers })
        expect([400, 403]).toContain(status)
      }
    },
  )

  test('learns nothing about a slot outside from an invalid request', async () => {
    const path = `/lease/us/${crypto.randomUUID()}`
    expectForbidden(await sendAs(WRITER, 'PUT', path, { headers: { 'If-Match': 'x' } }))
    expectForbidden(await sendAs(WRITER, 'DELETE', path))
    expectProblem(await sendAs(WRITER, 'GET', '/lease/us%zz'), 400, 'invalid-slot')
    expectProblem(await sendAs(WRITER, 'POST', path), 405, 'method-not-allowed')
  })
})

describe('a request about several slots', () => {
  const writeAll = (slots: readonly string[]) => Promise.all(slots.map(slot => put(slot, 0, { holder: 'eu/0' })))
  const toQuery = (slots: readonly string[]) => slots.map(slot => `slot=${encodeURIComponent(slot)}`).join('&')
  const toBody = (slots: readonly string[], holder = 'eu/0'): SendOptions => ({
    body: JSON.stringify({ holder, leases: slots.map(slot => ({ slot, generation: 1 })) }),
  })
  const toSlots = (): { inside: string; outside: string[] } => {
    const name = crypto.randomUUID()
    return { inside: `eu/${name}`, outside: [`us/${name}`, `EU/${name}`, `/eu/${name}`, `eu%2F${name}`, `eu${name}`] }
  }

  test('renews and reads the slots that the policy permits only', async () => {
    const { inside, outside } = toSlots()
    await writeAll([inside, ...outside])
    const slots = [...outside.slice(0, 2), inside, ...outside.slice(2)]
    const { status, json } = await sendAs(READER, 'GET', `/leases?${toQuery(slots)}`)
    expect(status).toBe(200)
    const expected = slots.map(slot => (slot === inside ? { slot, generation: 1 } : { slot, error: 'forbidden' }))
    expect(json).toMatchObject({ leases: expected })
    const renewed = await sendAs(WRITER, 'POST', '/leases/renew', toBody(slots))
    expect(renewed.status).toBe(200)
    expect(Object(renewed.json).results).toMatchObject(
      slots.map(slot => (slot === inside ? { slot, status: 200 } : { slot, status: 403, error: 'forbidden' })),
    )
    for (const slot of outside) {
      expect(renewed.text).not.toContain(`"slot":"${slot}","status":200`)
      expectLease(await send('GET', leasePath(slot)), 200, { generation: 1 })
    }
  })

  test('is 403 if the policy permits none of them', async () => {
    const { inside, outside } = toSlots()
    await writeAll([inside, ...outside])
    for (const token of [WRITER, READER]) {
      expectForbidden(await sendAs(token, 'GET', `/leases?${toQuery(outside)}`))
      expectForbidden(await sendAs(token, 'POST', '/leases/renew', toBody(outside)))
    }
    expectForbidden(await sendAs(READER, 'POST', '/leases/renew', toBody([inside])))
    expectForbidden(await sendAs(WRITER, 'POST', '/leases/renew', toBody([inside], 'us/0')))
    expectLease(await send('GET', leasePath(inside)), 200, { generation: 1 })
  })
})

describe('a token with read access', () => {
  test('cannot write, and changes nothing', async () => {
    const slot = `eu/${crypto.randomUUID()}`
    await put(slot, 0)
    const headers = { 'If-Match': '1', 'X-Holder': 'region-a' }
    for (const path of [leasePath(slot), `/lease/${slot}`]) {
      expectForbidden(await sendAs(READER, 'PUT', path, { headers }))
      expectForbidden(await sendAs(READER, 'DELETE', path, { headers }))
    }
    expectLease(await sendAs(READER, 'GET', leasePath(slot)), 200, { generation: 1, holder: 'region-a' })
  })
})

describe('a token with holders', () => {
  test.each(['us/0', 'eu2', 'x eu/0'])('cannot act as %s', async holder => {
    const slot = `eu/${crypto.randomUUID()}`
    expectForbidden(await sendAs(WRITER, 'PUT', leasePath(slot), write(0, holder)))
    const inHeader = { headers: { 'If-Match': '0', 'X-Holder': holder } }
    expectForbidden(await sendAs(WRITER, 'PUT', leasePath(slot), inHeader))
    const renewal = { headers: { 'If-Match': '1' }, body: JSON.stringify({ holder, op: 'renew' }) }
    await put(slot, 0, { holder })
    expectForbidden(await sendAs(WRITER, 'PUT', leasePath(slot), renewal))
    const release = { headers: { 'If-Match': '1', 'X-Holder': holder } }
    expectForbidden(await sendAs(WRITER, 'DELETE', leasePath(slot), release))
    expectLease(await sendAs(WRITER, 'GET', leasePath(slot)), 200, { generation: 1, holder })
    expect((await sendAs(ANY_HOLDER, 'DELETE', leasePath(slot), release)).status).toBe(204)
  })

  test('cannot take over the name in one of two places', async () => {
    const options = { headers: { 'If-Match': '0', 'X-Holder': 'us/0' }, body: '{"holder":"eu/0"}' }
    const response = await sendAs(WRITER, 'PUT', leasePath(`eu/${crypto.randomUUID()}`), options)
    expectProblem(response, 400, 'holder-mismatch')
  })
})

describe('a token that is not accepted', () => {
  test.each([
    ['expired', EXPIRED, TOKEN_POLICIES],
    ['of no policy', 'another-token', TOKEN_POLICIES],
    ['the hash of a policy', policies[0]?.token ?? '', TOKEN_POLICIES],
    ['of policies that are not JSON', WRITER, `${TOKEN_POLICIES}]`],
    ['of a policy with an unknown field', WRITER, JSON.stringify([{ ...policies[0], slot: 'eu/' }])],
    ['without policies', WRITER, ''],
  ])('%s: 401', async (_, token, text) => {
    using _logged = captureLogs()
    for (const path of ['/lease/eu/a', '/history/eu/a', '/leases?prefix=eu/', '/nowhere']) {
      const options = { authorization: `Bearer ${token}` }
      const response = await sendWith({ TOKEN_POLICIES: text }, 'GET', path, options)
      expect([response.status, response.text]).toEqual([401, '{"error":"unauthorized"}'])
      expect(response.headers.get('WWW-Authenticate')).toBe('Bearer error="invalid_token"')
    }
  })

  test('an invalid policy is logged, and rejects no other token', async () => {
    using logged = captureLogs()
    const text = JSON.stringify([{ ...policies[0], token: WRITER }, policies[1]])
    const options = { authorization: `Bearer ${READER}` }
    expect((await sendWith({ TOKEN_POLICIES: text }, 'GET', '/lease/eu/a', options)).status).toBe(404)
    expect((await sendWith({ TOKEN_POLICIES: text }, 'GET', '/lease/eu/a')).status).toBe(404)
    expect(logged.lines()[0]).toMatchObject({
      level: 'error',
      msg: 'invalid-settings',
      detail: expect.stringContaining('TOKEN_POLICIES policy 1: token must be'),
    })
    expect(logged.text()).not.toContain(WRITER)
  })
})

describe('logs and the history name a token by its policy', () => {
  test('a grant, a rejection, an expired token', async () => {
    using logged = captureLogs()
    const settings = { TOKEN_POLICIES, LOG_LEVEL: 'info' }
    const path = leasePath(`eu/${crypto.randomUUID()}`)
    for (const [token, options] of [
      [WRITER, write(0)],
      [READER, write(1)],
      [EXPIRED, write(1)],
    ] as const) {
      await sendWith(settings, 'PUT', path, { authorization: `Bearer ${token}`, ...options })
    }
    expect(logged.lines().map(({ token, status, outcome }) => [token, status, outcome])).toEqual([
      ['eu-writer', 200, 'granted'],
      ['eu-reader', 403, 'forbidden'],
      ['expired', 401, 'unauthorized'],
    ])
  })

  test('in the history', async () => {
    const slot = `eu/${crypto.randomUUID()}`
    await sendAs(WRITER, 'PUT', leasePath(slot), write(0))
    await sendAs(ANY_HOLDER, 'DELETE', leasePath(slot), { headers: { 'If-Match': '1', 'X-Holder': 'eu/0' } })
    await put(slot, 2)
    const { transitions } = parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`))
    expect(transitions.map(({ event, token }) => [event, token])).toEqual([
      ['acquired', FINGERPRINT],
      ['released', 'any-holder'],
      ['acquired', 'eu-writer'],
    ])
  })

  test('and no response, list, history or log line contains a token', async () => {
    using logged = captureLogs()
    const settings = { TOKEN_POLICIES, LOG_LEVEL: 'debug' }
    const texts: string[] = []
    for (const token of TOKENS) {
      const slot = `eu/${crypto.randomUUID()}`
      const authorization = `Bearer ${token}`
      const headers = { 'If-Match': '0', 'X-Holder': 'eu/0', 'X-Lease-Slot': `ns/${token}` }
      for (const [method, path] of [
        ['PUT', leasePath(slot)],
        ['GET', leasePath(slot)],
        ['GET', `/history/${encodeURIComponent(slot)}`],
        ['GET', '/leases?prefix=eu/'],
        ['DELETE', leasePath(slot)],
        ['OPTIONS', leasePath(slot)],
        ['GET', `/lease/${token}`],
        ['GET', `/leases?prefix=${token}`],
      ] as const) {
        const response = await sendWith(settings, method, path, { authorization, headers })
        texts.push(response.text, JSON.stringify([...response.headers]))
      }
    }
    for (const token of TOKENS) expect([...texts, logged.text()].join('\n')).not.toContain(token)
    expect(logged.text()).toContain('ns/<redacted>')
  })
})

import { describe, expect, test } from 'vitest'
import { expectLease } from './support/bodies.ts'
import {
  FINGERPRINT,
  freshSlot,
  leasePath,
  OTHER_TOKEN,
  type ReceivedResponse,
  type SendOptions,
  sendWith,
  TOKEN,
} from './support/client.ts'
import { captureLogs, type LogLine } from './support/logs.ts'
import { expired, held, seed } from './support/slots.ts'

const HOLDER = { 'X-Holder': 'region-a' }

/** The log lines of one request at a level. */
const readLines = async (
  level: string,
  method: string,
  path: string,
  options: SendOptions = {},
): Promise<LogLine[]> => {
  using logged = captureLogs()
  await sendWith({ LOG_LEVEL: level }, method, path, options)
  // The background jobs of the witness write lines of their own.
  return logged.lines().filter(line => 'requestId' in line)
}

const held4 = async (): Promise<string> => {
  const slot = freshSlot()
  await seed(slot, held({ generation: 4 }))
  return slot
}

describe('one line for each request', () => {
  test.each<readonly [rule: string, method: string, options: SendOptions, line: LogLine]>([
    ['a read', 'GET', {}, { outcome: 'read', status: 200, generation: 4 }],
    ['a HEAD', 'HEAD', {}, { outcome: 'read', status: 200, generation: 4 }],
    [
      'a rejection by generation',
      'PUT',
      { headers: { 'If-Match': '3', ...HOLDER } },
      { outcome: 'rejected-generation', status: 412, generation: 4 },
    ],
    [
      'a rejection by holder',
      'PUT',
      { headers: { 'If-Match': '4', 'X-Holder': 'region-b' } },
      { outcome: 'rejected-held', status: 412, generation: 4 },
    ],
    [
      'a renewal by another holder',
      'PUT',
      { headers: { 'If-Match': '4', 'X-Holder': 'region-b' }, body: '{"op":"renew"}' },
      { outcome: 'rejected-not-holder', status: 412, generation: 4 },
    ],
    [
      'a release',
      'DELETE',
      { headers: { 'If-Match': '4', ...HOLDER } },
      { outcome: 'released', status: 204, generation: 5 },
    ],
    ['an invalid request', 'PUT', {}, { outcome: 'missing-if-match', status: 400 }],
    ['a wrong method', 'POST', {}, { outcome: 'method-not-allowed', status: 405 }],
    ['a preflight', 'OPTIONS', { authorization: null }, { outcome: 'options', status: 204 }],
    ['no token', 'GET', { authorization: null }, { outcome: 'unauthorized', status: 401 }],
    ['a body too large', 'PUT', { body: 'x'.repeat(65_537) }, { outcome: 'body-too-large', status: 413 }],
  ])('%s', async (_, method, options, line) => {
    const slot = await held4()
    const headers = { 'X-Lease-Slot': 'ns/name', 'X-Request-Id': 'req-1', ...options.headers }
    const lines = await readLines('info', method, leasePath(slot), { ...options, headers })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      level: 'info',
      msg: 'request',
      service: 'lease-witness',
      requestId: 'req-1',
      method,
      leaseSlot: 'ns/name',
      ...(options.authorization === null ? {} : { token: FINGERPRINT }),
      ms: expect.any(Number),
      ...line,
    })
    const reachesSlot = ![400, 401, 405, 413].includes(Number(line.status)) && method !== 'OPTIONS'
    if (reachesSlot || line.status === 400) expect(lines[0]).toMatchObject({ slot })
    expect(lines[0]).not.toHaveProperty('request')
  })

  test('a grant', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 4 }))
    const lines = await readLines('info', 'PUT', leasePath(slot), { headers: { 'If-Match': '4', ...HOLDER } })
    expect(lines).toMatchObject([{ outcome: 'granted', status: 200, generation: 5, slot, token: FINGERPRINT }])
  })

  test.each<readonly [rule: string, authorization: string | null, token: string | undefined]>([
    ['no token', null, undefined],
    ['another scheme', `Basic ${TOKEN}`, undefined],
    ['an unknown token', 'Bearer unknown-token', 'sha256:9206c239'],
    ['another accepted token', `Bearer ${OTHER_TOKEN}`, 'sha256:199d6daf'],
  ])('names the token: %s', async (_, authorization, token) => {
    const [line] = await readLines('info', 'GET', leasePath(freshSlot()), { authorization })
    expect(line?.token).toBe(token)
  })

  test('a release of a slot that was never written', async () => {
    const lines = await readLines('info', 'DELETE', leasePath(freshSlot()), { headers: { 'If-Match': '0', ...HOLDER } })
    expect(lines).toMatchObject([{ outcome: 'nothing-to-release', status: 204 }])
  })

  test('a renewal of many leases names the first ten that were not renewed', async () => {
    const own = await held4()
    const others = Array.from({ length: 12 }, freshSlot)
    const leases = [...others, own].map(slot => ({ slot, generation: 4 }))
    const body = JSON.stringify({ holder: 'region-a', leases })
    expect(await readLines('info', 'POST', '/leases/renew', { body })).toMatchObject([
      { outcome: 'renewed-in-part', status: 200, notRenewed: { count: 12, slots: others.slice(0, 10) } },
    ])
  })

  test('a list, an unknown path, an invalid slot', async () => {
    expect(await readLines('info', 'GET', '/leases?limit=1')).toMatchObject([{ outcome: 'listed', status: 200 }])
    expect(await readLines('info', 'GET', '/nowhere')).toMatchObject([{ outcome: 'not-found', status: 404 }])
    expect(await readLines('info', 'GET', '/lease/%ff')).toMatchObject([{ outcome: 'invalid-slot', status: 400 }])
  })

  test('without X-Lease-Slot the line has no leaseSlot', async () => {
    const [line] = await readLines('info', 'GET', leasePath(freshSlot()))
    expect(line).not.toHaveProperty('leaseSlot')
  })

  test('an X-Lease-Slot longer than a slot is omitted', async () => {
    const headers = { 'X-Lease-Slot': 'x'.repeat(10_000) }
    const [line] = await readLines('info', 'GET', leasePath(freshSlot()), { headers })
    expect(line?.leaseSlot).toBe('<10000 characters>')
  })

  test('input with line breaks stays in one line', async () => {
    const slot = `a\n{"msg":"request"}\r\n${freshSlot()}`
    using logged = captureLogs()
    await sendWith({ LOG_LEVEL: 'info' }, 'GET', leasePath(slot))
    expect(logged.text().split(/[\r\n]/)).toHaveLength(1)
    expect(logged.lines()).toMatchObject([{ slot }])
  })
})

describe('a successful renewal, a wait or a 304 writes its line at debug only', () => {
  test.each<readonly [rule: string, method: string, options: SendOptions, line: LogLine]>([
    [
      'a read of a known generation',
      'GET',
      { headers: { 'If-None-Match': '"4"' } },
      { outcome: 'not-modified', status: 304, generation: 4 },
    ],
    [
      'a wait that ends without a change',
      'GET',
      { headers: { 'If-None-Match': '"4"', Prefer: 'wait=1' } },
      { outcome: 'not-modified', status: 304, generation: 4 },
    ],
    [
      'a wait that a change ends',
      'GET',
      { headers: { 'If-None-Match': '"3"', Prefer: 'wait=1' } },
      { outcome: 'read', status: 200, generation: 4 },
    ],
    [
      'a renewal',
      'PUT',
      { headers: { 'If-Match': '4', ...HOLDER }, body: '{"op":"renew"}' },
      { outcome: 'renewed', status: 200, generation: 5 },
    ],
    [
      'a renewal by acquire',
      'PUT',
      { headers: { 'If-Match': '4', ...HOLDER } },
      { outcome: 'renewed', status: 200, generation: 5 },
    ],
  ])('%s', async (_, method, options, line) => {
    expect(await readLines('info', method, leasePath(await held4()), options)).toEqual([])
    const lines = await readLines('debug', method, leasePath(await held4()), options)
    expect(lines).toMatchObject([{ level: 'debug', msg: 'request', ...line }])
  })
})

describe('LOG_LEVEL', () => {
  const write = { headers: { 'If-Match': '0', ...HOLDER } }

  test('error: no lines for successful and rejected requests', async () => {
    const path = leasePath(freshSlot())
    expect(await readLines('error', 'PUT', path, write)).toEqual([])
    expect(await readLines('error', 'PUT', path, write)).toEqual([])
    expect(await readLines('error', 'GET', path, { authorization: null })).toEqual([])
  })

  test.each(['info', '', 'nonsense'])('%j: one line, without the request', async level => {
    const lines = await readLines(level, 'PUT', leasePath(freshSlot()), write)
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toHaveProperty('request')
  })

  test('debug: one line, with the request', async () => {
    const lines = await readLines('debug', 'PUT', leasePath(freshSlot()), write)
    expect(lines).toMatchObject([
      { msg: 'request', request: { kind: 'acquire', holder: 'region-a', ttlMs: 30_000, generation: 0 } },
    ])
  })
})

describe('no line contains a token', () => {
  const tokens = [TOKEN, OTHER_TOKEN]

  test('wherever a client puts it, and whatever the response is', async () => {
    using logged = captureLogs()
    const responses: ReceivedResponse[] = []
    const sendAtDebug = async (method: string, path: string, options: SendOptions = {}): Promise<void> => {
      responses.push(await sendWith({ LOG_LEVEL: 'debug' }, method, path, options))
    }
    for (const token of tokens) {
      const own = crypto.randomUUID()
      const everywhere = {
        'If-Match': '0',
        'If-None-Match': `"${token}"`,
        Prefer: `wait=1; ${token}`,
        'X-Holder': token,
        'X-Lease-Slot': `ns/${token}`,
        'X-Request-Id': token,
        'Content-Type': token,
        'User-Agent': token,
        Cookie: `token=${token}`,
        'X-Token': token,
      }
      const { 'If-None-Match': _, ...write } = everywhere
      for (const path of [`/lease/${token}`, `/lease/${own}/${encodeURIComponent(`/${token}`)}`, `/lease/${own}`]) {
        const options = {
          headers: write,
          body: JSON.stringify({ holder: token, op: 'acquire', token, [token]: token }),
        }
        await sendAtDebug('GET', `${path}?access_token=${token}`, { headers: everywhere })
        await sendAtDebug('PUT', `${path}?access_token=${token}`, options)
        await sendAtDebug('PUT', `${path}?${token}`, options)
        await sendAtDebug('PUT', path, options)
        await sendAtDebug('PUT', path, options)
        await sendAtDebug('PUT', path, { ...options, body: token })
        await sendAtDebug('PUT', path, {
          ...options,
          body: JSON.stringify({ holder: token, op: token, ttlSeconds: token }),
        })
        await sendAtDebug('PUT', path, { ...options, headers: { ...write, 'If-Match': token } })
        await sendAtDebug('GET', path.replace('/lease/', '/history/'), { headers: everywhere })
        await sendAtDebug('DELETE', path, { headers: { ...write, 'If-Match': '1' } })
        await sendAtDebug('POST', path, { headers: everywhere })
        await sendAtDebug('OPTIONS', path, { headers: everywhere })
        await sendAtDebug('GET', path, { authorization: null, headers: everywhere })
      }
      await sendAtDebug('GET', `/${token}`)
      await sendAtDebug('GET', `/leases?prefix=${token}&cursor=${token}&limit=${token}`)
      for (const authorization of [
        `Bearer ${token}`,
        `bearer  ${token} `,
        `Basic ${token}`,
        `Bearer ${token}x`,
        `Bearer ${token} ${token}`,
        token,
      ]) {
        await sendAtDebug('GET', `/lease/${own}`, { authorization })
      }
    }
    expect(logged.accessLines()).toHaveLength(responses.length)
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 204, 400, 401, 404, 405, 412, 422]))
    for (const token of tokens) expect(logged.text()).not.toContain(token)
    expect(logged.text()).toContain('<redacted>')
  })

  test('or its beginning, when X-Lease-Slot is too long', async () => {
    const headers = { 'X-Lease-Slot': `${'x'.repeat(507 - TOKEN.length)}${TOKEN}` }
    const [line] = await readLines('info', 'GET', leasePath(freshSlot()), { headers })
    expect(line?.leaseSlot).not.toContain(TOKEN.slice(0, -1))
  })

  test('and the redaction does not change responses', async () => {
    using _logged = captureLogs()
    const options = { headers: { 'If-Match': '0', 'X-Holder': TOKEN } }
    expectLease(await sendWith({ LOG_LEVEL: 'debug' }, 'PUT', leasePath(freshSlot()), options), 200, { holder: TOKEN })
  })
})

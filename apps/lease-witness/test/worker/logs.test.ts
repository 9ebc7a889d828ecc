import { describe, expect, test } from 'vitest'
import { expectLease } from './support/bodies.ts'
import {
  freshSlot,
  leasePath,
  OTHER_TOKEN,
  type ReceivedResponse,
  type SendOptions,
  sendWith,
  TOKEN,
} from './support/client.ts'
import { failingKv, putLegacyRecord } from './support/kv.ts'
import { captureLogs, type LogLine } from './support/logs.ts'
import { held, replaceKv, seed } from './support/object.ts'

const HOLDER = { 'X-Holder': 'region-a' }

/** The lines that one request leaves behind at a level. */
const linesOf = async (level: string, method: string, path: string, question: SendOptions = {}): Promise<LogLine[]> => {
  using logged = captureLogs()
  await sendWith({ LOG_LEVEL: level }, method, path, question)
  return logged.lines()
}

describe('one line for each request', () => {
  const held4 = async (): Promise<string> => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    return slot
  }

  test.each<readonly [rule: string, method: string, question: SendOptions, line: LogLine]>([
    ['a read', 'GET', {}, { outcome: 'read', status: 200, generation: 4 }],
    ['a HEAD', 'HEAD', {}, { outcome: 'read', status: 200, generation: 4 }],
    [
      'a read of what is known',
      'GET',
      { headers: { 'If-None-Match': '"4"' } },
      { outcome: 'not-modified', status: 304, generation: 4 },
    ],
    ['a grant', 'PUT', { headers: { 'If-Match': '4', ...HOLDER } }, { outcome: 'granted', status: 200, generation: 5 }],
    [
      'a refusal by generation',
      'PUT',
      { headers: { 'If-Match': '3', ...HOLDER } },
      { outcome: 'rejected-generation', status: 412, generation: 4 },
    ],
    [
      'a refusal by holder',
      'PUT',
      { headers: { 'If-Match': '4', 'X-Holder': 'region-b' } },
      { outcome: 'rejected-held', status: 412, generation: 4 },
    ],
    [
      'a renewal by another',
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
    ['a fault', 'PUT', {}, { outcome: 'missing-if-match', status: 400 }],
    ['a wrong method', 'POST', {}, { outcome: 'method-not-allowed', status: 405 }],
    ['a preflight', 'OPTIONS', { authorization: null }, { outcome: 'options', status: 204 }],
    ['no token', 'GET', { authorization: null }, { outcome: 'unauthorized', status: 401 }],
    ['a body too large', 'PUT', { body: 'x'.repeat(65_537) }, { outcome: 'body-too-large', status: 413 }],
  ])('%s', async (_, method, question, line) => {
    const slot = await held4()
    const headers = { 'X-Lease-Slot': 'ns/name', 'X-Request-Id': 'req-1', ...question.headers }
    const lines = await linesOf('info', method, leasePath(slot), { ...question, headers })
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatchObject({
      level: 'info',
      msg: 'request',
      service: 'lease-witness',
      requestId: 'req-1',
      method,
      leaseSlot: 'ns/name',
      ms: expect.any(Number),
      ...line,
    })
    const reachesSlot = ![400, 401, 405, 413].includes(Number(line.status)) && method !== 'OPTIONS'
    if (reachesSlot || line.status === 400) expect(lines[0]).toMatchObject({ slot })
    expect(lines[0]).not.toHaveProperty('request')
  })

  test('a release of a slot that was never written', async () => {
    const lines = await linesOf('info', 'DELETE', leasePath(freshSlot()), { headers: { 'If-Match': '0', ...HOLDER } })
    expect(lines).toMatchObject([{ outcome: 'nothing-to-release', status: 204 }])
  })

  test('a list, a path that is none, a slot that is none', async () => {
    expect(await linesOf('info', 'GET', '/leases?limit=1')).toMatchObject([{ outcome: 'listed', status: 200 }])
    expect(await linesOf('info', 'GET', '/nowhere')).toMatchObject([{ outcome: 'not-found', status: 404 }])
    expect(await linesOf('info', 'GET', '/lease/%ff')).toMatchObject([{ outcome: 'invalid-slot', status: 400 }])
  })

  test('without X-Lease-Slot there is none in it', async () => {
    const [line] = await linesOf('info', 'GET', leasePath(freshSlot()))
    expect(line).not.toHaveProperty('leaseSlot')
  })

  test('X-Lease-Slot that is longer than a slot is left out', async () => {
    const headers = { 'X-Lease-Slot': 'x'.repeat(10_000) }
    const [line] = await linesOf('info', 'GET', leasePath(freshSlot()), { headers })
    expect(line?.leaseSlot).toBe('<10000 characters>')
  })

  test('what a caller sends cannot begin a line of its own', async () => {
    const slot = `a\n{"msg":"request"}\r\n${freshSlot()}`
    using logged = captureLogs()
    await sendWith({ LOG_LEVEL: 'info' }, 'GET', leasePath(slot))
    expect(logged.text().split(/[\r\n]/)).toHaveLength(1)
    expect(logged.lines()).toMatchObject([{ slot }])
  })
})

describe('LOG_LEVEL', () => {
  const write = { headers: { 'If-Match': '0', ...HOLDER } }

  test('error: nothing of what went well, and nothing of what was refused', async () => {
    const path = leasePath(freshSlot())
    expect(await linesOf('error', 'PUT', path, write)).toEqual([])
    expect(await linesOf('error', 'PUT', path, write)).toEqual([])
    expect(await linesOf('error', 'GET', path, { authorization: null })).toEqual([])
  })

  test('error: one line of what failed', async () => {
    const slot = freshSlot()
    await putLegacyRecord(slot, 'junk')
    const lines = await linesOf('error', 'GET', leasePath(slot))
    expect(lines).toMatchObject([
      { level: 'error', msg: 'request', outcome: 'invalid-lease-record', status: 503, slot },
    ])
  })

  test.each(['info', '', 'nonsense'])('%j: one line, without what was asked', async level => {
    const lines = await linesOf(level, 'PUT', leasePath(freshSlot()), write)
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toHaveProperty('request')
  })

  test('debug: one line, with what was asked', async () => {
    const lines = await linesOf('debug', 'PUT', leasePath(freshSlot()), write)
    expect(lines).toMatchObject([
      { msg: 'request', request: { kind: 'acquire', holder: 'region-a', ttlMs: 30_000, generation: 0 } },
    ])
  })
})

describe('no token is ever in a line', () => {
  const tokens = [TOKEN, OTHER_TOKEN]

  test('whatever place a caller puts one in, and whatever comes of it', async () => {
    using logged = captureLogs()
    const answers: ReceivedResponse[] = []
    const say = async (method: string, path: string, question: SendOptions = {}): Promise<void> => {
      answers.push(await sendWith({ LOG_LEVEL: 'debug' }, method, path, question))
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
        const question = {
          headers: write,
          body: JSON.stringify({ holder: token, op: 'acquire', token, [token]: token }),
        }
        await say('GET', `${path}?access_token=${token}`, { headers: everywhere })
        await say('PUT', `${path}?access_token=${token}`, question)
        await say('PUT', path, question)
        await say('PUT', path, { ...question, body: token })
        await say('PUT', path, { ...question, body: JSON.stringify({ holder: token, op: token, ttlSeconds: token }) })
        await say('PUT', path, { ...question, headers: { ...write, 'If-Match': token } })
        await say('GET', path.replace('/lease/', '/history/'), { headers: everywhere })
        await say('DELETE', path, { headers: { ...write, 'If-Match': '1' } })
        await say('POST', path, { headers: everywhere })
        await say('OPTIONS', path, { headers: everywhere })
        await say('GET', path, { authorization: null, headers: everywhere })
      }
      await say('GET', `/${token}`)
      await say('GET', `/leases?prefix=${token}&cursor=${token}&limit=${token}`)
      for (const authorization of [
        `Bearer ${token}`,
        `bearer  ${token} `,
        `Basic ${token}`,
        `Bearer ${token}x`,
        `Bearer ${token} ${token}`,
        token,
      ]) {
        await say('GET', `/lease/${own}`, { authorization })
      }
    }
    expect(logged.accessLines()).toHaveLength(answers.length)
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 204, 400, 401, 404, 405, 412]))
    for (const token of tokens) expect(logged.text()).not.toContain(token)
    expect(logged.text()).toContain('<redacted>')
  })

  test('not in one of what failed either', async () => {
    using logged = captureLogs()
    const slot = `${TOKEN}/${crypto.randomUUID()}`
    await replaceKv(slot, failingKv)
    await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(slot))
    await replaceKv(slot, { getWithMetadata: () => Promise.reject(new Error(`no answer for ${OTHER_TOKEN}`)) })
    await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(slot))
    const broken = `${TOKEN}/${crypto.randomUUID()}`
    await putLegacyRecord(broken, TOKEN)
    await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(broken))
    await seed(`${broken}/x`, held({ expiresAt: Number.NaN }))
    await sendWith({ LOG_LEVEL: 'debug' }, 'GET', leasePath(`${broken}/x`))
    expect(logged.lines().map(({ msg }) => msg)).toContain('unhandled-error')
    expect(logged.lines().map(({ msg }) => msg)).toContain('import-failed')
    for (const token of tokens) expect(logged.text()).not.toContain(token)
  })

  test('nor all of one but its end, where X-Lease-Slot is cut', async () => {
    const headers = { 'X-Lease-Slot': `${'x'.repeat(507 - TOKEN.length)}${TOKEN}` }
    const [line] = await linesOf('info', 'GET', leasePath(freshSlot()), { headers })
    expect(line?.leaseSlot).not.toContain(TOKEN.slice(0, -1))
  })

  test('and the masking changes no answer', async () => {
    using _logged = captureLogs()
    const question = { headers: { 'If-Match': '0', 'X-Holder': TOKEN } }
    expectLease(await sendWith({ LOG_LEVEL: 'debug' }, 'PUT', leasePath(freshSlot()), question), 200, { holder: TOKEN })
  })
})

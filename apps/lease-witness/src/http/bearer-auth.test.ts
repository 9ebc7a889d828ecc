import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createApp } from '../app.ts'
import type { LeaseService } from '../lease-service.ts'
import { parseMaxRequestsPerMinute, type WitnessSettings } from '../settings.ts'
import { parseBearerToken } from './bearer-auth.ts'
import { parseTokenList } from './domain/token-list.ts'
import { createAllowlist } from './tokens.ts'
import type { Services, SharedRequestLimit } from './types.ts'

const long = 'x'.repeat(10_000)

describe('an allow-list accepts only its tokens', () => {
  test.each<readonly [csv: string | undefined, token: string, isAllowed: boolean]>([
    [undefined, '', false],
    ['', '', false],
    [',', '', false],
    ['a', 'a', true],
    ['a', 'A', false],
    ['a', '', false],
    ['a', 'b', false],
    ['a', 'aa', false],
    ['a', 'a ', false],
    ['a', 'a\u0000', false],
    ['aa', 'a', false],
    ['aa', 'a\u0000', false],
    ['a,bb', 'a', true],
    ['a,bb', 'bb', true],
    ['a,bb', 'b', false],
    ['a,bb', 'a\u0000', false],
    ['a,bb', 'bbaa', false],
    ['a,bb', 'a,bb', false],
    [' a , bb ', 'bb', true],
    ['a,a', 'a', true],
    // More bytes than characters: a truncated token must not match.
    ['aaa', 'aaaé', false],
    ['aaa', 'aaa😀', false],
    ['é', 'é', true],
    ['é', 'Ã©', false],
    ['é', 'é€', false],
    [long, long, true],
    [long, `${long}x`, false],
    [`${long}x`, long, false],
    ['a', long, false],
  ])('list %.20j, token %.20j: %j', (csv, token, isAllowed) => {
    expect(createAllowlist(parseTokenList(csv))(token) >= 0).toBe(isAllowed)
  })
})

describe('the token of an Authorization header', () => {
  test.each<readonly [authorization: string | undefined, token: string | undefined]>([
    [undefined, undefined],
    ['', undefined],
    ['Bearer a', 'a'],
    ['bearer a', 'a'],
    ['bEaReR a', 'a'],
    ['Bearer   a', 'a'],
    ['Bearer a  ', 'a'],
    ['Bearer a=b/c+d.e-f_g~', 'a=b/c+d.e-f_g~'],
    ['Bearer', undefined],
    ['Bearer ', undefined],
    ['Bearera', undefined],
    ['Bearer\ta', undefined],
    [' Bearer a', undefined],
    ['Bearer a b', undefined],
    ['Bearer a, Bearer b', undefined],
    ['Basic a', undefined],
    ['a', undefined],
    ['X-Bearer a', undefined],
  ])('%j', (authorization, token) => {
    expect(parseBearerToken(authorization)).toBe(token)
  })
})

describe('the request limit', () => {
  const POLICY_TOKEN = 'token-with-its-own-limit'
  const services: Pick<Services, 'leases' | 'directory'> = {
    leases: { read: async () => ({ kind: 'absent' }) } as Partial<LeaseService> as LeaseService,
    directory: { list: async () => ({ kind: 'listed', leases: [], nextCursor: undefined }) },
  }
  let policies: string
  beforeAll(async () => {
    const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(POLICY_TOKEN)))
    const token = `sha256:${[...digest].map(byte => byte.toString(16).padStart(2, '0')).join('')}`
    policies = JSON.stringify([{ name: 'limited', token, access: 'read', maxRequestsPerMinute: 2 }])
  })
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2040, 0, 1) })
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  const createLimited = (settings: WitnessSettings = {}, sharedRequestLimit?: SharedRequestLimit) => {
    const lines: Record<string, unknown>[] = []
    vi.spyOn(console, 'log').mockImplementation(line => void lines.push(JSON.parse(line)))
    const all = {
      BEARER_TOKENS_CSV: 'token-a-0123456789,token-b-0123456789,short',
      TOKEN_POLICIES: policies,
      MAX_REQUESTS_PER_MINUTE: '3',
      ...settings,
    }
    const app = createApp(all, { ...services, sharedRequestLimit })
    const sendMany = async (token: string | undefined, count: number, path = '/lease/a') => {
      const statuses: number[] = []
      for (let sent = 0; sent < count; sent += 1) {
        const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
        statuses.push((await app.request(path, { headers })).status)
      }
      return statuses
    }
    return { app, lines, sendMany }
  }

  test('applies to each token alone, and starts to be refilled at once', async () => {
    const { sendMany } = createLimited()
    expect(await sendMany('token-a-0123456789', 5)).toEqual([404, 404, 404, 429, 429])
    expect(await sendMany('token-b-0123456789', 1)).toEqual([404])
    vi.setSystemTime(Date.now() + 20_000)
    expect(await sendMany('token-a-0123456789', 2)).toEqual([404, 429])
  })

  test('of a policy replaces the default', async () => {
    const { sendMany } = createLimited()
    expect(await sendMany(POLICY_TOKEN, 4)).toEqual([404, 404, 429, 429])
  })

  test('is shared by all requests without an accepted token, and leaves the others alone', async () => {
    const { sendMany } = createLimited()
    expect(await sendMany('unknown-1', 2)).toEqual([401, 401])
    expect(await sendMany('unknown-2', 2)).toEqual([401, 429])
    expect(await sendMany(undefined, 1)).toEqual([429])
    expect(await sendMany('token-a-0123456789', 1)).toEqual([404])
    expect(await sendMany(POLICY_TOKEN, 1)).toEqual([404])
  })

  test('says when to retry', async () => {
    const { app, sendMany } = createLimited()
    await sendMany('token-a-0123456789', 3)
    const response = await app.request('/lease/a', { headers: { Authorization: 'Bearer token-a-0123456789' } })
    expect(response.headers.get('Retry-After')).toBe('20')
    expect(await response.json()).toMatchObject({ error: 'too-many-requests' })
  })

  test('logs one rejection per token and ten seconds', async () => {
    const { lines, sendMany } = createLimited()
    await sendMany('token-a-0123456789', 3)
    lines.length = 0
    await sendMany('token-a-0123456789', 5)
    expect(lines).toMatchObject([
      { status: 429, outcome: 'too-many-requests', token: expect.stringMatching(/^sha256:/) },
    ])
    vi.setSystemTime(Date.now() + 10_000)
    await sendMany('token-a-0123456789', 5)
    expect(lines).toHaveLength(2)
  })

  test('is not applied if it is 0', async () => {
    const { sendMany } = createLimited({ MAX_REQUESTS_PER_MINUTE: '0' })
    expect(new Set(await sendMany('token-a-0123456789', 10))).toEqual(new Set([404]))
  })

  test.each([
    ['0', 0],
    [' 60 ', 60],
    ['', 120_000],
    ['many', 120_000],
  ])('MAX_REQUESTS_PER_MINUTE=%j is %i', (MAX_REQUESTS_PER_MINUTE, limit) => {
    expect(parseMaxRequestsPerMinute({ MAX_REQUESTS_PER_MINUTE })).toBe(limit)
  })

  test('that processes share is applied too', async () => {
    const keys: string[] = []
    const { app, sendMany } = createLimited({}, async key => {
      keys.push(key)
      return key !== 'limited'
    })
    expect(await sendMany(POLICY_TOKEN, 1)).toEqual([429])
    expect(await sendMany('token-a-0123456789', 1)).toEqual([404])
    expect(await sendMany('unknown', 1)).toEqual([401])
    expect(keys).toEqual(['limited', expect.stringMatching(/^sha256:[0-9a-f]{8}$/), ''])
    const response = await app.request('/lease/a', { headers: { Authorization: `Bearer ${POLICY_TOKEN}` } })
    expect(response.headers.get('Retry-After')).toBe('5')
  })
})

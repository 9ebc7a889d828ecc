import { hardenedEnv } from '@pool/test-kit/hardened.ts'
import { startAllocationApi, type TestAllocationApi } from '@pool/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AllocationClient, type ClientOptions, NoResponseError, ProblemError } from '../src/index.ts'

// The client against the real service: what is dropped on the way back must have one effect.

let api: TestAllocationApi
beforeAll(async () => {
  api = await startAllocationApi({ env: hardenedEnv })
})
afterAll(() => api?.stop())

const domain = 'pool.test'
const loadBalancerIP = '203.0.113.10'
const fast = { minBackoffMs: 1, maxBackoffMs: 20, maxAttempts: 10 }

const createClient = (options: Partial<ClientOptions> = {}) =>
  new AllocationClient({ baseUrl: api.url, retry: fast, ...options })
const createOperator = () => new AllocationClient({ baseUrl: api.operatorUrl, token: api.operatorToken, retry: fast })

/** Sends each request, and loses the response of those that `isLost` chooses, as a connection that breaks then does. */
const loseResponses = (isLost: (url: string) => boolean): typeof fetch => {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (!isLost(String(input))) return response
    await response.arrayBuffer()
    throw new TypeError('fetch failed', { cause: Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }) })
  }
}

/** Loses the first response of each path. */
const loseFirst = (): typeof fetch => {
  const seen = new Set<string>()
  return loseResponses(url => {
    const isFirst = !seen.has(url)
    seen.add(url)
    return isFirst
  })
}

const listEvents = async (sub: string): Promise<readonly string[]> => {
  const events: string[] = []
  for await (const { event } of createOperator().historyEntries({ domain, sub, limit: 2 })) events.unshift(event)
  return events.filter(event => !['published', 'withdrawn'].includes(event))
}

describe('a response that is lost', () => {
  test('every write of a name takes effect once', async () => {
    const client = createClient({ fetch: loseFirst() })
    const { reservationToken } = await client.reserveName({ domain, subdomain: 'lost' })
    await client.renewReservation({ domain, subdomain: 'lost', reservationToken })
    const sovereignFQDN = 'lost.pool.test'
    await client.commitName({ domain, subdomain: 'lost', reservationToken, loadBalancerIP, sovereignFQDN })
    await client.updateName({ domain, subdomain: 'lost', reservationToken, loadBalancerIP: '203.0.113.11' })
    const { freed } = await client.releaseName({ domain, subdomain: 'lost', reservationToken })
    expect(freed).toMatchObject({ state: 'active', loadBalancerIP: '203.0.113.11' })
    expect(await listEvents('lost')).toEqual(['reserved', 'committed', 'updated', 'released'])
  })

  test('reserveAndCommit holds the name, and the token is that of the reservation', async () => {
    const reserved: string[] = []
    const client = createClient({ fetch: loseFirst() })
    const { reservationToken, allocation } = await client.reserveAndCommit(
      { domain, subdomain: 'both', loadBalancerIP, createdBy: 'tests' },
      { onReserved: reservation => void reserved.push(reservation.reservationToken) },
    )
    expect(reserved).toEqual([reservationToken])
    expect(allocation).toMatchObject({ state: 'active', createdBy: 'tests' })
    expect(await listEvents('both')).toEqual(['reserved', 'committed'])
    const published = await client.waitUntilPublished({ domain, subdomain: 'both' })
    expect(published.dns).toEqual({ status: 'published' })
    expect(await client.checkName({ domain, sub: 'both' })).toMatchObject({ available: false, reason: 'active-state' })
  })

  test('without any response, the error says that the outcome is unknown, and a later call under the key settles it', async () => {
    const idempotencyKey = 'a-key-that-a-process-has-stored-0123456789'
    const cut = createClient({ fetch: loseResponses(() => true), retry: { ...fast, maxAttempts: 2 } })
    const error = await cut.reserveName({ domain, subdomain: 'cut' }, { idempotencyKey }).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(NoResponseError)
    expect(error).toMatchObject({ isOutcomeUnknown: true, attempts: 2, reasonCode: 'ECONNRESET' })
    const { reservationToken } = await createClient().reserveName({ domain, subdomain: 'cut' }, { idempotencyKey })
    await createClient().releaseName({ domain, subdomain: 'cut', reservationToken })
    expect(await listEvents('cut')).toEqual(['reserved', 'released'])
  })

  test('the cool-off of a name is not lifted twice', async () => {
    const sent: string[] = []
    const operator = new AllocationClient({
      baseUrl: api.operatorUrl,
      token: api.operatorToken,
      fetch: loseResponses(url => sent.push(url) > 0),
      retry: fast,
    })
    const error = await operator.liftCoolOff({ domain, subdomain: 'cool' }).catch((e: unknown) => e)
    expect(error).toMatchObject({ isOutcomeUnknown: true, attempts: 1 })
    expect(sent).toHaveLength(1)
  })
})

test('of clients that want one name, one gets it, whatever is lost', async () => {
  let requests = 0
  const client = createClient({ fetch: loseResponses(() => requests++ % 3 === 0) })
  const results = await Promise.allSettled(
    Array.from({ length: 12 }, () => client.reserveAndCommit({ domain, subdomain: 'race', loadBalancerIP })),
  )
  const losers = results.filter(result => result.status === 'rejected').map(({ reason }) => reason)
  expect(losers).toHaveLength(11)
  for (const error of losers) expect(error).toMatchObject({ name: 'ProblemError', code: 'conflict' })
  expect(await listEvents('race')).toEqual(['reserved', 'committed'])
})

test('a rejected commit releases the reservation', async () => {
  const client = createClient()
  const call = client.reserveAndCommit({ domain, subdomain: 'undone', loadBalancerIP: '127.0.0.300' })
  await expect(call).rejects.toMatchObject({ code: 'invalid-lb-ip', status: 422 })
  expect(await listEvents('undone')).toEqual(['reserved', 'released'])
})

test('iterates over every page', async () => {
  const client = createClient()
  const names = Array.from({ length: 7 }, (_, index) => `page-${index}`)
  await Promise.all(names.map(subdomain => client.reserveName({ domain, subdomain })))
  const listed: string[] = []
  for await (const { subdomain } of createOperator().allocations({ domain, state: 'reserved', limit: 2 })) {
    if (subdomain.startsWith('page-')) listed.push(subdomain)
  }
  expect(listed).toEqual(names)
})

test('the operations without a body, and those of the operator', async () => {
  const [client, operator] = [createClient(), createOperator()]
  expect((await client.listReservedLabels()).reserved).toContain('www')
  expect(await client.getHealth()).toMatchObject({ status: 'ok', managedDomains: [domain] })
  expect(await client.getReadiness()).toEqual({ status: 'ok' })
  expect(await client.getMetrics()).toContain('pdm_')
  expect(await client.getOpenApiDocument()).toMatchObject({ openapi: '3.1.0' })
  expect(await operator.convergeZone({ domain, dryRun: true })).toMatchObject({ dryRun: true })
  expect(await operator.listBucketClaims()).toEqual({ buckets: [] })
  expect(await operator.getSettings()).toMatchObject({ managedDomains: [domain], hasWitness: false })
  expect((await operator.listZones()).zones).toContainEqual(expect.objectContaining({ zone: domain }))
  expect(await operator.describeName({ domain, subdomain: 'free' })).toMatchObject({ state: 'free', desired: [] })
  const found: string[] = []
  for await (const { subdomain } of operator.names({ q: 'no-such-name', limit: 1 })) found.push(subdomain)
  expect(found).toEqual([])
  const unauthorized = new AllocationClient({ baseUrl: api.operatorUrl }).listBucketClaims()
  await expect(unauthorized).rejects.toMatchObject({ status: 401, code: 'unauthorized' })
})

test('an export ends with its end', async () => {
  const lines = []
  for await (const line of createOperator().exportLines()) lines.push(line.type)
  expect(lines.at(0)).toBe('header')
  expect(lines.at(-1)).toBe('end')
})

test('no error of a call has its secrets', async () => {
  const client = createClient({ token: 'bearer-secret-0123456789' })
  const reservationToken = '11111111-2222-4333-8444-555555555555'
  await client.reserveName({ domain, subdomain: 'secret' })
  const error = await client
    .releaseName({ domain, subdomain: 'secret', reservationToken }, { idempotencyKey: 'key-secret-0123456789' })
    .catch((e: unknown) => e)
  expect(error).toBeInstanceOf(ProblemError)
  expect(error).toMatchObject({ code: 'token-mismatch' })
  const text = `${JSON.stringify(error)} ${(error as Error).stack} ${error}`
  expect(text).not.toMatch(/bearer-secret|key-secret|11111111/)
})

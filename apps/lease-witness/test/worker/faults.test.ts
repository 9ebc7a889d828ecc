import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import type { LeaseObject } from '../../src/object/lease-object.ts'
import { expectLease, expectProblem, expectRetryAfter, parseRenewals, parseStatuses } from '../http/support/bodies.ts'
import {
  freshSlot,
  get,
  leasePath,
  put,
  type ReceivedResponse,
  readResponse,
  send,
  TOKEN,
} from '../http/support/client.ts'
import { captureLogs } from '../http/support/logs.ts'
import { held, seed, waitForWaiters } from '../http/support/slots.ts'
import { sendWithBindings } from './support/host.ts'
import { abortObject, readStored, replaceKv } from './support/object.ts'

const WRITE = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }

const expectUnavailable = (
  response: ReceivedResponse,
  code: 'lease-unavailable' | 'overloaded' = 'lease-unavailable',
): void => {
  const { detail } = expectProblem(response, 503, code)
  expect(detail).toContain('read the lease and compare')
  expectRetryAfter(response)
  expect(response.headers.get('ETag')).toBeNull()
}

describe('an object that restarts during a request', () => {
  test('a waiting read: 503 with Retry-After, and the next read succeeds', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    const response = get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=30' })
    await waitForWaiters(slot, 1)
    await abortObject(slot)
    expectUnavailable(await response)
    expectLease(await get(slot), 200, { generation: 4 })
    const unavailable = logged.lines().filter(({ msg }) => msg === 'object-unavailable')
    const reason = expect.stringContaining('the connection to the object was lost')
    expect(unavailable).toEqual([expect.objectContaining({ level: 'error', slot, reason })])
  })

  test('a write: 503 with Retry-After, without a retry', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    let isReading = false
    await replaceKv(slot, {
      getWithMetadata: () => {
        isReading = true
        return new Promise<never>(() => {})
      },
    })
    const response = put(slot, 0)
    while (!isReading) await new Promise(resolve => setTimeout(resolve, 5))
    await abortObject(slot)
    expectUnavailable(await response)
    expect(await readStored(slot)).toBeUndefined()
    expectLease(await put(slot, 0), 200, { generation: 1 })
  })
})

/** A namespace whose objects are unreachable. `flags` are the platform's properties of the error. */
const unreachable = (flags: object): DurableObjectNamespace<LeaseObject> => {
  const fail = () => Promise.reject(Object.assign(new Error('internal error; reference = abc'), flags))
  const stub = { read: fail, fetch: fail, write: fail, history: fail, readStatus: fail, checkHealth: fail }
  return { getByName: () => stub } as unknown as DurableObjectNamespace<LeaseObject>
}

describe('an unreachable object', () => {
  test.each<readonly [rule: string, flags: object, code: 'overloaded' | 'lease-unavailable']>([
    ['overloaded', { overloaded: true, remote: false }, 'overloaded'],
    ['lost', {}, 'lease-unavailable'],
    ['a limit or a quota, reported inside the object', { remote: true }, 'lease-unavailable'],
  ])("%s: 503 for every request, without the platform's error text", async (_, flags, code) => {
    using logged = captureLogs()
    const LEASES = unreachable(flags)
    const path = leasePath(freshSlot())
    const responses = [
      await sendWithBindings({ LEASES }, 'GET', path),
      await sendWithBindings({ LEASES }, 'GET', path, { headers: { 'If-None-Match': '"1"', Prefer: 'wait=1' } }),
      await sendWithBindings({ LEASES }, 'PUT', path, WRITE),
      await sendWithBindings({ LEASES }, 'DELETE', path, WRITE),
      await sendWithBindings({ LEASES }, 'GET', path.replace('/lease/', '/history/')),
    ]
    for (const response of responses) {
      expectUnavailable(response, code)
      expect(response.text).not.toContain('reference')
    }
    expect(logged.text()).toContain('reference = abc')
  })

  test.each([{ overloaded: true }, { remote: true }])('GET /healthz: 503 (%j)', async flags => {
    using _logged = captureLogs()
    const response = await sendWithBindings({ LEASES: unreachable(flags) }, 'GET', '/healthz', { authorization: null })
    expect([response.status, response.json]).toEqual([503, { status: 'unhealthy' }])
  })

  test('GET /healthz of an object that does not respond: 503 after 2 s', async () => {
    using _logged = captureLogs()
    const never = { checkHealth: () => new Promise<never>(() => {}) }
    const LEASES = { getByName: () => never } as unknown as DurableObjectNamespace<LeaseObject>
    const response = await sendWithBindings({ LEASES }, 'GET', '/healthz', { authorization: null })
    expect([response.status, response.json]).toEqual([503, { status: 'unhealthy' }])
  })

  test('POST /leases/renew and an exact list: an error for each slot', async () => {
    using logged = captureLogs()
    const bindings = { LEASES: unreachable({ overloaded: true }) }
    const body = JSON.stringify({ holder: 'region-a', leases: [{ slot: 'a/b', generation: 1 }] })
    const renewed = await sendWithBindings(bindings, 'POST', '/leases/renew', { body })
    expect(renewed.status).toBe(200)
    expect(parseRenewals(renewed).results).toEqual([{ slot: 'a/b', status: 503, error: 'overloaded' }])
    const listed = await sendWithBindings(bindings, 'GET', '/leases?slot=a%2Fb')
    expect(parseStatuses(listed).leases).toEqual([{ slot: 'a/b', error: 'overloaded' }])
    const unavailable = logged.lines().filter(({ msg }) => msg === 'object-unavailable')
    expect(unavailable.map(({ slot }) => slot)).toEqual(['a/b', 'a/b'])
  })
})

describe('an unexpected error', () => {
  test('in the object: 500 with the requestId of header and log, without details', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: Number.NaN }))
    const response = await get(slot, { 'X-Request-Id': 'req-of-an-error' })
    const { requestId } = expectProblem(response, 500, 'internal-error')
    expect(requestId).toBe('req-of-an-error')
    expect(response.headers.get('X-Request-Id')).toBe('req-of-an-error')
    expect(response.headers.get('Cache-Control')).toBe('no-store')
    expect(response.headers.get('Retry-After')).toBeNull()
    expect(response.text).not.toMatch(/RangeError|Invalid time|\bat |\.ts|stack/)
    const [failed, accessLine, ...more] = logged.lines().filter(line => line.requestId === requestId)
    expect(failed).toMatchObject({ level: 'error', msg: 'unhandled-error', error: { name: 'RangeError' } })
    expect(accessLine).toMatchObject({ level: 'error', msg: 'request', outcome: 'internal-error', status: 500 })
    expect(more).toEqual([])
    await seed(slot, held({ generation: 5 }))
    expectLease(await get(slot), 200, { generation: 5 })
  })

  test('in the object of one of many renewals: 500 for its slot only', async () => {
    using logged = captureLogs()
    const [bad, good] = [freshSlot(), freshSlot()]
    await seed(bad, held({ generation: 4, expiresAt: Number.NaN }))
    await seed(good, held({ generation: 4 }))
    const leases = [
      { slot: bad, generation: 3 },
      { slot: good, generation: 4 },
    ]
    const response = await send('POST', '/leases/renew', { body: JSON.stringify({ holder: 'region-a', leases }) })
    expect(parseRenewals(response).results).toMatchObject([
      { slot: bad, status: 500, error: 'internal-error' },
      { slot: good, status: 200, lease: { generation: 5 } },
    ])
    expect(logged.lines().filter(({ msg }) => msg === 'unhandled-error')).toMatchObject([{ slot: bad }])
  })

  test('in the object of one of many listed slots: an error for its slot only', async () => {
    using logged = captureLogs()
    const [bad, good] = [freshSlot(), freshSlot()]
    await seed(bad, held({ generation: 4, expiresAt: Number.NaN }))
    await seed(good, held({ generation: 4 }))
    const response = await send('GET', `/leases?${new URLSearchParams([bad, good].map(slot => ['slot', slot]))}`)
    expect(response.status).toBe(200)
    expect(parseStatuses(response).leases).toMatchObject([
      { slot: bad, error: 'internal-error' },
      { slot: good, generation: 4 },
    ])
    expect(logged.lines().filter(({ msg }) => msg === 'unhandled-error')).toMatchObject([{ slot: bad }])
  })

  test('without an X-Request-Id: a generated one, in header, body and log', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: Number.NaN }))
    const response = await get(slot)
    const { requestId } = expectProblem(response, 500, 'internal-error')
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/)
    expect(response.headers.get('X-Request-Id')).toBe(requestId)
    expect(logged.accessLines()).toMatchObject([{ requestId }])
  })

  test('in the worker: also 500', async () => {
    using logged = captureLogs()
    const fail = () => {
      throw new Error(`an error near ${TOKEN}`)
    }
    const request = new Request('http://witness.test/lease/a', { headers: { Authorization: `Bearer ${TOKEN}` } })
    const leases = { read: fail, wait: fail, write: fail, history: fail, readMany: fail, checkHealth: fail }
    const { TOKEN_POLICIES: _, ...settings } = env
    const app = createApp(settings, { leases, directory: { list: fail } })
    const response = await readResponse(await app.fetch(request))
    const { requestId } = expectProblem(response, 500, 'internal-error')
    expect(response.headers.get('X-Request-Id')).toBe(requestId)
    expect(response.text).not.toContain('an error near')
    expect(logged.accessLines()).toMatchObject([{ requestId, level: 'error', outcome: 'internal-error' }])
    expect(logged.text()).toContain('an error near')
    expect(logged.text()).not.toContain(TOKEN)
  })
})

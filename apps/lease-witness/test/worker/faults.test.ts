import { abortAllDurableObjects, createExecutionContext, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import type { LeaseObject } from '../../src/object/lease-object.ts'
import { expectLease, expectProblem, NEVER_WRITTEN } from './support/bodies.ts'
import {
  freshSlot,
  get,
  leasePath,
  put,
  type ReceivedResponse,
  readResponse,
  release,
  sendWith,
  TOKEN,
} from './support/client.ts'
import { captureLogs } from './support/logs.ts'
import { abortObject, held, readStored, replaceKv, seed, slotObject, waitForWaiters } from './support/object.ts'

const WRITE = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }

const expectUnavailable = (
  answer: ReceivedResponse,
  code: 'lease-unavailable' | 'overloaded' = 'lease-unavailable',
): void => {
  const { detail } = expectProblem(answer, 503, code)
  expect(detail).toContain('read the lease and compare')
  expect(answer.headers.get('Retry-After')).toBe('1')
  expect(answer.headers.get('ETag')).toBeNull()
}

describe('an object that goes while a request is under way', () => {
  test('a read that waits: 503 with Retry-After, and the next read is answered', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    const answer = get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=30' })
    await waitForWaiters(slot, 1)
    await abortObject(slot)
    expectUnavailable(await answer)
    expectLease(await get(slot), 200, { generation: 4 })
    const unavailable = logged.lines().filter(({ msg }) => msg === 'object-unavailable')
    expect(unavailable).toEqual([expect.objectContaining({ level: 'error', slot, reason: 'Error: restarting' })])
  })

  test('a write: 503 with Retry-After, never a guess, and it is not sent again', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    await replaceKv(slot, { getWithMetadata: () => new Promise<never>(() => {}) })
    const answer = put(slot, 0)
    await new Promise(resolve => setTimeout(resolve, 50))
    await abortObject(slot)
    expectUnavailable(await answer)
    expect(await readStored(slot)).toBeUndefined()
    expectLease(await put(slot, 0), 200, { generation: 1 })
  })

  test('every object at once: 503 with Retry-After', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    const answer = get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=30' })
    await waitForWaiters(slot, 1)
    await abortAllDurableObjects()
    expectUnavailable(await answer)
    expectLease(await get(slot), 200, { generation: 4 })
  })
})

/** A namespace whose objects cannot be reached for a reason that the platform gives. */
const unreachable = (flags: object): DurableObjectNamespace<LeaseObject> => {
  const fail = () => Promise.reject(Object.assign(new Error('internal error; reference = abc'), flags))
  const stub = { read: fail, write: fail, history: fail, cancelWait: fail }
  return { getByName: () => stub } as unknown as DurableObjectNamespace<LeaseObject>
}

describe('an object that the platform does not reach', () => {
  test.each<readonly [rule: string, flags: object, code: 'overloaded' | 'lease-unavailable']>([
    ['overloaded', { overloaded: true, remote: false }, 'overloaded'],
    ['overloaded, though it says that it may be sent again', { overloaded: true, retryable: true }, 'overloaded'],
    ['may be sent again', { retryable: true }, 'lease-unavailable'],
    ['reset', { durableObjectReset: true, remote: true }, 'lease-unavailable'],
    ['lost', {}, 'lease-unavailable'],
  ])('%s: 503 for every question, and no word of the platform in it', async (_, flags, code) => {
    using logged = captureLogs()
    const LEASES = unreachable(flags)
    const path = leasePath(freshSlot())
    const answers = [
      await sendWith({ LEASES }, 'GET', path),
      await sendWith({ LEASES }, 'GET', path, { headers: { 'If-None-Match': '"1"', Prefer: 'wait=1' } }),
      await sendWith({ LEASES }, 'PUT', path, WRITE),
      await sendWith({ LEASES }, 'DELETE', path, WRITE),
      await sendWith({ LEASES }, 'GET', path.replace('/lease/', '/history/')),
    ]
    for (const answer of answers) {
      expectUnavailable(answer, code)
      expect(answer.text).not.toContain('reference')
    }
    expect(logged.text()).toContain('reference = abc')
  })
})

describe('a defect of our own', () => {
  test('in the object: 500 with the requestId of the header and of the log, and nothing more', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: Number.NaN }))
    const answer = await get(slot, { 'X-Request-Id': 'req-of-a-defect' })
    const { requestId } = expectProblem(answer, 500, 'internal-error')
    expect(requestId).toBe('req-of-a-defect')
    expect(answer.headers.get('X-Request-Id')).toBe('req-of-a-defect')
    expect(answer.headers.get('Cache-Control')).toBe('no-store')
    expect(answer.headers.get('Retry-After')).toBeNull()
    expect(answer.text).not.toMatch(/RangeError|Invalid time|\bat |\.ts|stack/)
    const [failed, answered, ...more] = logged.lines().filter(line => line.requestId === requestId)
    expect(failed).toMatchObject({ level: 'error', msg: 'unhandled-error', error: { name: 'RangeError' } })
    expect(answered).toMatchObject({ level: 'error', msg: 'request', outcome: 'internal-error', status: 500 })
    expect(more).toEqual([])
  })

  test('without an X-Request-Id of the caller: one is made, the same in all three places', async () => {
    using logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: Number.NaN }))
    const answer = await get(slot)
    const { requestId } = expectProblem(answer, 500, 'internal-error')
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/)
    expect(answer.headers.get('X-Request-Id')).toBe(requestId)
    expect(logged.accessLines()).toMatchObject([{ requestId }])
  })

  test('in the worker: 500 too', async () => {
    using logged = captureLogs()
    const fail = () => {
      throw new Error(`a defect near ${TOKEN}`)
    }
    const request = new Request('http://witness.test/lease/a', { headers: { Authorization: `Bearer ${TOKEN}` } })
    const app = createApp({ leases: fail, directory: fail })
    const answer = await readResponse(await app.fetch(request, env, createExecutionContext()))
    const { requestId } = expectProblem(answer, 500, 'internal-error')
    expect(answer.headers.get('X-Request-Id')).toBe(requestId)
    expect(answer.text).not.toContain('a defect')
    expect(logged.accessLines()).toMatchObject([{ requestId, level: 'error', outcome: 'internal-error' }])
    expect(logged.text()).toContain('a defect near')
    expect(logged.text()).not.toContain(TOKEN)
  })

  test('of one request does no harm to the next', async () => {
    using _logged = captureLogs()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: Number.NaN }))
    expect((await get(slot)).status).toBe(500)
    await seed(slot, held({ generation: 5 }))
    expectLease(await get(slot), 200, { generation: 5 })
    expect((await release(slot, 5)).status).toBe(204)
    expectLease(await get(slot), 200, { ...NEVER_WRITTEN, generation: 6 })
  })
})

test('of many writers at once one is granted, and each loser is told the state of the winner', async () => {
  const slot = freshSlot()
  const holders = Array.from({ length: 32 }, (_, i) => `region-${i}`)
  const answers = await Promise.all(holders.map(holder => put(slot, 0, { holder })))
  const [winner, ...others] = answers.filter(({ status }) => status === 200)
  expect(others).toEqual([])
  for (const answer of answers) {
    expect([200, 412]).toContain(answer.status)
    expect(answer.json).toEqual(winner?.json)
  }
  const stored = await runInDurableObject(slotObject(slot), (_, { storage }) =>
    storage.kv.get<unknown[]>('transitions'),
  )
  expect(stored).toHaveLength(1)
})

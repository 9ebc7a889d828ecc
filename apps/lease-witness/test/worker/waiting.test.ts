import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { createLeaseService } from '../../src/object/client.ts'
import { expectLease, expectProblem, NEVER_WRITTEN } from './support/bodies.ts'
import { freshSlot, get, leasePath, put, type ReceivedResponse, release, send, sendWith } from './support/client.ts'
import { expired, held, seed, slotObject, waitForWaiters } from './support/object.ts'

/** Asks with a wait that only news can end in time, and is back once the slot's object has taken it on. */
const waitFor = async (
  slot: string,
  known: string,
  seconds = 30,
): Promise<{ readonly answer: Promise<ReceivedResponse> }> => {
  const answer = get(slot, { 'If-None-Match': known, Prefer: `wait=${seconds}` })
  await waitForWaiters(slot, 1)
  return { answer }
}

const heldSlot = async (): Promise<string> => {
  const slot = freshSlot()
  await seed(slot, held({ generation: 4 }))
  return slot
}

describe('a reader that waits is answered', () => {
  test('when the slot is released', async () => {
    const slot = await heldSlot()
    const { answer } = await waitFor(slot, '"4"')
    await release(slot, 4)
    expectLease(await answer, 200, { ...NEVER_WRITTEN, generation: 5 })
    expect((await answer).headers.get('Preference-Applied')).toBe('wait=30')
    await waitForWaiters(slot, 0)
  })

  test('when the lease is renewed: its generation differs', async () => {
    const slot = await heldSlot()
    const { answer } = await waitFor(slot, '"4"')
    await put(slot, 4, { op: 'renew' })
    expectLease(await answer, 200, { holder: 'region-a', generation: 5 })
    await waitForWaiters(slot, 0)
  })

  test('when the slot is acquired by another', async () => {
    const slot = freshSlot()
    await seed(slot, { kind: 'released', generation: 4 })
    const { answer } = await waitFor(slot, '"4"')
    await put(slot, 4, { holder: 'region-b' })
    expectLease(await answer, 200, { holder: 'region-b', generation: 5 })
    await waitForWaiters(slot, 0)
  })

  test('when the lease expires, with the state as it stands', async () => {
    const slot = freshSlot()
    const expiresAt = Date.now() + 150
    await seed(slot, held({ generation: 4, expiresAt }))
    const { answer } = await waitFor(slot, '"4"')
    expectLease(await answer, 200, { holder: 'region-a', generation: 4 })
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt)
    expect(Date.now()).toBeLessThan(expiresAt + 2_000)
    await waitForWaiters(slot, 0)
  })

  test('when it waits for *, and the lease expires', async () => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: Date.now() + 150 }))
    const { answer } = await waitFor(slot, '*')
    expectLease(await answer, 200, { generation: 4 })
  })

  test('when a slot that was never written is acquired: it knew generation 0', async () => {
    const slot = freshSlot()
    const { answer } = await waitFor(slot, '"0"')
    await put(slot, 0)
    expectLease(await answer, 200, { holder: 'region-a', generation: 1 })
    await waitForWaiters(slot, 0)
  })

  test('not by what was refused', async () => {
    const slot = await heldSlot()
    const { answer } = await waitFor(slot, '"4"')
    await put(slot, 3)
    await put(slot, 4, { holder: 'region-b' })
    await release(slot, 4, 'region-b')
    expect(await slotObject(slot).waiterCount()).toBe(1)
    await release(slot, 4)
    expectLease(await answer, 200, { generation: 5 })
  })

  test('with all others that wait', async () => {
    const slot = await heldSlot()
    const answers = Array.from({ length: 100 }, () => get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=30' }))
    await waitForWaiters(slot, 100)
    await release(slot, 4)
    for (const answer of await Promise.all(answers)) expectLease(answer, 200, { generation: 5 })
    await waitForWaiters(slot, 0)
  })

  test('by HEAD as by GET', async () => {
    const slot = await heldSlot()
    const answer = send('HEAD', leasePath(slot), { headers: { 'If-None-Match': '"4"', Prefer: 'wait=30' } })
    await waitForWaiters(slot, 1)
    await release(slot, 4)
    expect([(await answer).status, (await answer).headers.get('ETag')]).toEqual([200, '"5"'])
  })
})

describe('a reader that waits in vain', () => {
  test('is answered 304 when its seconds are over; 404 of a slot that was never written', async () => {
    const slot = await heldSlot()
    const never = freshSlot()
    const started = Date.now()
    const [known, any, unwritten] = await Promise.all([
      get(slot, { 'If-None-Match': '"3", "4"', Prefer: 'wait=1' }),
      get(slot, { 'If-None-Match': '*', Prefer: 'wait=1' }),
      get(never, { 'If-None-Match': '"0"', Prefer: 'wait=1' }),
    ])
    expect(Date.now() - started).toBeGreaterThanOrEqual(1_000)
    expect(Date.now() - started).toBeLessThan(5_000)
    for (const answer of [known, any]) {
      expect([answer.status, answer.text, answer.headers.get('ETag')]).toEqual([304, '', '"4"'])
      expect(answer.headers.get('Preference-Applied')).toBe('wait=1')
    }
    expectProblem(unwritten, 404, 'not-found')
    await waitForWaiters(slot, 0)
    await waitForWaiters(never, 0)
  })

  test('waits for a minute at most, and is told so', async () => {
    const slot = await heldSlot()
    const { answer } = await waitFor(slot, '"4"', 3_600)
    await release(slot, 4)
    expect((await answer).headers.get('Preference-Applied')).toBe('wait=60')
  })
})

describe('a reader is answered at once', () => {
  const atOnce = async (slot: string, headers: Readonly<Record<string, string>>): Promise<ReceivedResponse> => {
    const answer = await get(slot, { Prefer: 'wait=30', ...headers })
    expect(await slotObject(slot).waiterCount()).toBe(0)
    return answer
  }

  test('without If-None-Match: it knows nothing yet', async () => {
    const answer = await atOnce(await heldSlot(), {})
    expectLease(answer, 200, { generation: 4 })
    expect(answer.headers.get('Preference-Applied')).toBeNull()
  })

  test('with an If-None-Match that names no generation', async () => {
    const answer = await atOnce(await heldSlot(), { 'If-None-Match': '"x"' })
    expectLease(answer, 200, { generation: 4 })
  })

  test('when there is another generation already', async () => {
    expectLease(await atOnce(await heldSlot(), { 'If-None-Match': '"3"' }), 200, { generation: 4 })
  })

  test('when the lease has expired already', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 4 }))
    expectLease(await atOnce(slot, { 'If-None-Match': '"4"' }), 200, { generation: 4 })
    expectLease(await atOnce(slot, { 'If-None-Match': '*' }), 200, { generation: 4 })
  })

  test('when the slot was never written and it waits for *', async () => {
    expectProblem(await atOnce(freshSlot(), { 'If-None-Match': '*' }), 404, 'not-found')
  })

  test.each(['wait=0', 'wait', 'wait=x', 'respond-async', 'wait=-1'])('with Prefer: %s', async prefer => {
    const answer = await atOnce(await heldSlot(), { 'If-None-Match': '"4"', Prefer: prefer })
    expect([answer.status, answer.headers.get('Preference-Applied')]).toEqual([304, null])
  })

  test('when it writes: Prefer is for reads', async () => {
    const slot = await heldSlot()
    const headers = { 'If-Match': '4', 'X-Holder': 'region-a', Prefer: 'wait=30' }
    const answer = await send('PUT', leasePath(slot), { headers })
    expectLease(answer, 200, { generation: 5 })
    expect(answer.headers.get('Preference-Applied')).toBeNull()
  })
})

describe('a reader that goes away', () => {
  test('is forgotten by its id, and nobody else is', async () => {
    const slot = await heldSlot()
    const address = { slot, encoded: slot }
    const leases = createLeaseService(env, () => {})
    const read = (id: string) => leases.read(address, { known: [4], wait: { id, maxMs: 30_000 } })
    const [gone, stays] = [read('gone'), read('stays')]
    await waitForWaiters(slot, 2)
    await leases.cancelWait(address, 'gone')
    await waitForWaiters(slot, 1)
    expect((await gone).kind).toBe('absent')
    await release(slot, 4)
    expect(await stays).toMatchObject({ kind: 'lease', lease: { generation: 5 } })
    await waitForWaiters(slot, 0)
  })

  test('is forgotten when its request is aborted', async () => {
    const slot = await heldSlot()
    const controller = new AbortController()
    const question = { headers: { 'If-None-Match': '"4"', Prefer: 'wait=30' }, signal: controller.signal }
    const answer = sendWith({}, 'GET', leasePath(slot), question)
    await waitForWaiters(slot, 1)
    controller.abort()
    await waitForWaiters(slot, 0)
    await answer.catch(() => undefined)
  })
})

test('more than 2,000 that wait on one slot are not taken on: 503, and those who wait go on', async () => {
  const slot = await heldSlot()
  const address = { slot, encoded: slot }
  const waits = await runInDurableObject(slotObject(slot), instance =>
    Array.from({ length: 2_000 }, (_, i) => ({
      ended: instance.read(address, { known: [4], wait: { id: `wait-${i}`, maxMs: 30_000 } }),
    })),
  )
  expect(await slotObject(slot).waiterCount()).toBe(2_000)
  const answer = await get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=30' })
  expectProblem(answer, 503, 'overloaded')
  expect(answer.headers.get('Preference-Applied')).toBeNull()
  expect(answer.headers.get('Retry-After')).toBe('1')
  expectLease(await get(slot), 200, { generation: 4 })
  expect(await slotObject(slot).waiterCount()).toBe(2_000)
  await release(slot, 4)
  const kinds = await runInDurableObject(slotObject(slot), async () =>
    Promise.all(waits.map(async ({ ended }) => (await ended).kind)),
  )
  expect(new Set(kinds)).toEqual(new Set(['lease']))
  expect(await slotObject(slot).waiterCount()).toBe(0)
})

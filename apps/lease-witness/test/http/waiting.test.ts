import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem, NEVER_WRITTEN } from './support/bodies.ts'
import { freshSlot, get, leasePath, put, type ReceivedResponse, release, send, sendWith } from './support/client.ts'
import { type FakeClock, fakeClock } from './support/clock.ts'
import { countWaiters, expired, held, released, seed, waitForWaiters } from './support/slots.ts'

/** Starts a long poll, and returns when the witness has accepted it. */
const startPoll = async (
  slot: string,
  known: string,
  seconds = 20,
): Promise<{ readonly response: Promise<ReceivedResponse> }> => {
  const response = get(slot, { 'If-None-Match': known, Prefer: `wait=${seconds}` })
  await waitForWaiters(slot, 1)
  return { response }
}

/** A slot whose lease does not expire during a test. */
const heldSlot = async (): Promise<string> => {
  const slot = freshSlot()
  await seed(slot, held({ generation: 4, expiresAt: Date.now() + 600_000 }))
  return slot
}

/** Advances the clock; the host of the tests notices it at the next request. */
const expire = async (clock: FakeClock, ms: number): Promise<void> => {
  clock.advance(ms)
  await get(freshSlot())
}

describe('a waiting reader gets a response', () => {
  test('when the slot is released', async () => {
    const slot = await heldSlot()
    const { response } = await startPoll(slot, '"4"')
    await release(slot, 4)
    expectLease(await response, 200, { ...NEVER_WRITTEN, generation: 5 })
    expect((await response).headers.get('Preference-Applied')).toBe('wait=20')
    await waitForWaiters(slot, 0)
  })

  test('when the lease is renewed: its generation differs', async () => {
    const slot = await heldSlot()
    const { response } = await startPoll(slot, '"4"')
    await put(slot, 4, { op: 'renew' })
    expectLease(await response, 200, { holder: 'region-a', generation: 5 })
    await waitForWaiters(slot, 0)
  })

  test('when another holder acquires the slot', async () => {
    const slot = freshSlot()
    await seed(slot, released(4))
    const { response } = await startPoll(slot, '"4"')
    await put(slot, 4, { holder: 'region-b' })
    expectLease(await response, 200, { holder: 'region-b', generation: 5 })
    await waitForWaiters(slot, 0)
  })

  test('when the lease expires, with the current state', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: clock.now() + 150 }))
    const { response } = await startPoll(slot, '"4"')
    await expire(clock, 150)
    expectLease(await response, 200, { holder: 'region-a', generation: 4 })
    expect((await response).headers.get('Lease-Remaining-Ms')).toBe('0')
    await waitForWaiters(slot, 0)
  })

  test('when a slot that was never written is acquired, if it knows generation 0', async () => {
    const slot = freshSlot()
    const { response } = await startPoll(slot, '"0"')
    await put(slot, 0)
    expectLease(await response, 200, { holder: 'region-a', generation: 1 })
    await waitForWaiters(slot, 0)
  })

  test('but not after a rejected write', async () => {
    const slot = await heldSlot()
    const { response } = await startPoll(slot, '"4"')
    await put(slot, 3)
    await put(slot, 4, { holder: 'region-b' })
    await release(slot, 4, 'region-b')
    expect(await countWaiters(slot)).toBe(1)
    await release(slot, 4)
    expectLease(await response, 200, { generation: 5 })
  })

  test('at the same time as all other waiting readers', async () => {
    const slot = await heldSlot()
    const responses = Array.from({ length: 30 }, () => get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=20' }))
    await waitForWaiters(slot, 30)
    await release(slot, 4)
    for (const response of await Promise.all(responses)) expectLease(response, 200, { generation: 5 })
    await waitForWaiters(slot, 0)
  })

  test('to HEAD as to GET', async () => {
    const slot = await heldSlot()
    const response = send('HEAD', leasePath(slot), { headers: { 'If-None-Match': '"4"', Prefer: 'wait=20' } })
    await waitForWaiters(slot, 1)
    await release(slot, 4)
    expect([(await response).status, (await response).headers.get('ETag')]).toEqual([200, '"5"'])
  })
})

describe('a wait without a change', () => {
  test('ends with 304 after its seconds, or 404 for a slot that was never written', async () => {
    const slot = await heldSlot()
    const never = freshSlot()
    const started = Date.now()
    const [known, any, unwritten] = await Promise.all([
      get(slot, { 'If-None-Match': '"3", "4"', Prefer: 'wait=1' }),
      get(slot, { 'If-None-Match': '*', Prefer: 'wait=1' }),
      get(never, { 'If-None-Match': '"0"', Prefer: 'wait=1' }),
    ])
    // A timer can be early by a millisecond.
    expect(Date.now() - started).toBeGreaterThanOrEqual(998)
    for (const response of [known, any]) {
      expect([response.status, response.text, response.headers.get('ETag')]).toEqual([304, '', '"4"'])
      expect(response.headers.get('Preference-Applied')).toBe('wait=1')
    }
    expectProblem(unwritten, 404, 'not-found')
    await waitForWaiters(slot, 0)
    await waitForWaiters(never, 0)
  })

  test.each<readonly [setting: string | undefined, applied: string]>([
    [undefined, 'wait=25'],
    ['60', 'wait=60'],
    ['5', 'wait=5'],
    ['61', 'wait=25'],
    ['x', 'wait=25'],
  ])('lasts at most MAX_WAIT_SECONDS (%s), as Preference-Applied states', async (setting, applied) => {
    const slot = await heldSlot()
    const options = { headers: { 'If-None-Match': '"4"', Prefer: 'wait=3600' } }
    const response = sendWith({ MAX_WAIT_SECONDS: setting, LOG_LEVEL: 'error' }, 'GET', leasePath(slot), options)
    await waitForWaiters(slot, 1)
    await release(slot, 4)
    expect((await response).headers.get('Preference-Applied')).toBe(applied)
  })
})

describe('a reader that waits until the slot is vacant', () => {
  const waits: readonly (readonly [how: string, path: (slot: string) => string, headers: Record<string, string>])[] = [
    ['until=vacant', slot => `${leasePath(slot)}?until=vacant`, {}],
    ['until=vacant and its generation', slot => `${leasePath(slot)}?until=vacant`, { 'If-None-Match': '"4"' }],
    ['If-None-Match: *', leasePath, { 'If-None-Match': '*' }],
  ]
  const wait = (path: string, headers: Record<string, string>, seconds = 20) =>
    send('GET', path, { headers: { ...headers, Prefer: `wait=${seconds}` } })

  describe.each(waits)('with %s', (_, toPath, headers) => {
    test('gets the response when the slot is released, but not when the lease is renewed', async () => {
      const slot = await heldSlot()
      const response = wait(toPath(slot), headers)
      await waitForWaiters(slot, 1)
      expectLease(await put(slot, 4, { op: 'renew' }), 200, { generation: 5 })
      expectLease(await put(slot, 5), 200, { generation: 6 })
      expect(await countWaiters(slot)).toBe(1)
      await release(slot, 6)
      expectLease(await response, 200, { ...NEVER_WRITTEN, generation: 7 })
      expect((await response).headers.get('Preference-Applied')).toBe('wait=20')
      await waitForWaiters(slot, 0)
    })

    test('gets the response when the lease expires', async () => {
      const slot = freshSlot()
      await seed(slot, held({ generation: 4, expiresAt: Date.now() + 150 }))
      const response = await wait(toPath(slot), headers)
      expectLease(response, 200, { holder: 'region-a', generation: 4 })
      expect(response.headers.get('Lease-Remaining-Ms')).toBe('0')
    })

    test('gets an immediate response if the slot is released or expired, or was never written', async () => {
      const slot = freshSlot()
      await seed(slot, released(4))
      expectLease(await wait(toPath(slot), headers), 200, { ...NEVER_WRITTEN, generation: 4 })
      await seed(slot, expired({ generation: 4 }))
      expectLease(await wait(toPath(slot), headers), 200, { holder: 'region-a', generation: 4 })
      expectProblem(await wait(toPath(freshSlot()), headers), 404, 'not-found')
    })
  })

  test('and is not vacant in time: 304 if it knows the generation, otherwise 200 with the held lease', async () => {
    const slot = await heldSlot()
    const responses = waits.map(([, toPath, headers]) => wait(toPath(slot), headers, 1))
    const [unknown, known, any] = await Promise.all(responses)
    if (!unknown || !known || !any) throw new Error('a wait has no response')
    expectLease(unknown, 200, { holder: 'region-a', generation: 4 })
    expect([known.status, any.status]).toEqual([304, 304])
    for (const { headers } of [unknown, known, any]) expect(headers.get('Preference-Applied')).toBe('wait=1')
  })

  test('without Prefer: an immediate response', async () => {
    const slot = await heldSlot()
    expectLease(await send('GET', `${leasePath(slot)}?until=vacant`), 200, { generation: 4 })
  })

  test.each(['', 'released', 'VACANT'])('until=%s is 400', async until => {
    expectProblem(await send('GET', `${leasePath(freshSlot())}?until=${until}`), 400, 'invalid-until')
  })
})

describe('a reader gets an immediate response', () => {
  const expectImmediate = async (
    slot: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<ReceivedResponse> => {
    const response = await get(slot, { Prefer: 'wait=20', ...headers })
    expect(await countWaiters(slot)).toBe(0)
    return response
  }

  test('if the generation already differs', async () => {
    expectLease(await expectImmediate(await heldSlot(), { 'If-None-Match': '"3"' }), 200, { generation: 4 })
  })

  test('if the lease has already expired', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 4 }))
    expectLease(await expectImmediate(slot, { 'If-None-Match': '"4"' }), 200, { generation: 4 })
    expectLease(await expectImmediate(slot, { 'If-None-Match': '*' }), 200, { generation: 4 })
  })

  test('to * if the slot was never written', async () => {
    expectProblem(await expectImmediate(freshSlot(), { 'If-None-Match': '*' }), 404, 'not-found')
  })

  test('with If-Match', async () => {
    const headers = { 'If-Match': '"4"', 'If-None-Match': '"4"' }
    const response = await expectImmediate(await heldSlot(), headers)
    expect([response.status, response.headers.get('Preference-Applied')]).toEqual([304, null])
  })

  test.each(['wait=0', 'wait=x'])('with Prefer: %s', async prefer => {
    const response = await expectImmediate(await heldSlot(), { 'If-None-Match': '"4"', Prefer: prefer })
    expect([response.status, response.headers.get('Preference-Applied')]).toEqual([304, null])
  })

  test('to a write: Prefer applies to reads', async () => {
    const slot = await heldSlot()
    const headers = { 'If-Match': '4', 'X-Holder': 'region-a', Prefer: 'wait=20' }
    const response = await send('PUT', leasePath(slot), { headers })
    expectLease(response, 200, { generation: 5 })
    expect(response.headers.get('Preference-Applied')).toBeNull()
  })
})

describe('a reader that disconnects', () => {
  test('ends its own wait only', async () => {
    const slot = await heldSlot()
    const controller = new AbortController()
    const options = { headers: { 'If-None-Match': '"4"', Prefer: 'wait=20' }, signal: controller.signal }
    const cancelled = sendWith({ LOG_LEVEL: 'error' }, 'GET', leasePath(slot), options).catch(() => undefined)
    await waitForWaiters(slot, 1)
    const remaining = get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=20' })
    await waitForWaiters(slot, 2)
    controller.abort()
    await waitForWaiters(slot, 1)
    await cancelled
    await release(slot, 4)
    expectLease(await remaining, 200, { generation: 5 })
  })
})

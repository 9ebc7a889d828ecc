import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem, NEVER_WRITTEN, parseLease } from './support/bodies.ts'
import { freshSlot, get, leasePath, put, release, send } from './support/client.ts'
import { fakeClock, iso } from './support/clock.ts'
import { held, seed } from './support/slots.ts'

describe('PUT acquire', () => {
  test('a slot that was never written, by If-Match: 0', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const response = await put(slot, 0)
    expect(response.status).toBe(200)
    expect(response.headers.get('ETag')).toBe('"1"')
    expect(response.json).toEqual({
      holder: 'region-a',
      acquiredAt: iso(clock.now()),
      expiresAt: iso(clock.now() + 30_000),
      generation: 1,
    })
    expect((await get(slot)).json).toEqual(response.json)
  })

  test('a slot that was never written, by another generation: 412 with the zero state, and it stays unwritten', async () => {
    const slot = freshSlot()
    const response = await put(slot, 3)
    expect(response.status).toBe(412)
    expect(response.json).toEqual(NEVER_WRITTEN)
    expect(response.headers.get('ETag')).toBe('"0"')
    expectProblem(await get(slot), 404, 'not-found')
  })

  test('by the same holder before the expiry: acquiredAt stays, the generation increases', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const first = parseLease(await put(slot, 0))
    clock.advance(29_999)
    expectLease(await put(slot, 1), 200, {
      acquiredAt: first.acquiredAt,
      expiresAt: iso(clock.now() + 30_000),
      generation: 2,
    })
  })

  test('by another holder before the expiry: 412 with the current state', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const first = parseLease(await put(slot, 0))
    clock.advance(29_999)
    expect(expectLease(await put(slot, 1, { holder: 'region-b' }), 412, {})).toEqual(first)
    expect((await get(slot)).json).toEqual(first)
  })

  test('by another holder in the millisecond of the expiry', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    clock.advance(30_000)
    expectLease(await put(slot, 1, { holder: 'region-b' }), 200, {
      holder: 'region-b',
      acquiredAt: iso(clock.now()),
      generation: 2,
    })
  })
})

test('one of many concurrent writers is granted the lease, and each other one gets its state', async () => {
  const slot = freshSlot()
  const holders = Array.from({ length: 32 }, (_, i) => `region-${i}`)
  const responses = await Promise.all(holders.map(holder => put(slot, 0, { holder })))
  const [winner, ...others] = responses.filter(({ status }) => status === 200)
  expect(others).toEqual([])
  for (const response of responses) {
    expect([200, 412]).toContain(response.status)
    expect(response.json).toEqual(winner?.json)
  }
})

describe('PUT renew', () => {
  test('by the holder, unexpired: the full TTL again, also a different one', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const first = parseLease(await put(slot, 0))
    clock.advance(10_000)
    expectLease(await put(slot, 1, { op: 'renew', ttlSeconds: 5 }), 200, {
      holder: 'region-a',
      acquiredAt: first.acquiredAt,
      expiresAt: iso(clock.now() + 5_000),
      generation: 2,
    })
  })
})

describe('expiry', () => {
  test('changes nothing: the lease stays until another acquire', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const first = parseLease(await put(slot, 0))
    clock.advance(86_400_000)
    expect(expectLease(await get(slot), 200, {})).toEqual(first)
  })
})

describe('If-Match', () => {
  test.each(['7', '"7"', 'W/"7"', ' 7 '])('%s is generation 7', async tag => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 7 }))
    expectLease(await put(slot, tag), 200, { generation: 8 })
    expect((await release(slot, tag.replace('7', '8'))).status).toBe(204)
  })

  test('If-None-Match: * means the same as If-Match: 0', async () => {
    const slot = freshSlot()
    const options = { headers: { 'If-None-Match': '*', 'X-Holder': 'region-a' } }
    expectLease(await send('PUT', leasePath(slot), options), 200, { generation: 1 })
    expectLease(await send('PUT', leasePath(slot), options), 412, { generation: 1 })
    await release(slot, 1)
    expectLease(await send('PUT', leasePath(slot), options), 412, { generation: 2 })
  })

  test('both headers are accepted if they agree', async () => {
    const headers = { 'If-Match': '0', 'If-None-Match': '*', 'X-Holder': 'region-a' }
    expectLease(await send('PUT', leasePath(freshSlot()), { headers }), 200, { generation: 1 })
  })
})

describe('ttlSeconds', () => {
  test.each<readonly [ttlSeconds: number | undefined, ms: number]>([
    [undefined, 30_000],
    [1, 1_000],
    [1.5, 1_500],
    [2.0004, 2_000],
    [2.0006, 2_001],
    [86_400, 86_400_000],
    [3e1, 30_000],
  ])('%s lasts for %d ms', async (ttlSeconds, ms) => {
    using clock = fakeClock()
    expectLease(await put(freshSlot(), 0, { ttlSeconds }), 200, { expiresAt: iso(clock.now() + ms) })
  })
})

describe('the holder', () => {
  const putAs = (body: string | undefined, header?: string) =>
    send('PUT', leasePath(freshSlot()), {
      headers: { 'If-Match': '0', ...(header === undefined ? {} : { 'X-Holder': header }) },
      ...(body === undefined ? {} : { body }),
    })

  test('can be in the body', async () => {
    expectLease(await putAs('{"holder":"region-c"}'), 200, { holder: 'region-c' })
  })

  test('can be in X-Holder, without a body', async () => {
    using clock = fakeClock()
    expectLease(await putAs(undefined, 'region-c'), 200, {
      holder: 'region-c',
      expiresAt: iso(clock.now() + 30_000),
      generation: 1,
    })
    expectLease(await putAs('', 'region-c'), 200, { holder: 'region-c' })
    expectLease(await putAs('{}', 'region-c'), 200, { holder: 'region-c' })
  })

  test('can be in both if they agree', async () => {
    expectLease(await putAs('{"holder":"region-c"}', 'region-c'), 200, { holder: 'region-c' })
  })

  test.each([
    ['one character', 'a'],
    ['253 characters', 'a'.repeat(253)],
    ['spaces within', 'region a'],
    ['quotes and a comma', '"a", b'],
  ])('%s is valid in the body and in the header', async (_, holder) => {
    expectLease(await putAs(JSON.stringify({ holder })), 200, { holder })
    expectLease(await putAs(undefined, holder), 200, { holder })
  })
})

describe('a PUT ignores', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=utf-16', 'nonsense'])(
    'Content-Type: %s',
    async type => {
      const options = { headers: { 'If-Match': '0', 'Content-Type': type }, body: '{"holder":"region-a"}' }
      expectLease(await send('PUT', leasePath(freshSlot()), options), 200, { holder: 'region-a' })
    },
  )

  test('unknown fields', async () => {
    const body = JSON.stringify({ holder: 'region-a', consoleLoadBalancerIP: '203.0.113.1', generation: 99, x: [{}] })
    expectLease(await send('PUT', leasePath(freshSlot()), { headers: { 'If-Match': '0' }, body }), 200, {
      generation: 1,
    })
  })

  test('X-Lease-Slot', async () => {
    const slot = freshSlot()
    const other = freshSlot()
    const options = { headers: { 'If-Match': '0', 'X-Holder': 'region-a', 'X-Lease-Slot': other } }
    expectLease(await send('PUT', leasePath(slot), options), 200, { generation: 1 })
    expect((await get(other)).status).toBe(404)
  })
})

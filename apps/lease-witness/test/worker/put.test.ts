import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem, NEVER_WRITTEN, parseLease } from './support/bodies.ts'
import { freshSlot, get, leasePath, put, release, send } from './support/client.ts'
import { fakeClock, iso } from './support/clock.ts'
import { expired, held, seed } from './support/object.ts'

describe('PUT acquire', () => {
  test('a slot that was never written, by If-Match: 0', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const answer = await put(slot, 0)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('ETag')).toBe('"1"')
    expect(answer.json).toEqual({
      holder: 'region-a',
      acquiredAt: iso(clock.now()),
      expiresAt: iso(clock.now() + 30_000),
      generation: 1,
    })
    expect((await get(slot)).json).toEqual(answer.json)
  })

  test('a slot that was never written, by another generation: 412 with the zero state, and it stays unwritten', async () => {
    const slot = freshSlot()
    const answer = await put(slot, 3)
    expect(answer.status).toBe(412)
    expect(answer.json).toEqual(NEVER_WRITTEN)
    expect(answer.headers.get('ETag')).toBe('"0"')
    expectProblem(await get(slot), 404, 'not-found')
  })

  test('a released slot, by its generation, whoever held it', async () => {
    const slot = freshSlot()
    await seed(slot, { kind: 'released', generation: 6 })
    expectLease(await put(slot, 0, { holder: 'region-b' }), 412, { ...NEVER_WRITTEN, generation: 6 })
    expectLease(await put(slot, 6, { holder: 'region-b' }), 200, { holder: 'region-b', generation: 7 })
  })

  test('by the same holder while it holds: since when stays, the generation rises', async () => {
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

  test('by the same holder once it has expired: since when begins anew', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    clock.advance(30_000)
    expectLease(await put(slot, 1), 200, { holder: 'region-a', acquiredAt: iso(clock.now()), generation: 2 })
  })

  test('by another holder while it is held: 412 with the state as it stands', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const first = parseLease(await put(slot, 0))
    clock.advance(29_999)
    expect(expectLease(await put(slot, 1, { holder: 'region-b' }), 412, {})).toEqual(first)
    expect((await get(slot)).json).toEqual(first)
  })

  test('by another holder from the very moment of its expiry', async () => {
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

  test.each([
    ['lower', 6],
    ['higher', 8],
    ['0', 0],
  ])('a generation that is %s is refused to the holder too', async (_, generation) => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 7 }))
    const before = parseLease(await get(slot))
    expect(expectLease(await put(slot, generation), 412, {})).toEqual(before)
    expect((await get(slot)).json).toEqual(before)
  })

  test('an expired lease by another generation is refused', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 7 }))
    expectLease(await put(slot, 6, { holder: 'region-b' }), 412, { holder: 'region-a', generation: 7 })
  })
})

describe('PUT renew', () => {
  test('by the holder, unexpired: the whole time again, of another length if it likes', async () => {
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

  test('by the holder, expired: 412', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 3 }))
    expectLease(await put(slot, 3, { op: 'renew' }), 412, { holder: 'region-a', generation: 3 })
  })

  test('by another, even of an expired lease: 412', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 3 }))
    expectLease(await put(slot, 3, { op: 'renew', holder: 'region-b' }), 412, { holder: 'region-a', generation: 3 })
  })

  test('of a released slot: 412', async () => {
    const slot = freshSlot()
    await seed(slot, { kind: 'released', generation: 3 })
    expectLease(await put(slot, 3, { op: 'renew' }), 412, { ...NEVER_WRITTEN, generation: 3 })
  })

  test('of a slot that was never written: 412 with the zero state', async () => {
    const slot = freshSlot()
    expectLease(await put(slot, 0, { op: 'renew' }), 412, NEVER_WRITTEN)
    expect((await get(slot)).status).toBe(404)
  })
})

describe('expiry', () => {
  test('evicts nobody: the lease stays as it was written, until somebody acquires it', async () => {
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

  test('If-None-Match: * says the same as If-Match: 0', async () => {
    const slot = freshSlot()
    const question = { headers: { 'If-None-Match': '*', 'X-Holder': 'region-a' } }
    expectLease(await send('PUT', leasePath(slot), question), 200, { generation: 1 })
    expectLease(await send('PUT', leasePath(slot), question), 412, { generation: 1 })
    await release(slot, 1)
    expectLease(await send('PUT', leasePath(slot), question), 412, { generation: 2 })
  })

  test('both headers may be there when they agree', async () => {
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

  test('may come in the body alone', async () => {
    expectLease(await putAs('{"holder":"region-c"}'), 200, { holder: 'region-c' })
  })

  test('may come in X-Holder, with the rest absent', async () => {
    using clock = fakeClock()
    expectLease(await putAs(undefined, 'region-c'), 200, {
      holder: 'region-c',
      expiresAt: iso(clock.now() + 30_000),
      generation: 1,
    })
    expectLease(await putAs('', 'region-c'), 200, { holder: 'region-c' })
    expectLease(await putAs('{}', 'region-c'), 200, { holder: 'region-c' })
  })

  test('may come in both when they agree', async () => {
    expectLease(await putAs('{"holder":"region-c"}', 'region-c'), 200, { holder: 'region-c' })
  })

  test('in both, and different, is a fault', async () => {
    expectProblem(await putAs('{"holder":"region-c"}', 'region-d'), 400, 'holder-mismatch')
    expectProblem(await putAs('{"holder":"region-c"}', 'REGION-C'), 400, 'holder-mismatch')
  })

  test('in neither is a fault', async () => {
    expectProblem(await putAs('{}'), 400, 'invalid-holder')
    expectProblem(await putAs(undefined), 400, 'invalid-holder')
  })

  test.each([
    ['one character', 'a'],
    ['253 characters', 'a'.repeat(253)],
    ['spaces within', 'region a'],
    ['quotes and a comma', '"a", b'],
  ])('%s is good in the body and in the header', async (_, holder) => {
    expectLease(await putAs(JSON.stringify({ holder })), 200, { holder })
    expectLease(await putAs(undefined, holder), 200, { holder })
  })
})

describe('what a PUT does not look at', () => {
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=utf-16', 'nonsense'])(
    'Content-Type: %s',
    async type => {
      const question = { headers: { 'If-Match': '0', 'Content-Type': type }, body: '{"holder":"region-a"}' }
      expectLease(await send('PUT', leasePath(freshSlot()), question), 200, { holder: 'region-a' })
    },
  )

  test('fields that it does not know', async () => {
    const body = JSON.stringify({ holder: 'region-a', consoleLoadBalancerIP: '203.0.113.1', generation: 99, x: [{}] })
    expectLease(await send('PUT', leasePath(freshSlot()), { headers: { 'If-Match': '0' }, body }), 200, {
      generation: 1,
    })
  })

  test('X-Lease-Slot, whatever it says', async () => {
    const slot = freshSlot()
    const other = freshSlot()
    const question = { headers: { 'If-Match': '0', 'X-Holder': 'region-a', 'X-Lease-Slot': other } }
    expectLease(await send('PUT', leasePath(slot), question), 200, { generation: 1 })
    expect((await get(other)).status).toBe(404)
  })

  test('the query', async () => {
    const slot = freshSlot()
    await send('PUT', `${leasePath(slot)}?ttlSeconds=5`, { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } })
    expectLease(await get(slot), 200, { generation: 1 })
  })
})

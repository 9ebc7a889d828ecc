import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem, NEVER_WRITTEN, parseLease } from './support/bodies.ts'
import { freshSlot, get, leasePath, put, release, send } from './support/client.ts'
import { expired, held, released, seed } from './support/slots.ts'

describe('GET', () => {
  test('a slot that was never written: 404, and no entity tag', async () => {
    const response = await get(freshSlot())
    expectProblem(response, 404, 'not-found')
    expect(response.headers.get('ETag')).toBeNull()
  })

  test('held, expired and released slots: 200 with the stored state', async () => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    expectLease(await get(slot), 200, { holder: 'region-a', generation: 4 })
    await seed(slot, expired({ generation: 5 }))
    expectLease(await get(slot), 200, { holder: 'region-a', generation: 5 })
    await seed(slot, released(6))
    expect((await get(slot)).json).toEqual({ ...NEVER_WRITTEN, generation: 6 })
  })

  test.each<readonly [ifNoneMatch: string, status: 200 | 304]>([
    ['"4"', 304],
    ['W/"4"', 304],
    ['"3", "4"', 304],
    ['"3"', 200],
    ['"x"', 200],
  ])('If-None-Match: %s of generation 4 is %d', async (ifNoneMatch, status) => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    const response = await get(slot, { 'If-None-Match': ifNoneMatch })
    expect(response.status).toBe(status)
    expect(response.headers.get('ETag')).toBe('"4"')
    expect(response.text === '').toBe(status === 304)
  })

  test('If-None-Match of a slot that was never written: 404', async () => {
    expect((await get(freshSlot(), { 'If-None-Match': '*' })).status).toBe(404)
    expect((await get(freshSlot(), { 'If-None-Match': '"0"' })).status).toBe(404)
  })

  test('without Prefer, a known lease that has expired: 304', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 4 }))
    expect((await get(slot, { 'If-None-Match': '"4"' })).status).toBe(304)
  })

  test.each<readonly [headers: Readonly<Record<string, string>>, status: 200 | 304 | 412]>([
    [{ 'If-Match': '"4"' }, 200],
    [{ 'If-Match': '*' }, 200],
    [{ 'If-Match': 'W/"4"' }, 412],
    [{ 'If-Match': '"9"' }, 412],
    [{ 'If-Match': '"4"', 'If-None-Match': '"4"' }, 304],
    [{ 'If-Match': '"9"', 'If-None-Match': '"4"' }, 412],
  ])('%j of generation 4 is %d', async (headers, status) => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    const response = await get(slot, headers)
    expect(response.status).toBe(status)
    if (status !== 304) expectLease(response, status, { generation: 4 })
    expect(response.headers.get('Lease-Conflict')).toBe(status === 412 ? 'generation' : null)
  })

  test('If-Match of a slot that was never written: 404', async () => {
    for (const ifMatch of ['*', '"0"', '"4"'])
      expectProblem(await get(freshSlot(), { 'If-Match': ifMatch }), 404, 'not-found')
  })
})

describe('HEAD', () => {
  test('is GET without a body', async () => {
    const slot = freshSlot()
    const path = leasePath(slot)
    const before = await send('HEAD', path)
    expect([before.status, before.text]).toEqual([404, ''])
    await put(slot, 0)
    const response = await send('HEAD', path)
    expect([response.status, response.text, response.headers.get('ETag')]).toEqual([200, '', '"1"'])
    expect((await send('HEAD', path, { headers: { 'If-None-Match': '"1"' } })).status).toBe(304)
    expect((await send('HEAD', path, { authorization: null })).status).toBe(401)
  })

  test('also for lists and histories', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    for (const path of ['/leases?limit=1', `/history/${encodeURIComponent(slot)}`]) {
      const response = await send('HEAD', path)
      expect([response.status, response.text]).toEqual([200, ''])
    }
  })
})

describe('DELETE', () => {
  test('by the holder and its generation: 204, generation + 1, and the slot is released', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    const response = await release(slot, 1)
    expect([response.status, response.text, response.headers.get('ETag')]).toEqual([204, '', '"2"'])
    expect((await get(slot)).json).toEqual({ ...NEVER_WRITTEN, generation: 2 })
    expect((await get(slot)).headers.get('ETag')).toBe('"2"')
  })

  test('by another holder: 412 with the state', async () => {
    const slot = freshSlot()
    const first = parseLease(await put(slot, 0))
    expect(expectLease(await release(slot, 1, 'region-b'), 412, {})).toEqual(first)
    expect((await get(slot)).json).toEqual(first)
  })

  test('by the holder after its expiry: 204', async () => {
    const slot = freshSlot()
    await seed(slot, expired({ generation: 4 }))
    expect((await release(slot, 4)).status).toBe(204)
    expectLease(await get(slot), 200, { ...NEVER_WRITTEN, generation: 5 })
  })

  test.each([0, 7])(
    'a slot that was never written, by generation %d: 204, and it stays unwritten',
    async generation => {
      const slot = freshSlot()
      const response = await release(slot, generation)
      expect([response.status, response.text, response.headers.get('ETag')]).toEqual([204, '', null])
      expect((await get(slot)).status).toBe(404)
    },
  )

  test('the holder is in X-Holder, never in the body', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    const options = { headers: { 'If-Match': '1' }, body: '{"holder":"region-a"}' }
    expectProblem(await send('DELETE', leasePath(slot), options), 400, 'missing-x-holder')
    const both = { headers: { 'If-Match': '1', 'X-Holder': 'region-a' }, body: '{"holder":"region-b"' }
    expect((await send('DELETE', leasePath(slot), both)).status).toBe(204)
  })

  test('no generation repeats over acquire, renew and release', async () => {
    const slot = freshSlot()
    const seen: unknown[] = []
    for (let round = 0; round < 5; round++) {
      seen.push(parseLease(await put(slot, round * 3)).generation)
      seen.push(parseLease(await put(slot, round * 3 + 1, { op: 'renew' })).generation)
      await release(slot, round * 3 + 2)
      seen.push(parseLease(await get(slot)).generation)
    }
    expect(seen).toEqual(Array.from({ length: 15 }, (_, i) => i + 1))
  })
})

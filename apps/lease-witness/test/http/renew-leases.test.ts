import { describe, expect, test } from 'vitest'
import { NEVER_WRITTEN, parseHistory, parseLease, parseRenewals } from './support/bodies.ts'
import { freshSlot, get, put, send } from './support/client.ts'
import { fakeClock, iso } from './support/clock.ts'
import { held, released, seed } from './support/slots.ts'

interface RenewalRequest {
  readonly slot: string
  readonly generation: number
  readonly ttlSeconds?: number
}

const renew = async (leases: readonly RenewalRequest[], holder = 'region-a') => {
  const response = await send('POST', '/leases/renew', { body: JSON.stringify({ holder, leases }) })
  expect(response.status, response.text).toBe(200)
  return parseRenewals(response).results
}

describe('POST /leases/renew', () => {
  test('renews each lease of the holder, with its own TTL', async () => {
    using clock = fakeClock()
    const [one, two] = [freshSlot(), freshSlot()]
    const first = parseLease(await put(one, 0))
    await put(two, 0)
    clock.advance(10_000)
    const results = await renew([
      { slot: one, generation: 1 },
      { slot: two, generation: 1, ttlSeconds: 60 },
    ])
    expect(results).toMatchObject([
      { slot: one, status: 200, lease: { generation: 2 }, remainingMs: 30_000 },
      { slot: two, status: 200, lease: { generation: 2, expiresAt: iso(clock.now() + 60_000) }, remainingMs: 60_000 },
    ])
    expect((await get(one)).json).toEqual({ ...first, expiresAt: iso(clock.now() + 30_000), generation: 2 })
  })

  test('decides each lease alone, with the conflict that PUT would return', async () => {
    using clock = fakeClock()
    const slots = Array.from({ length: 6 }, freshSlot)
    const [own = '', stale = '', others = '', free = '', gone = '', never = ''] = slots
    await seed(own, held({ generation: 4 }))
    await seed(stale, held({ generation: 5 }))
    await seed(others, held({ generation: 4, holder: 'region-b' }))
    await seed(free, released(4))
    await seed(gone, held({ generation: 4, expiresAt: clock.now() }))
    const results = await renew(slots.map(slot => ({ slot, generation: 4 })))
    expect(results).toMatchObject([
      { slot: own, status: 200, lease: { generation: 5 } },
      { slot: stale, status: 412, conflict: 'generation', lease: { generation: 5 }, remainingMs: 30_000 },
      { slot: others, status: 412, conflict: 'not-holder', lease: { holder: 'region-b' }, remainingMs: 30_000 },
      { slot: free, status: 412, conflict: 'not-holder', lease: { ...NEVER_WRITTEN, generation: 4 } },
      { slot: gone, status: 412, conflict: 'expired', lease: { generation: 4 }, remainingMs: 0 },
      { slot: never, status: 412, conflict: 'generation', lease: NEVER_WRITTEN },
    ])
    expect(results[3]).not.toHaveProperty('remainingMs')
    expect((await get(never)).status).toBe(404)
  })

  test('renews 100 leases of any name, in the order of the request', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `${freshSlot()}/100% & a//b=ä+${i}`)
    await Promise.all(names.map(name => put(name, 0)))
    const results = await renew(names.map(slot => ({ slot, generation: 1 })))
    expect(results.map(({ slot, status }) => [slot, status])).toEqual(names.map(name => [name, 200]))
  })

  test('never starts a tenure: the history does not change', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    await renew([{ slot, generation: 1 }])
    await renew([{ slot, generation: 2 }], 'region-b')
    const history = parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`))
    expect(history.transitions).toHaveLength(1)
  })

  test('ends the waits of readers that know the old generation', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    const response = get(slot, { 'If-None-Match': '"1"', Prefer: 'wait=20' })
    await renew([{ slot, generation: 1 }])
    expect(parseLease(await response).generation).toBe(2)
  })
})

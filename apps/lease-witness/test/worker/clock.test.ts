import { evictDurableObject } from 'cloudflare:test'
import { describe, expect, test } from 'vitest'
import { expectLease, parseHistory, parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, put, send } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { slotObject } from './support/object.ts'

const SECOND = 1_000
const HOUR = 3_600_000

const readHistory = async (slot: string) =>
  parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`)).transitions

describe('a clock that is set back by up to a minute', () => {
  test('does not shorten a lease that is renewed', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const start = clock.now()
    await put(slot, 0)
    clock.advance(10 * SECOND)
    await put(slot, 1, { op: 'renew' })
    clock.advance(-20 * SECOND)
    expectLease(await put(slot, 2, { op: 'renew' }), 200, { expiresAt: iso(start + 40 * SECOND) })
    // The clock is right again, ten seconds later.
    clock.advance(30 * SECOND)
    expectLease(await put(slot, 3, { holder: 'region-b' }), 412, { holder: 'region-a' })
    clock.advance(20 * SECOND)
    expectLease(await put(slot, 3, { holder: 'region-b' }), 200, { holder: 'region-b' })
  })

  test('is not recorded', async () => {
    using clock = fakeClock()
    using logged = captureLogs()
    const slot = freshSlot()
    await put(slot, 0)
    clock.advance(-59 * SECOND)
    await get(slot)
    await put(slot, 1, { op: 'renew' })
    expect((await readHistory(slot)).map(({ event }) => event)).toEqual(['acquired'])
    expect(logged.text()).not.toContain('clock-set-back')
  })
})

describe('a clock that is set back by more', () => {
  test.each<readonly [request: string, touch: (slot: string) => Promise<unknown>]>([
    ['a read', slot => get(slot)],
    ['a rejected write', slot => put(slot, 1, { holder: 'region-b' })],
  ])('starts the lease again with its whole TTL, once, at %s, which is recorded', async (_, touch) => {
    using clock = fakeClock()
    using logged = captureLogs()
    const slot = freshSlot()
    const lease = parseLease(await put(slot, 0))
    clock.advance(-HOUR)
    const setBackAt = clock.now()
    await touch(slot)
    const restarted = { ...lease, expiresAt: iso(setBackAt + 30 * SECOND) }
    expect((await get(slot)).json).toEqual(restarted)
    clock.advance(10 * SECOND)
    await evictDurableObject(slotObject(slot))
    expect((await get(slot)).json).toEqual(restarted)
    const [newest, ...older] = await readHistory(slot)
    expect(newest).toMatchObject({ event: 'clock-set-back', generation: 1, at: iso(setBackAt), to: 'region-a' })
    expect(older.map(({ event }) => event)).toEqual(['acquired'])
    const lines = logged.lines().filter(({ msg }) => msg === 'clock-set-back')
    expect(lines).toMatchObject([{ level: 'error', slot, byMs: HOUR }])
  })
})

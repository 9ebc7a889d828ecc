import { describe, expect, test } from 'vitest'
import { expectLease } from './support/bodies.ts'
import { freshSlot, get, put, release } from './support/client.ts'
import { fakeClock } from './support/clock.ts'
import { held, released, seed } from './support/slots.ts'

describe('Lease-Remaining-Ms', () => {
  test('counts down to 0 on the clock of the witness', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const readRemaining = async () => (await get(slot)).headers.get('Lease-Remaining-Ms')
    expect((await put(slot, 0, { ttlSeconds: 10.5 })).headers.get('Lease-Remaining-Ms')).toBe('10500')
    clock.advance(500)
    expect(await readRemaining()).toBe('10000')
    clock.advance(9_999)
    expect(await readRemaining()).toBe('1')
    clock.advance(1)
    expect(await readRemaining()).toBe('0')
    clock.advance(60_000)
    expect(await readRemaining()).toBe('0')
  })

  test('is in a 412, for a rejected client to wait', async () => {
    using _clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    const response = await put(slot, 1, { holder: 'region-b' })
    expectLease(response, 412, { holder: 'region-a' })
    expect(response.headers.get('Lease-Remaining-Ms')).toBe('30000')
  })

  test('is absent if no client holds the lease', async () => {
    const slot = freshSlot()
    expect((await put(slot, 3)).headers.get('Lease-Remaining-Ms')).toBeNull()
    await seed(slot, released(4))
    expect((await get(slot)).headers.get('Lease-Remaining-Ms')).toBeNull()
  })
})

describe('Lease-Conflict', () => {
  test.each<readonly [conflict: string, holder: string, ifMatch: number, op: string, expiresInMs: number]>([
    ['generation', 'region-a', 3, 'acquire', 30_000],
    ['generation', 'region-b', 3, 'acquire', 30_000],
    ['held', 'region-b', 4, 'acquire', 30_000],
    ['not-holder', 'region-b', 4, 'renew', 30_000],
    ['not-holder', 'region-b', 4, 'renew', 0],
    ['expired', 'region-a', 4, 'renew', 0],
  ])('%s: %s writes generation %d (%s) %d ms before the expiry', async (conflict, holder, ifMatch, op, expiresInMs) => {
    using clock = fakeClock()
    const slot = freshSlot()
    await seed(slot, held({ generation: 4, expiresAt: clock.now() + expiresInMs }))
    const response = await put(slot, ifMatch, { holder, op })
    expectLease(response, 412, { generation: 4 })
    expect(response.headers.get('Lease-Conflict')).toBe(conflict)
  })

  test.each([
    ['generation', 3, 'region-a'],
    ['not-holder', 4, 'region-b'],
  ])('%s of a release', async (conflict, ifMatch, holder) => {
    const slot = freshSlot()
    await seed(slot, held({ generation: 4 }))
    expect((await release(slot, ifMatch, holder)).headers.get('Lease-Conflict')).toBe(conflict)
  })
})

import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, test, vi } from 'vitest'
import type { LeaseWrite } from '../../src/lease/lease.ts'
import { createLeaseService } from '../../src/object/client.ts'
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

describe('an object whose clock stands still', () => {
  /** As if the clock of the machine had been set back, until the object restarts. */
  const stopClock = (slot: string, machineNow = () => Date.now() - HOUR) =>
    runInDurableObject(slotObject(slot), instance => void Object.assign(instance, { readMachineClock: machineNow }))
  const hasStopped = (slot: string) =>
    runInDurableObject(slotObject(slot), instance => Object.hasOwn(instance, 'readMachineClock'))
  const address = (slot: string) => ({ slot, encoded: slot })
  const leases = createLeaseService(env)
  /** The next reading of the clock, which is that of the worker, is earlier. */
  const delayCall = () => void vi.spyOn(Date, 'now').mockReturnValueOnce(Date.now() - SECOND)
  const acquire: LeaseWrite = { kind: 'acquire', holder: 'region-b', ttlMs: SECOND, generation: 0 }

  test.each<readonly [string, (slot: string) => Promise<{ readonly kind: string }>, string]>([
    ['a read', slot => leases.read(address(slot), []), 'absent'],
    ['a write', slot => leases.write(address(slot), acquire, ''), 'granted'],
    ['the history', slot => leases.history(address(slot)), 'absent'],
  ])('restarts, and then executes the call once: %s', async (_, call, kind) => {
    using logged = captureLogs()
    const slot = freshSlot()
    await stopClock(slot)
    delayCall()
    expect(await call(slot)).toMatchObject({ kind })
    expect(await hasStopped(slot)).toBe(false)
    const lines = logged.lines().filter(({ msg }) => msg === 'clock-stands-still')
    expect(lines).toEqual([expect.objectContaining({ level: 'error', slot, aheadMs: expect.any(Number) })])
  })

  test('is not restarted by a worker whose clock is behind', async () => {
    const slot = freshSlot()
    await stopClock(slot, () => Date.now())
    delayCall()
    expect(await leases.read(address(slot), [])).toEqual({ kind: 'absent' })
    expect(await hasStopped(slot)).toBe(true)
  })
})

import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { WaitCondition } from '../../src/lease/lease.ts'
import { createLeaseService } from '../../src/object/client.ts'
import { waitForObject } from '../../src/object/waits.ts'
import { expectLease } from '../http/support/bodies.ts'
import { freshSlot, put, release } from '../http/support/client.ts'
import { held, seed, waitForWaiters } from '../http/support/slots.ts'
import { readAlarm, slotObject } from './support/object.ts'

const CHANGED: WaitCondition = { kind: 'changed', known: [4] }
const VACANT: WaitCondition = { kind: 'vacant' }

const leases = createLeaseService(env)
const { signal } = new AbortController()

/** Longer than a test takes. */
const LONG_MS = 300_000

const wait = (slot: string, condition: WaitCondition = CHANGED, maxMs = LONG_MS, caller = '') =>
  leases.wait({ slot, encoded: slot }, { caller, condition, known: [4], maxMs, signal })

const heldSlot = async (expiresInMs = LONG_MS): Promise<string> => {
  const slot = freshSlot()
  await seed(slot, held({ generation: 4, expiresAt: Date.now() + expiresInMs }))
  return slot
}

/** Replaces the clock and the timers of the worker and its objects until the end of the test. */
const replaceTimers = () => vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })

/** Like `waitForWaiters`, without a timer. */
const untilWaiting = async (slot: string, count: number): Promise<void> => {
  while ((await slotObject(slot).waiterCount()) !== count);
}

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('an object whose slot has waiters', () => {
  test.each([
    ['changed', CHANGED],
    ['vacant', VACANT],
  ])('can leave memory: a release ends the waits nevertheless (%s)', async (_, condition) => {
    const slot = await heldSlot()
    const outcomes = Array.from({ length: 20 }, () => wait(slot, condition))
    await waitForWaiters(slot, 20)
    const mark = { instance: 'first' }
    await runInDurableObject(slotObject(slot), instance => void Object.assign(instance, mark))
    // Waits until no event is pending, so this would fail if a wait were one.
    await evictDurableObject(slotObject(slot))
    expect(await runInDurableObject(slotObject(slot), instance => 'instance' in instance)).toBe(false)
    await waitForWaiters(slot, 20)
    await evictDurableObject(slotObject(slot))
    await release(slot, 4)
    for (const outcome of await Promise.all(outcomes)) {
      expect(outcome).toMatchObject({ kind: 'lease', lease: { holder: '', generation: 5 } })
    }
    await waitForWaiters(slot, 0)
  })

  test('wakes up for the expiry of the lease, and for the end of a wait', async () => {
    replaceTimers()
    const slot = await heldSlot(300)
    const [expired, over] = [wait(slot), wait(slot, VACANT, 100)]
    await untilWaiting(slot, 2)
    await evictDurableObject(slotObject(slot))
    await vi.advanceTimersByTimeAsync(100)
    expect(await over).toMatchObject({ kind: 'not-modified', lease: { generation: 4 } })
    await evictDurableObject(slotObject(slot))
    await vi.advanceTimersByTimeAsync(200)
    expect(await expired).toMatchObject({ kind: 'lease', lease: { generation: 4 }, remainingMs: 0 })
  })

  test('has no timer and no alarm for them', async () => {
    const slot = await heldSlot()
    const stacks: string[] = []
    for (const name of ['setTimeout', 'setInterval'] as const) {
      const original = globalThis[name]
      // The runner of the tests has timers in this isolate as well.
      vi.spyOn(globalThis, name).mockImplementation((...args: unknown[]) => {
        stacks.push(new Error().stack ?? '')
        return Reflect.apply(original, globalThis, args)
      })
    }
    const address = { slot, encoded: slot, sentAt: Date.now() }
    const target = JSON.stringify({ address, caller: '', condition: CHANGED })
    const url = `http://object/?${encodeURIComponent(target)}`
    // Without the worker's part, whose timers would count here.
    const { status, webSocket } = await slotObject(slot).fetch(url, { headers: { Upgrade: 'websocket' } })
    expect([status, await slotObject(slot).waiterCount(), await readAlarm(slot)]).toEqual([101, 1, null])
    expect(stacks.filter(stack => stack.includes('/lease-witness/src/'))).toEqual([])
    webSocket?.accept()
    webSocket?.close()
  })
})

describe('no wake-up is lost', () => {
  test('when waits begin at the same time as the release', async () => {
    for (let round = 0; round < 3; round += 1) {
      const slot = await heldSlot()
      const before = Array.from({ length: 20 }, () => wait(slot))
      const writing = release(slot, 4)
      const after = Array.from({ length: 20 }, () => wait(slot))
      expect((await writing).status).toBe(204)
      for (const outcome of await Promise.all([...before, ...after])) {
        expect(outcome).toMatchObject({ kind: 'lease', lease: { generation: 5 } })
      }
    }
  })

  test('when a renewal has moved the expiry', async () => {
    replaceTimers()
    const slot = await heldSlot(400)
    const outcome = wait(slot, VACANT)
    await untilWaiting(slot, 1)
    const renewedAt = Date.now()
    expectLease(await put(slot, 4, { op: 'renew', ttlSeconds: 1 }), 200, { generation: 5 })
    let isOver = false
    void outcome.then(() => {
      isOver = true
    })
    while (!isOver) {
      await vi.advanceTimersByTimeAsync(100)
      await slotObject(slot).waiterCount()
    }
    expect(await outcome).toMatchObject({ kind: 'lease', lease: { generation: 5 }, remainingMs: 0 })
    expect(Date.now()).toBeGreaterThanOrEqual(renewedAt + 1_000)
  })
})

test('a reader may know more generations than an object stores', async () => {
  const slot = await heldSlot()
  const known = Array.from({ length: 5_000 }, (_, generation) => generation)
  const outcome = wait(slot, { kind: 'changed', known: [...known.toReversed(), 2 ** 52] })
  expect(await outcome).toMatchObject({ kind: 'lease', lease: { generation: 4 } })
  const newest = wait(slot, { kind: 'changed', known: known.filter(generation => generation <= 4) })
  await waitForWaiters(slot, 1)
  await release(slot, 4)
  expect(await newest).toMatchObject({ lease: { generation: 5 } })
})

test('an object that does not respond at the end of a wait: unavailable', async () => {
  replaceTimers()
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  const silent = { fetch: async () => new Response(null, { status: 101, webSocket: client }) }
  const request = { caller: '', condition: CHANGED, known: [4], maxMs: 1_000, signal }
  const outcome = waitForObject(silent as never, { slot: 'silent', encoded: 'silent', sentAt: Date.now() }, request)
  await vi.advanceTimersByTimeAsync(6_000)
  expect(await outcome).toMatchObject({ kind: 'lease-unavailable', reason: expect.stringContaining('5000 ms') })
  server.close()
})

test('a wait that begins while the process stops: unavailable', async () => {
  // A copy of the module, because its waits end for good.
  const copy = '../../src/object/waits.ts?stopping'
  const stopping: typeof import('../../src/object/waits.ts') = await import(/* @vite-ignore */ copy)
  const request = { caller: '', condition: CHANGED, known: [4], maxMs: LONG_MS, signal }
  const address = { slot: 'stopping', encoded: 'stopping', sentAt: Date.now() }
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  const fetch = vi.fn(async () => {
    stopping.endWaits()
    return new Response(null, { status: 101, webSocket: client })
  })
  const object = { fetch } as never
  expect(await stopping.waitForObject(object, address, request)).toEqual({ kind: 'lease-unavailable' })
  expect(await stopping.waitForObject(object, address, request)).toEqual({ kind: 'lease-unavailable' })
  expect(fetch).toHaveBeenCalledOnce()
  server.close()
})

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { Lease } from '@pool/contract/lease'
import { describe, expect, test } from 'vitest'
import { expectLease, parseLease } from '../http/support/bodies.ts'
import { freshSlot, get, put, release } from '../http/support/client.ts'
import { fakeClock, iso } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { failingKv, kvKey, readCopy } from './support/kv.ts'
import { readAlarm, replaceKv, slotObject } from './support/object.ts'

const runAlarm = (slot: string): Promise<boolean> => runDurableObjectAlarm(slotObject(slot))

/** Writes the copy that is due, and returns it. */
const writeDueCopy = async (slot: string) => {
  expect(await runAlarm(slot)).toBe(true)
  return readCopy(slot)
}

const SECOND = 1_000
const MINUTE = 60_000

/** A lease that was just written, as readers of Workers KV see it. */
const extended = (lease: Lease): Lease => ({ ...lease, expiresAt: iso(Date.now() + 12 * MINUTE) })

/** Expects that the copy is due between `minMs` and `maxMs` from now: slots that change at the same time are spread. */
const expectDue = async (slot: string, minMs: number, maxMs: number): Promise<number> => {
  const alarm = await readAlarm(slot)
  const inMs = (alarm ?? Number.NaN) - Date.now()
  expect(inMs).toBeGreaterThanOrEqual(minMs)
  expect(inMs).toBeLessThanOrEqual(maxMs)
  return alarm ?? 0
}

describe('the copy in Workers KV', () => {
  test('is due within two seconds after the first acquire, and is written by the alarm', async () => {
    const slot = freshSlot()
    const lease = parseLease(await put(slot, 0))
    while ((await readCopy(slot)) === undefined) await new Promise(resolve => setTimeout(resolve, 20))
    expect(await readCopy(slot)).toMatchObject({ ...lease, expiresAt: expect.any(String) })
  })

  test('of slots that are acquired at the same time is due at different times', async () => {
    using _clock = fakeClock()
    const slots = Array.from({ length: 20 }, freshSlot)
    await Promise.all(slots.map(slot => put(slot, 0)))
    const alarms = await Promise.all(slots.map(readAlarm))
    expect(new Set(alarms).size).toBeGreaterThan(10)
  })

  test('is scheduled in the same transaction as the lease, and the alarm survives the object', async () => {
    using _clock = fakeClock()
    const slot = freshSlot()
    const lease = parseLease(await put(slot, 0))
    const alarm = await expectDue(slot, SECOND, 2 * SECOND)
    await evictDurableObject(slotObject(slot))
    expect(await readAlarm(slot)).toBe(alarm)
    expect(await writeDueCopy(slot)).toEqual(extended(lease))
    expect(await readAlarm(slot)).toBeNull()
  })

  test('has the decoded slot as its key, the lease as JSON, and no expiration', async () => {
    using clock = fakeClock()
    const slot = `${freshSlot()}/ä`
    const lease = parseLease(await put(slot, 0))
    await runAlarm(slot)
    const { value, metadata } = await env.OPENOVA_LEASES.getWithMetadata(`lease:${slot}`)
    expect(JSON.parse(value ?? '')).toEqual(extended(lease))
    const object = slotObject(slot).id.toString()
    const mark = { copiedAt: clock.now(), object, ahead: 0, extendedMs: 12 * MINUTE - 30 * SECOND, isLegacyKey: false }
    expect(metadata).toEqual({ renewedAt: Date.parse(lease.acquiredAt), ...mark, lease })
    const { keys } = await env.OPENOVA_LEASES.list({ prefix: kvKey(slot) })
    expect(keys.map(({ expiration }) => expiration)).toEqual([undefined])
  })

  test('is due within two seconds after another holder acquires', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await writeDueCopy(slot)
    clock.advance(30_000)
    const lease = parseLease(await put(slot, 1, { holder: 'region-b' }))
    await expectDue(slot, SECOND, 2 * SECOND)
    expect(await writeDueCopy(slot)).toEqual(extended(lease))
  })

  test('is written every nine to ten minutes for renewals', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await writeDueCopy(slot)
    await put(slot, 1, { op: 'renew' })
    const dueAt = await expectDue(slot, 9 * MINUTE, 10 * MINUTE)
    for (let generation = 2; generation <= 6; generation++) {
      clock.advance(10_000)
      await put(slot, generation, { op: 'renew' })
      expect(await readAlarm(slot)).toBe(dueAt)
      expect((await readCopy(slot))?.generation).toBe(1)
    }
    clock.advance(dueAt - clock.now())
    expect((await writeDueCopy(slot))?.generation).toBe(7)
    await put(slot, 7)
    await expectDue(slot, SECOND, 2 * SECOND)
    clock.advance(2_000)
    await writeDueCopy(slot)
    clock.advance(MINUTE / 4)
    await put(slot, 8, { op: 'renew' })
    await expectDue(slot, 8.75 * MINUTE, 9.75 * MINUTE)
  })

  test('shows a lease that is renewed as held, and one that is not as expired within twelve minutes', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0, { ttlSeconds: 60 })
    await writeDueCopy(slot)
    const expiresInMs = async () => Date.parse((await readCopy(slot))?.expiresAt ?? '') - clock.now()
    for (let generation = 1; generation <= 60; generation++) {
      clock.advance(20 * SECOND)
      await put(slot, generation, { ttlSeconds: 60, op: 'renew' })
      // Readers elsewhere may see the copy two minutes later.
      expect(await expiresInMs()).toBeGreaterThanOrEqual(2 * MINUTE)
      if (((await readAlarm(slot)) ?? Number.POSITIVE_INFINITY) <= clock.now() + 20 * SECOND) await writeDueCopy(slot)
    }
    clock.advance(12 * MINUTE)
    await runAlarm(slot)
    expect(await expiresInMs()).toBeLessThanOrEqual(0)
  })

  test('is not due after a rejected write', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await writeDueCopy(slot)
    clock.advance(10_000)
    await put(slot, 1, { holder: 'region-b' })
    await put(slot, 9)
    await release(slot, 1, 'region-b')
    expect(await readAlarm(slot)).toBeNull()
  })
})

describe('while Workers KV fails', () => {
  test('leases are still granted, and the copy is retried until it succeeds', async () => {
    using clock = fakeClock()
    using logged = captureLogs()
    const slot = freshSlot()
    await put(slot, 0)
    await replaceKv(slot, failingKv)
    const pausesMs: number[] = []
    for (let failures = 1; failures <= 9; failures++) {
      expect(await runAlarm(slot)).toBe(true)
      const alarm = await readAlarm(slot)
      pausesMs.push((alarm ?? 0) - clock.now())
      clock.advance(alarm === null ? 0 : alarm - clock.now())
      expectLease(await put(slot, failures), 200, { generation: failures + 1 })
      expect(await readAlarm(slot)).toBe(alarm)
    }
    expect(pausesMs.every((pause, i) => pause >= 500 * 2 ** Math.min(i, 5) && pause <= 60_000)).toBe(true)
    expect(await readCopy(slot)).toBeUndefined()
    const failed = logged.lines().filter(({ msg }) => msg === 'copy-failed')
    expect(failed.map(({ failures }) => failures)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(failed[0]).toMatchObject({ level: 'error', slot, reason: 'Error: KV is down' })

    await replaceKv(slot, env.OPENOVA_LEASES)
    expect((await writeDueCopy(slot))?.generation).toBe(10)
    expect(await readAlarm(slot)).toBeNull()
  })

  test('a due copy stays due after an eviction of the object', async () => {
    using _clock = fakeClock()
    using _logged = captureLogs()
    const slot = freshSlot()
    await put(slot, 0)
    await replaceKv(slot, failingKv)
    await runAlarm(slot)
    await evictDurableObject(slotObject(slot))
    expect((await writeDueCopy(slot))?.generation).toBe(1)
  })
})

describe('changes while a copy is being written', () => {
  /** A KV namespace whose put() completes only after finish(). */
  const slowKv = () => {
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
    const writes: unknown[] = []
    const kv: Partial<KVNamespace> = {
      getWithMetadata: (() => Promise.resolve(new Map())) as unknown as KVNamespace['getWithMetadata'],
      put: async (_key: string, value: unknown) => {
        writes.push(value)
        await finished
      },
    }
    return { kv, finish, writes }
  }

  test('a release and a new holder: a second copy is due within two seconds', async () => {
    using _clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    const { kv, finish, writes } = slowKv()
    await replaceKv(slot, kv)
    const alarm = runAlarm(slot)
    while (writes.length === 0) await new Promise(resolve => setTimeout(resolve, 1))
    await release(slot, 1)
    await put(slot, 2, { holder: 'region-b' })
    await put(slot, 3, { holder: 'region-b' })
    finish()
    await alarm
    expect(writes).toHaveLength(1)
    await replaceKv(slot, env.OPENOVA_LEASES)
    await expectDue(slot, SECOND, 2 * SECOND)
    expect(await writeDueCopy(slot)).toMatchObject({ holder: 'region-b', generation: 4 })
    expect(await readAlarm(slot)).toBeNull()
  })
})

describe('Workers KV never decides', () => {
  test.each<readonly [rule: string, spoil: (slot: string) => Promise<void>]>([
    ['deleted', slot => env.OPENOVA_LEASES.delete(kvKey(slot))],
    ['not a lease', slot => env.OPENOVA_LEASES.put(kvKey(slot), 'junk')],
    [
      'of another holder and a higher generation',
      slot =>
        env.OPENOVA_LEASES.put(
          kvKey(slot),
          '{"holder":"evil","acquiredAt":"2026-01-01T00:00:00.000Z","expiresAt":"2099-01-01T00:00:00.000Z","generation":99}',
        ),
    ],
  ])('a copy that is %s changes no response, also after an eviction of the object', async (_, spoil) => {
    using _clock = fakeClock()
    const slot = freshSlot()
    const lease = parseLease(await put(slot, 0))
    await writeDueCopy(slot)
    await spoil(slot)
    expect((await get(slot)).json).toEqual(lease)
    await evictDurableObject(slotObject(slot))
    expect((await get(slot)).json).toEqual(lease)
    expectLease(await put(slot, 1), 200, { holder: 'region-a', generation: 2 })
  })

  test('a slot with stored state does not read it, also after an eviction of the object', async () => {
    using _clock = fakeClock()
    const slot = freshSlot()
    await put(slot, 0)
    await evictDurableObject(slotObject(slot))
    const calls: string[] = []
    const spy = (method: string) => () => {
      calls.push(method)
      return Promise.reject(new Error('KV is down'))
    }
    await replaceKv(slot, {
      get: spy('get'),
      getWithMetadata: spy('getWithMetadata'),
      put: spy('put'),
      list: spy('list'),
    })
    await get(slot)
    await put(slot, 1)
    await release(slot, 2)
    expect(calls).toEqual([])
  })

  test('an alarm without a due copy writes nothing', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    await runInDurableObject(slotObject(slot), (_, { storage }) => storage.setAlarm(clock.now()))
    expect(await runAlarm(slot)).toBe(true)
    expect(await readCopy(slot)).toBeUndefined()
  })
})

import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { Slot } from '../../src/object/slot.ts'
import { freshSlot, get, put, send } from '../http/support/client.ts'
import { fakeClock } from '../http/support/clock.ts'
import { captureLogs } from '../http/support/logs.ts'
import { readCopy } from './support/kv.ts'
import { readAlarm, readStored, slotObject } from './support/object.ts'

const MINUTE = 60_000

const deleteAlarm = (slot: string): Promise<void> =>
  runInDurableObject(slotObject(slot), (_, { storage }) => storage.deleteAlarm())

/** A slot whose copy is due, and whose alarm the platform has deleted. */
const slotWithoutAlarm = async (): Promise<string> => {
  const slot = freshSlot()
  await put(slot, 0)
  await deleteAlarm(slot)
  expect(await readAlarm(slot)).toBeNull()
  return slot
}

test.each<readonly [request: string, touch: (slot: string) => Promise<unknown>]>([
  ['a renewal', slot => put(slot, 1)],
  ['a rejected write', slot => put(slot, 9)],
  ['a read', get],
  ['a read of the history', slot => send('GET', `/history/${encodeURIComponent(slot)}`)],
])('%s after an eviction sets a lost alarm again', async (_, touch) => {
  using clock = fakeClock()
  const slot = await slotWithoutAlarm()
  await evictDurableObject(slotObject(slot))
  clock.advance(1)
  await touch(slot)
  expect(await readAlarm(slot)).not.toBeNull()
  await runDurableObjectAlarm(slotObject(slot))
  expect((await readCopy(slot))?.holder).toBe('region-a')
})

test('an object that stays in memory sets a lost alarm again when it is two minutes late', async () => {
  using clock = fakeClock()
  const slot = await slotWithoutAlarm()
  clock.advance(MINUTE)
  await put(slot, 1)
  clock.advance(3 * MINUTE)
  await put(slot, 2)
  expect(await readAlarm(slot)).not.toBeNull()
})

test('an alarm that is set but does not run is set again', async () => {
  using clock = fakeClock()
  const slot = freshSlot()
  await put(slot, 0)
  const late = clock.now() + 60 * MINUTE
  await runInDurableObject(slotObject(slot), (_, { storage }) => storage.setAlarm(late))
  await evictDurableObject(slotObject(slot))
  await get(slot)
  expect(await readAlarm(slot)).toBeLessThanOrEqual(clock.now() + 2_000)
})

test('a slot whose copy is up to date has no alarm', async () => {
  using clock = fakeClock()
  const slot = freshSlot()
  await put(slot, 0)
  await runDurableObjectAlarm(slotObject(slot))
  await evictDurableObject(slotObject(slot))
  clock.advance(60 * MINUTE)
  await get(slot)
  expect(await readAlarm(slot)).toBeNull()
})

test('a write to Workers KV that hangs is abandoned, repeated, and written once more when it can no longer take effect', async () => {
  using clock = fakeClock()
  using logged = captureLogs()
  const slot = freshSlot()
  await put(slot, 0)
  const hanging = { ...env.OPENOVA_LEASES, put: () => new Promise<never>(() => {}) }
  const readKv = env.OPENOVA_LEASES.getWithMetadata.bind(env.OPENOVA_LEASES)
  const kv: Partial<KVNamespace> = { ...hanging, getWithMetadata: readKv as KVNamespace['getWithMetadata'] }
  const writeWith = (namespace: Partial<KVNamespace>) =>
    runInDurableObject(slotObject(slot), (_, state) =>
      new Slot(
        state,
        () => ({ ...env, OPENOVA_LEASES: namespace as KVNamespace }),
        () => {},
        20,
      ).writeDueCopy(),
    )

  await writeWith(kv)
  // An object of another test can log meanwhile.
  const own = logged.lines().filter(line => line.slot === slot)
  expect(own).toMatchObject([{ level: 'error', msg: 'copy-failed', slot, failures: 1 }])
  expect(await readStored(slot)).toMatchObject({ abandonedAt: clock.now() })
  expect(await readAlarm(slot)).toBeLessThanOrEqual(clock.now() + 1_000)

  clock.advance(1_000)
  await writeWith(env.OPENOVA_LEASES)
  expect(await readCopy(slot)).toMatchObject({ generation: 1 })
  const settledAt = clock.now() + 15 * MINUTE - 1_000
  expect(await readAlarm(slot)).toBe(settledAt)

  // The abandoned write takes effect late.
  await env.OPENOVA_LEASES.delete(`lease:${slot}`)
  clock.advance(15 * MINUTE)
  await writeWith(env.OPENOVA_LEASES)
  expect(await readCopy(slot)).toMatchObject({ generation: 1 })
  expect((await readStored(slot))?.dueAt).toBeUndefined()
})

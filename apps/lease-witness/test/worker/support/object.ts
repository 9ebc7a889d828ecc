import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { CopyState } from '../../../src/kv-copy/domain/schedule.ts'
import type { LeaseState } from '../../../src/lease/lease.ts'
import type { LeaseObject } from '../../../src/object/lease-object.ts'

export interface StoredState extends CopyState {
  readonly slot: string
  readonly lease: LeaseState
}

export const slotObject = (slot: string): DurableObjectStub<LeaseObject> => env.LEASES.getByName(slot)

export const readStored = (slot: string): Promise<StoredState | undefined> =>
  runInDurableObject(slotObject(slot), (_, { storage }) => storage.kv.get<StoredState>('lease'))

/** Writes a state into a slot's storage. */
export const seed = (slot: string, lease: LeaseState, copy: CopyState = {}): Promise<void> =>
  runInDurableObject(slotObject(slot), (_, { storage }) => storage.kv.put('lease', { slot, lease, ...copy }))

export const held = (lease: Partial<LeaseState & { kind: 'held' }> = {}): LeaseState => {
  const now = Date.now()
  return {
    kind: 'held',
    holder: 'region-a',
    acquiredAt: now - 1_000,
    renewedAt: now - 1_000,
    expiresAt: now + 30_000,
    generation: 1,
    ...lease,
  }
}

/** An expired lease. */
export const expired = (lease: Partial<LeaseState & { kind: 'held' }> = {}): LeaseState => {
  const now = Date.now()
  return held({ acquiredAt: now - 90_000, renewedAt: now - 60_000, expiresAt: now - 30_000, ...lease })
}

export const readAlarm = (slot: string): Promise<number | null> =>
  runInDurableObject(slotObject(slot), (_, { storage }) => storage.getAlarm())

/** Replaces Workers KV in a running object until it is evicted. */
export const replaceKv = (slot: string, kv: Partial<KVNamespace>): Promise<void> =>
  runInDurableObject(
    slotObject(slot),
    instance => void Object.assign(instance, { env: { ...env, OPENOVA_LEASES: kv } }),
  )

/** Simulates the loss of an object: deletes its storage and its memory. */
export const deleteObject = async (slot: string): Promise<void> => {
  await runInDurableObject(slotObject(slot), async (_, { storage }) => {
    await storage.deleteAlarm()
    await storage.deleteAll()
  })
  await evictDurableObject(slotObject(slot))
}

/** Aborts the object, as a restart of its machine does: pending calls fail. */
export const abortObject = async (slot: string): Promise<void> => {
  await runInDurableObject(slotObject(slot), (_, state) => state.abort('restarting')).catch(() => undefined)
}

/** Resolves when `count` readers wait for the slot. */
export const waitForWaiters = async (slot: string, count: number): Promise<void> => {
  const startedAt = performance.now()
  while ((await slotObject(slot).waiterCount()) !== count) {
    if (performance.now() - startedAt > 10_000) throw new Error(`${slot} does not have ${count} waiting readers`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

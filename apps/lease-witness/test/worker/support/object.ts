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

/** Puts a state into a slot's storage, as if it had come to it by itself. */
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

/** A lease that was not renewed in time. */
export const expired = (lease: Partial<LeaseState & { kind: 'held' }> = {}): LeaseState => {
  const now = Date.now()
  return held({ acquiredAt: now - 90_000, renewedAt: now - 60_000, expiresAt: now - 30_000, ...lease })
}

export const readAlarm = (slot: string): Promise<number | null> =>
  runInDurableObject(slotObject(slot), (_, { storage }) => storage.getAlarm())

/** What is given to a running object in the place of Workers KV, until it is evicted. */
export const replaceKv = (slot: string, kv: Partial<KVNamespace>): Promise<void> =>
  runInDurableObject(
    slotObject(slot),
    instance => void Object.assign(instance, { env: { ...env, OPENOVA_LEASES: kv } }),
  )

/** The platform's loss of an object: its storage is gone, and so is its memory. */
export const deleteObject = async (slot: string): Promise<void> => {
  await runInDurableObject(slotObject(slot), async (_, { storage }) => {
    await storage.deleteAlarm()
    await storage.deleteAll()
  })
  await evictDurableObject(slotObject(slot))
}

/** Ends the object as a restart of its machine does, under the hands of whoever waits for it. */
export const abortObject = async (slot: string): Promise<void> => {
  await runInDurableObject(slotObject(slot), (_, state) => state.abort('restarting')).catch(() => undefined)
}

/** Resolves once so many callers wait for the slot; fails when that takes longer than any of them has reason to. */
export const waitForWaiters = async (slot: string, count: number): Promise<void> => {
  const began = performance.now()
  while ((await slotObject(slot).waiterCount()) !== count) {
    if (performance.now() - began > 10_000) throw new Error(`${slot} has no ${count} that wait`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

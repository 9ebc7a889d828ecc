import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { CopyState } from '../../../src/kv-copy/domain/schedule.ts'
import type { LeaseState } from '../../../src/lease/lease.ts'
import type { LeaseObject } from '../../../src/object/lease-object.ts'
import type { ObjectEnv } from '../../../src/object/slot.ts'

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

export const readAlarm = (slot: string): Promise<number | null> =>
  runInDurableObject(slotObject(slot), (_, { storage }) => storage.getAlarm())

/** Replaces bindings of a running object until it is evicted. The others are those of the worker. */
export const replaceBindings = (slot: string, bindings: Partial<ObjectEnv>): Promise<void> =>
  runInDurableObject(slotObject(slot), instance => void Object.assign(instance, { env: { ...env, ...bindings } }))

export const replaceKv = (slot: string, kv: Partial<KVNamespace>): Promise<void> =>
  replaceBindings(slot, { OPENOVA_LEASES: kv as KVNamespace })

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

import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import type { CopyState } from '../../../src/kv-copy/domain/schedule.ts'
import type { Current } from '../../../src/lease/lease.ts'
import type { LeaseObject } from '../../../src/object/lease-object.ts'

export interface Stored extends CopyState {
  readonly slot: string
  readonly lease: Current
}

export const objectOf = (slot: string): DurableObjectStub<LeaseObject> => env.LEASES.getByName(slot)

export const storedOf = (slot: string): Promise<Stored | undefined> =>
  runInDurableObject(objectOf(slot), (_, { storage }) => storage.kv.get<Stored>('lease'))

/** Puts a state into a slot's storage, as if it had come to it by itself. */
export const seed = (slot: string, lease: Current, copy: CopyState = {}): Promise<void> =>
  runInDurableObject(objectOf(slot), (_, { storage }) => storage.kv.put('lease', { slot, lease, ...copy }))

export const held = (lease: Partial<Current & { kind: 'held' }> = {}): Current => {
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
export const expired = (lease: Partial<Current & { kind: 'held' }> = {}): Current => {
  const now = Date.now()
  return held({ acquiredAt: now - 90_000, renewedAt: now - 60_000, expiresAt: now - 30_000, ...lease })
}

export const alarmOf = (slot: string): Promise<number | null> =>
  runInDurableObject(objectOf(slot), (_, { storage }) => storage.getAlarm())

/** What is given to a running object in the place of Workers KV, until it is evicted. */
export const giveKv = (slot: string, kv: Partial<KVNamespace>): Promise<void> =>
  runInDurableObject(objectOf(slot), instance => void Object.assign(instance, { env: { ...env, OPENOVA_LEASES: kv } }))

/** The platform's loss of an object: its storage is gone, and so is its memory. */
export const lose = async (slot: string): Promise<void> => {
  await runInDurableObject(objectOf(slot), async (_, { storage }) => {
    await storage.deleteAlarm()
    await storage.deleteAll()
  })
  await evictDurableObject(objectOf(slot))
}

/** Ends the object as a restart of its machine does, under the hands of whoever waits for it. */
export const abort = async (slot: string): Promise<void> => {
  await runInDurableObject(objectOf(slot), (_, state) => state.abort('restarting')).catch(() => undefined)
}

/** Resolves once so many callers wait for the slot; fails when that takes longer than any of them has reason to. */
export const untilWaiting = async (slot: string, count: number): Promise<void> => {
  const began = performance.now()
  while ((await objectOf(slot).waiting()) !== count) {
    if (performance.now() - began > 10_000) throw new Error(`${slot} has no ${count} that wait`)
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

import type { DrainLeasesRequest, DrainLeasesResponse } from '@pool/contract/lease'
import type { WorkerEnv } from '../env.ts'
import { listSlots } from '../kv-copy/copy.ts'
import { KV_LAG_MS } from '../kv-copy/domain/schedule.ts'
import type { DrainOutcome, LeaseDrain } from '../lease-service.ts'
import type { LeaseObject } from './lease-object.ts'
import { createObjectLookup, type ObjectLookupEnv } from './lookup.ts'
import { type DrainedSlot, isDraining } from './slot.ts'

type DrainEnv = ObjectLookupEnv & Pick<WorkerEnv, 'OPENOVA_LEASES' | 'DRAIN'>

/** Moves the leases of Durable Objects back into Workers KV. */
export const createLeaseDrain = (env: DrainEnv): LeaseDrain => {
  const toObject = createObjectLookup(env)

  const drainObject = async (name: string, find: () => DurableObjectStub<LeaseObject>): Promise<DrainedSlot> => {
    try {
      return await find().drain()
    } catch (error) {
      return { kind: 'pending', slot: name, reason: `its object did not respond: ${String(error)}` }
    }
  }

  const drainAll = async ({ slots = [], objects = [] }: DrainLeasesRequest): Promise<DrainLeasesResponse> => {
    const results = await Promise.all([
      ...slots.map(slot => drainObject(slot, () => toObject(slot))),
      ...objects.map(id => drainObject(id, () => env.LEASES.get(env.LEASES.idFromString(id)))),
    ])
    const drained = results.filter(({ kind }) => kind !== 'pending')
    const copiedAt = results.map(result => (result.kind === 'drained' ? result.copiedAt : 0))
    const newest = Math.max(0, ...copiedAt)
    return {
      drained: drained.length,
      pending: results.flatMap(result =>
        result.kind === 'pending' ? [{ slot: result.slot, reason: result.reason }] : [],
      ),
      readableAt: newest === 0 ? '' : new Date(newest + KV_LAG_MS).toISOString(),
    }
  }

  return {
    drain: async (request): Promise<DrainOutcome> => {
      if (!isDraining(env)) return { kind: 'not-draining' }
      if (request.slots || request.objects) return { kind: 'drained', result: await drainAll(request) }
      try {
        const { slots, nextCursor } = await listSlots(env.OPENOVA_LEASES, request.cursor)
        const result = await drainAll({ slots })
        return { kind: 'drained', result: { ...result, ...(nextCursor === undefined ? {} : { nextCursor }) } }
      } catch (error) {
        return { kind: 'copy-unavailable', reason: String(error) }
      }
    },
  }
}

import type { WorkerEnv } from '../env.ts'
import { findLocationHint, type PlacementSettings, parsePlacement } from './domain/placement.ts'
import type { LeaseObject } from './lease-object.ts'

/** The settings do not say where objects are. */
export class PlacementError extends Error {
  override readonly name = 'PlacementError'
}

export type ObjectLookupEnv = Pick<WorkerEnv, 'LEASES'> & PlacementSettings

type ObjectLookup = (name: string) => DurableObjectStub<LeaseObject>

/**
 * Finds the object of a name, in the jurisdiction and near the location of the settings. The lookup throws PlacementError
 * if they are invalid: without its jurisdiction a slot has another object, and a misplaced object does not move later.
 */
export const createObjectLookup = (env: ObjectLookupEnv): ObjectLookup => {
  const parsed = parsePlacement(env)
  if ('errors' in parsed) {
    const message = parsed.errors.join('; ')
    return () => {
      throw new PlacementError(message)
    }
  }
  const { placement } = parsed
  return name => {
    const namespace = placement.jurisdiction ? env.LEASES.jurisdiction(placement.jurisdiction) : env.LEASES
    const locationHint = findLocationHint(placement, name)
    return namespace.getByName(name, locationHint ? { locationHint } : undefined)
  }
}

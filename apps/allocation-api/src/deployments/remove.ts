import type { Deployment } from '@pool/contract'
import type { Rejection } from '../allocation/domain/types.ts'
import type { DeploymentStore } from './repository.ts'
import type { Names } from './reservation.ts'
import type { Runs } from './runner.ts'

export interface RemoveDependencies {
  readonly store: Pick<DeploymentStore, 'cancel' | 'heldName' | 'remove'>
  readonly runs: Pick<Runs, 'cancel'>
  readonly names: Pick<Names, 'free'>
}

export type RemoveOutcome =
  | { readonly kind: 'cancelling'; readonly deployment: Deployment }
  | { readonly kind: 'removed' }
  | Rejection<'not-found'>

/**
 * Stops what is under way; what is finished it forgets, and frees its name. It takes down no infrastructure: that
 * needs keys, which are kept nowhere, and a bucket with its backups is to outlive its cluster.
 */
export const remove =
  ({ store, runs, names }: RemoveDependencies) =>
  async (id: string): Promise<RemoveOutcome> => {
    const cancelled = await store.cancel(id)
    if (cancelled) {
      runs.cancel(id)
      return { kind: 'cancelling', deployment: cancelled }
    }
    const held = await store.heldName(id)
    if (!held) return { kind: 'not-found' }
    // The name first: if that is all that gets done, the deployment is still there to be removed again.
    await names.free({ id, ...held })
    return (await store.remove(id)) ? { kind: 'removed' } : { kind: 'not-found' }
  }

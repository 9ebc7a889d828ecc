import type { Rejection } from '../../allocation/domain/types.ts'
import type { DuplicateRequest, IdempotencyClaim } from '../../idempotency/idempotency.ts'
import type { Caller } from '../../naming/naming.ts'
import { toFailed } from '../domain/provisioner-failure.ts'
import type { RejectionWithDetail } from '../domain/types.ts'
import type { DeploymentSituation } from '../repository.ts'
import {
  type CallDependencies,
  type CallerWithToken,
  type CancelOutcome,
  findAndDecide,
  findSituation,
  toStateRequest,
} from './call.ts'

export type RemoveOutcome =
  | CancelOutcome
  | { readonly kind: 'removed' }
  | Rejection<'in-progress'>
  | RejectionWithDetail<'still-up' | 'forbidden' | 'provisioning-unavailable'>

const STILL_UP = 'Its infrastructure exists, or may exist in part: destroy the deployment first.'

/** Null if another call was accepted in the meantime. */
const carryOut = async (
  { repository, reservations, provisioner, runner }: CallDependencies,
  verdict: 'cancelled' | 'deleted' | 'abandoned',
  situation: DeploymentSituation,
  caller: Caller,
  key: IdempotencyClaim | null,
): Promise<RemoveOutcome | DuplicateRequest | null> => {
  if (verdict === 'cancelled') {
    const deployment = await repository.cancel(situation.id, caller, key)
    if (deployment === null || 'kind' in deployment) return deployment
    runner.cancel(situation.id)
    return { kind: 'cancelling', deployment }
  }
  if (verdict === 'abandoned' && !(await repository.markAbandoned(situation, caller))) return null
  const archived = verdict === 'abandoned' ? await provisioner.archive(toStateRequest(situation)).catch(toFailed) : null
  if (archived instanceof Object) return { kind: 'provisioning-unavailable', detail: archived.reason }
  // The name first: after a crash between the two, the deployment can still be removed again.
  await reservations.release(situation, caller)
  if (!(await repository.delete(situation, caller, archived))) return null
  // Afterwards, when no call can use the state any more. A file that cannot be removed does not bring the deployment back.
  if (archived === null) await provisioner.discard(toStateRequest(situation)).catch(() => {})
  return { kind: 'removed' }
}

/**
 * Cancels a run in progress; deletes a finished deployment of which nothing remains, or abandons what remains.
 * Infrastructure is never destroyed here: that needs credentials, which are not stored.
 */
export const removeDeployment = (
  deps: CallDependencies,
  id: string,
  shouldAbandon: boolean,
  caller: CallerWithToken,
): Promise<RemoveOutcome> =>
  withKey(deps, ['remove', id, caller.token ?? null, shouldAbandon], id, caller, key =>
    removeWithKey(deps, id, shouldAbandon, caller, key),
  )

/** Only a cancellation is stored: what was deleted is 404. */
const withKey = (
  { idempotency, repository }: CallDependencies,
  content: readonly unknown[],
  id: string,
  { key }: CallerWithToken,
  execute: (key: IdempotencyClaim | null) => Promise<RemoveOutcome | DuplicateRequest>,
): Promise<RemoveOutcome> =>
  idempotency.replayThenExecute<RemoveOutcome>(key, content, {
    execute,
    success: 'cancelling',
    replay: async () => {
      const deployment = await repository.find(id)
      return deployment ? { kind: 'cancelling', deployment } : { kind: 'not-found' }
    },
  })

const removeWithKey = async (
  deps: CallDependencies,
  id: string,
  shouldAbandon: boolean,
  callerWithToken: CallerWithToken,
  key: IdempotencyClaim | null,
): Promise<RemoveOutcome | DuplicateRequest> => {
  if (shouldAbandon && callerWithToken.caller.actor !== 'operator') {
    return { kind: 'forbidden', detail: 'Only an operator can abandon infrastructure, on the operator listener.' }
  }
  const call = shouldAbandon ? 'abandon' : 'delete'
  for (;;) {
    const found = await findAndDecide<'cancelled' | 'deleted' | 'abandoned'>(deps, id, call, callerWithToken)
    if (found.kind === 'still-up') return { kind: 'still-up', detail: STILL_UP }
    if (!('situation' in found)) return found as RemoveOutcome
    const outcome = await carryOut(deps, found.kind, found.situation, callerWithToken.caller, key)
    if (outcome) return outcome
  }
}

/**
 * Cancels the run in progress if there is one, and deletes nothing: it can be repeated after the end of the run. `isForced`:
 * without waiting for what Terraform is creating.
 */
export const cancelRun = (
  deps: CallDependencies,
  id: string,
  isForced: boolean,
  callerWithToken: CallerWithToken,
): Promise<CancelOutcome> =>
  withKey(
    deps,
    ['cancel', id, callerWithToken.token ?? null, ...(isForced ? ['force'] : [])],
    id,
    callerWithToken,
    async key => {
      const { repository, runner } = deps
      const found = await findSituation(deps, id, callerWithToken)
      if (found.kind !== 'found') return found
      const cancelled = await repository.cancel(id, callerWithToken.caller, key, isForced)
      if (cancelled && 'kind' in cancelled) return cancelled
      if (cancelled) runner.cancel(id, isForced)
      const deployment = cancelled ?? (await repository.find(id))
      return deployment ? { kind: 'cancelling', deployment } : { kind: 'not-found' }
    },
  ) as Promise<CancelOutcome>

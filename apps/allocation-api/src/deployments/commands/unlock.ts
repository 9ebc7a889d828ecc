import type { DuplicateRequest, IdempotencyClaim } from '../../idempotency/idempotency.ts'
import type { Caller } from '../../naming/naming.ts'
import { toFailed } from '../domain/provisioner-failure.ts'
import type { UnlockOutcome } from '../domain/types.ts'
import { type CallDependencies, findAndDecide, toStateRequest } from './call.ts'

/** Lifts the lock that a run of this deployment took, which an operator has confirmed to be orphaned. */
export const unlockState = (
  deps: CallDependencies,
  id: string,
  caller: Caller,
  key: string | undefined,
): Promise<UnlockOutcome> =>
  deps.idempotency.replayThenExecute<UnlockOutcome>(key, ['unlock', id], {
    execute: claim => unlockWithKey(deps, id, caller, claim),
    success: 'unlocked',
    replay: stored => stored as UnlockOutcome,
  })

const unlockWithKey = async (
  deps: CallDependencies,
  id: string,
  caller: Caller,
  key: IdempotencyClaim | null,
): Promise<UnlockOutcome | DuplicateRequest> => {
  const found = await findAndDecide<'unlocked'>(deps, id, 'unlock', { caller, token: undefined })
  if (found.kind !== 'unlocked') return found as UnlockOutcome
  const { situation } = found
  const { stateLock } = situation
  if (!stateLock) {
    return { kind: 'lock-not-recorded', detail: 'No run of this deployment is known to have left a lock.' }
  }
  const unlocked = await deps.provisioner.unlock(toStateRequest(situation), stateLock.id).catch(toFailed)
  if (unlocked.kind === 'failed') return { kind: 'provisioning-unavailable', detail: unlocked.reason }
  if (unlocked.kind === 'other-lock') {
    const detail = `The state is locked with the ID ${unlocked.id}, which no run of this deployment took.`
    return { kind: 'lock-not-recorded', detail }
  }
  const isLifted = unlocked.kind === 'unlocked'
  const duplicate = await deps.repository.clearLock(situation, { id: stateLock.id, isLifted }, caller, key)
  return duplicate ?? { kind: 'unlocked', id, isLifted }
}

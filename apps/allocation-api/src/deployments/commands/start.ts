import type { Caller } from '../../naming/naming.ts'
import { toRecord } from '../domain/spec.ts'
import type { AccessKeyPair, StartOutcome } from '../domain/types.ts'
import type { Proof, ProofOutcome } from '../fqdn.ts'
import type { DeploymentSituation } from '../repository.ts'
import { type CallDependencies, type CallerWithToken, findAndDecide, parseInput, toRemainsDetail } from './call.ts'

/** An apply claims the FQDN again if nothing of the lineage has kept it from others. */
const prove = async (
  { domainProof }: CallDependencies,
  operation: 'apply' | 'destroy',
  { spec, lineageId, status, hasInfrastructure, hasBucket }: DeploymentSituation,
): Promise<ProofOutcome> => {
  const hasDomain = status === 'ready' || hasInfrastructure || hasBucket
  if (operation === 'destroy' || hasDomain) return { kind: 'proven', proof: null }
  return domainProof.prove({ spec, lineageId, idempotencyKey: undefined })
}

const takeName = async (
  { repository, reservations }: CallDependencies,
  situation: DeploymentSituation,
  caller: Caller,
) => {
  const { sovereignFQDN, name } = situation.spec
  const remains = await repository.findRemains(sovereignFQDN, situation.lineageId)
  if (remains) return { kind: 'fqdn-remains' as const, detail: toRemainsDetail(sovereignFQDN, remains) }
  return name
    ? reservations.retake(situation, caller)
    : { kind: 'reserved' as const, tokenHash: situation.reservationTokenHash }
}

/** The only place that accepts an operation. Stores its input. */
const accept = async (
  deps: CallDependencies,
  operation: 'apply' | 'destroy',
  situation: DeploymentSituation,
  credentials: AccessKeyPair | null,
  proof: Proof | null,
  caller: Caller,
): Promise<StartOutcome | { readonly kind: 'changed' }> => {
  const name = operation === 'apply' ? await takeName(deps, situation, caller) : null
  if (name && name.kind !== 'reserved') return name
  const reservationTokenHash = name ? name.tokenHash : situation.reservationTokenHash
  const accepted = await deps.repository.accept(
    { ...situation, reservationTokenHash },
    { operation, record: toRecord(situation.spec, credentials), proof, caller },
  )
  if (accepted.kind !== 'accepted') return accepted
  deps.runner.submit(accepted.state, credentials)
  return { kind: 'started', id: situation.id, status: operation === 'apply' ? 'provisioning' : 'destroying' }
}

/**
 * Starts an apply or a destroy. An apply uses the current module: it resumes after a failure, brings a new version of the
 * module or new input, or installs again after a destroy. A destroy keeps the bucket, then releases the name.
 */
export const startOperation = async (
  deps: CallDependencies,
  operation: 'apply' | 'destroy',
  id: string,
  body: unknown,
  callerWithToken: CallerWithToken,
): Promise<StartOutcome> => {
  const { caller } = callerWithToken
  for (;;) {
    const found = await findAndDecide<'started'>(deps, id, operation, callerWithToken)
    if (found.kind !== 'started') return found as StartOutcome
    const parsed = parseInput(deps, operation, body, found.situation)
    if (parsed.kind !== 'valid') return parsed
    const { spec, credentials } = parsed
    const situation = { ...found.situation, spec }
    const obstacle = await deps.runner.findObstacle(spec, credentials, caller)
    if (obstacle) return obstacle
    const proven = await prove(deps, operation, situation)
    if (proven.kind !== 'proven') return proven
    const outcome = await accept(deps, operation, situation, credentials, proven.proof, caller)
    if (outcome.kind !== 'changed') return outcome
  }
}

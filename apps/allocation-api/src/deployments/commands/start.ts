import type { DuplicateRequest, IdempotencyClaim } from '../../idempotency/idempotency.ts'
import type { Caller } from '../../naming/naming.ts'
import { toRecord, type ValidSpec } from '../domain/spec.ts'
import type { StartOutcome } from '../domain/types.ts'
import type { Proof, ProofOutcome } from '../fqdn.ts'
import type { DeploymentSituation } from '../repository.ts'
import { type BucketRequest, type BucketUse, endFormerClaim, findBucketUse } from './bucket.ts'
import { type CallDependencies, type CallerWithToken, findAndDecide, parseInput, toRemainsDetail } from './call.ts'

/** An apply claims the FQDN again if nothing of the lineage has kept it from others. */
const prove = async (
  { domainProof }: CallDependencies,
  operation: 'apply' | 'destroy',
  { spec, lineageId, status, hasInfrastructure }: DeploymentSituation,
): Promise<ProofOutcome> => {
  const hasDomain = status === 'ready' || hasInfrastructure
  if (operation === 'destroy' || hasDomain) return { kind: 'proven', proof: null }
  return domainProof.prove({ spec, lineageId, idempotencyKey: undefined })
}

const takeName = async (
  { repository, reservations }: CallDependencies,
  situation: DeploymentSituation,
  caller: Caller,
) => {
  const { sovereignFQDN, name } = situation.spec
  if (await repository.hasRemains(sovereignFQDN, situation.lineageId)) {
    return { kind: 'fqdn-remains' as const, detail: toRemainsDetail(sovereignFQDN) }
  }
  return name
    ? reservations.retake(situation, caller)
    : { kind: 'reserved' as const, tokenHash: situation.reservationTokenHash }
}

/** If another deployment has the FQDN by now, that is the conflict. */
const findUse = async (
  deps: CallDependencies,
  operation: 'apply' | 'destroy',
  request: DeploymentSituation & Pick<BucketRequest, 'credentials' | 'adoptBucket'>,
) => {
  const isTaken =
    request.status !== 'ready' && (await deps.repository.findOccupant(request.spec.sovereignFQDN)) === 'deployment'
  return operation === 'destroy' || isTaken ? ({ kind: 'usable', use: null } as const) : findBucketUse(deps, request)
}

/** The only place that accepts an operation. Stores its input. */
const accept = async (
  deps: CallDependencies,
  operation: 'apply' | 'destroy',
  situation: DeploymentSituation,
  {
    credentials,
    unfinishedRemoved = false,
    planHash,
  }: Pick<ValidSpec, 'credentials' | 'unfinishedRemoved' | 'planHash'>,
  proof: Proof | null,
  bucketUse: BucketUse,
  caller: Caller,
  key: IdempotencyClaim | null,
): Promise<StartOutcome | DuplicateRequest | { readonly kind: 'changed' }> => {
  const name = operation === 'apply' ? await takeName(deps, situation, caller) : null
  if (name && name.kind !== 'reserved') return name
  const conflict = await endFormerClaim(deps, situation.spec, bucketUse, caller)
  if (conflict) return conflict
  const reservationTokenHash = name ? name.tokenHash : situation.reservationTokenHash
  const accepted = await deps.repository.accept(
    { ...situation, reservationTokenHash },
    {
      operation,
      record: {
        ...toRecord(situation.spec, credentials),
        ...(planHash !== undefined && { plan: { hash: planHash, operationBefore: situation.operation } }),
      },
      proof,
      adoptsBucket: bucketUse?.kind === 'adopted',
      unfinishedRemoved,
      caller,
    },
    key,
  )
  if (accepted.kind !== 'accepted') return accepted
  deps.runner.submit(accepted.state, credentials)
  return { kind: 'started', id: situation.id, status: operation === 'apply' ? 'provisioning' : 'destroying' }
}

/**
 * Starts an apply or a destroy. An apply uses the current module: it resumes after a failure, brings a new version of the
 * module or new input, or installs again after a destroy. A destroy keeps the bucket, then releases the name.
 */
export const startOperation = (
  deps: CallDependencies,
  operation: 'apply' | 'destroy',
  id: string,
  body: unknown,
  callerWithToken: CallerWithToken,
): Promise<StartOutcome> => {
  const { token = null, key } = callerWithToken
  return deps.idempotency.replayThenExecute<StartOutcome>(key, [operation, id, token, body ?? null], {
    execute: claim => startWithKey(deps, operation, id, body, callerWithToken, claim),
    success: 'started',
    replay: stored => ({ ...(stored as Started), id }),
  })
}

type Started = Extract<StartOutcome, { readonly kind: 'started' }>

const startWithKey = async (
  deps: CallDependencies,
  operation: 'apply' | 'destroy',
  id: string,
  body: unknown,
  callerWithToken: CallerWithToken,
  key: IdempotencyClaim | null,
): Promise<StartOutcome | DuplicateRequest> => {
  const { caller } = callerWithToken
  for (;;) {
    const found = await findAndDecide<'started'>(deps, id, operation, callerWithToken)
    if (found.kind !== 'started') return found as StartOutcome
    const parsed = parseInput(deps, operation, body, found.situation)
    if (parsed.kind !== 'valid') return parsed
    const { spec, credentials, adoptBucket = false } = parsed
    const situation = { ...found.situation, spec }
    const obstacle = await deps.runner.findObstacle(spec, credentials, caller)
    if (obstacle) return obstacle
    const proven = await prove(deps, operation, situation)
    if (proven.kind !== 'proven') return proven
    const bucket = await findUse(deps, operation, { ...situation, credentials, adoptBucket })
    if (bucket.kind !== 'usable') return bucket
    const outcome = await accept(deps, operation, situation, parsed, proven.proof, bucket.use, caller, key)
    if (outcome.kind !== 'changed') return outcome
  }
}

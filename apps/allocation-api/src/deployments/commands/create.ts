import type { DomainCheck } from '@pool/contract'
import { type DuplicateRequest, duplicateRequest, type IdempotencyClaim } from '../../idempotency/idempotency.ts'
import { createToken } from '../../lib/token.ts'
import type { Caller } from '../../naming/naming.ts'
import { toRecord } from '../domain/spec.ts'
import type { AccessKeyPair, CreateDecision, CreateOutcome, DeploymentSpec } from '../domain/types.ts'
import type { Proof } from '../domain-proof.ts'
import type { StoredCreateDecision } from '../repository.ts'
import { type CallDependencies, findObstacle, toRemainsDetail } from './call.ts'

/** One request to create a deployment. `claim` is that of its key. */
interface Creation {
  readonly spec: DeploymentSpec
  readonly credentials: AccessKeyPair | null
  readonly caller: Caller
  readonly key: string | undefined
  readonly claim: IdempotencyClaim | null
}

const toDecision = (stored: StoredCreateDecision, deploymentToken: string | null): CreateDecision => {
  if (stored.outcome !== 'created') return { kind: stored.outcome }
  if (deploymentToken === null) throw new Error('the stored result of a deployment has no token')
  return { kind: 'created', id: stored.id, deploymentToken }
}

/** What an earlier deployment left under the FQDN. A deployment that is up is a conflict instead. */
const findRemains = async (
  { repository }: CallDependencies,
  { sovereignFQDN }: DeploymentSpec,
): Promise<CreateDecision | null> => {
  const remains = await repository.findRemains(sovereignFQDN, null)
  if (!remains || (await repository.isTaken(sovereignFQDN))) return null
  return { kind: 'fqdn-remains', detail: toRemainsDetail(sovereignFQDN, remains) }
}

const reserveAndInsert = async (
  { repository, reservations, runner, newId }: CallDependencies,
  { spec, credentials, caller, key, claim }: Creation,
  proof: Proof | null,
): Promise<CreateDecision | DuplicateRequest> => {
  // Derived from the request's key, so that a repeated request gets the same reservation.
  const reservationKey = key === undefined ? undefined : `deployment ${key}`
  const reservation = await reservations.reserve(spec, caller, reservationKey)
  if (reservation.kind !== 'reserved') return reservation
  const { tokenHash: reservationTokenHash } = reservation
  const holder = { id: newId(), spec, lineageId: newId(), reservationTokenHash }
  const { token: deploymentToken, tokenHash } = createToken()
  const stored = await repository.insert(
    { ...holder, name: spec.name, record: toRecord(spec, credentials), tokenHash, proof, caller },
    claim,
    claim?.sealToken(deploymentToken) ?? null,
  )
  if ('kind' in stored) {
    // A concurrent request with the same key was faster. It has the same reservation, unless it has ended since.
    const isUnused = reservationTokenHash && !(await repository.hasReservation(reservationTokenHash))
    if (isUnused) await reservations.release(holder)
    return stored
  }
  if (stored.outcome === 'created') runner.submitNew(holder, credentials)
  else await reservations.release(holder)
  return toDecision(stored, deploymentToken)
}

const decide = async (deps: CallDependencies, creation: Creation): Promise<CreateDecision | DuplicateRequest> => {
  const { spec, credentials, caller, key } = creation
  const obstacle = await findObstacle(deps, spec, credentials, caller)
  if (obstacle) return obstacle
  const proven = await deps.domainProof.prove({ spec, lineageId: null, idempotencyKey: key })
  if (proven.kind !== 'proven') return proven
  return (await findRemains(deps, spec)) ?? reserveAndInsert(deps, creation, proven.proof)
}

/**
 * Validates the request, the prerequisites of this process and the credentials before anything changes. Then reserves
 * the name; only a request that has its name becomes a deployment.
 */
export const createDeployment = async (
  deps: CallDependencies,
  body: unknown,
  caller: Caller,
  key: string | undefined,
): Promise<CreateOutcome> => {
  const parsed = deps.parseSpec(body)
  if (parsed.kind !== 'valid') return parsed
  const { spec, credentials } = parsed
  return deps.idempotency.replayThenExecute<CreateDecision>(key, ['deployment', spec, credentials], {
    execute: async claim => {
      const decision = await decide(deps, { spec, credentials, caller, key, claim })
      // What conflicts may be the deployment that a concurrent request with this key created.
      const isConflict = ['fqdn-remains', 'subdomain-conflict', 'domain-not-proven'].includes(decision.kind)
      return isConflict && claim && (await deps.idempotency.isExecuted(claim)) ? duplicateRequest : decision
    },
    replay: (stored, token) => toDecision(stored as StoredCreateDecision, token),
  })
}

const findDomainObstacle = async (
  { parseSpec, repository }: CallDependencies,
  domain: string,
): Promise<Pick<DomainCheck, 'reason' | 'detail'> | null> => {
  const parsed = parseSpec({ sovereignDomainMode: 'byo', sovereignFQDN: domain })
  // The other fields are absent, so the domain is never the only fault.
  const fault = parsed.kind === 'valid' ? undefined : parsed.faults.find(({ field }) => field === 'sovereignFQDN')
  if (fault) return { reason: 'in-pool', detail: fault.detail }
  if (await repository.isTaken(domain)) {
    return { reason: 'fqdn-conflict', detail: `Another deployment has ${domain}; destroy and delete it first.` }
  }
  const remains = await repository.findRemains(domain, null)
  return remains ? { reason: 'fqdn-remains', detail: toRemainsDetail(domain, remains) } : null
}

/** What a deployment of this domain that is created now would find. Changes nothing. */
export const checkDomain = async (
  deps: CallDependencies,
  domain: string,
  key: string | undefined,
): Promise<DomainCheck> => {
  const obstacle = await findDomainObstacle(deps, domain)
  const claimant = { spec: { name: null, sovereignFQDN: domain }, lineageId: null, idempotencyKey: key }
  const proven = await deps.domainProof.prove(claimant)
  return {
    domain,
    available: obstacle === null,
    ...obstacle,
    ...(proven.kind === 'proven'
      ? { proof: proven.proof ? 'proven' : 'not-required' }
      : { proof: proven.kind === 'dns-unavailable' ? 'unknown' : 'missing', proofDetail: proven.detail }),
  }
}

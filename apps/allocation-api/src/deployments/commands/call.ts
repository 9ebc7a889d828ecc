import { timingSafeEqual } from 'node:crypto'
import { confirmation, type Deployment, toFieldFaults } from '@pool/contract'
import type { Rejection } from '../../allocation/domain/types.ts'
import type { FindBucket } from '../../credentials/find-bucket.ts'
import type { Idempotency } from '../../idempotency/idempotency.ts'
import { isJsonObject } from '../../lib/text.ts'
import { hashToken } from '../../lib/token.ts'
import type { Caller } from '../../naming/naming.ts'
import type { BucketClaims } from '../bucket-claims.ts'
import { type Call, decideCall, type Verdict } from '../domain/lifecycle.ts'
import { type ChangeableDeployment, parseCredentials, type SpecResult } from '../domain/spec.ts'
import type { DomainProof, ReservationClient } from '../fqdn.ts'
import type { Provisioner, StateRequest } from '../provisioner.ts'
import type { DeploymentRepository, DeploymentSituation } from '../repository.ts'
import type { StorageProvider } from '../run.ts'
import type { Runner } from '../runner.ts'

/** What the calls to deployments work with. */
export interface CallDependencies {
  readonly repository: DeploymentRepository
  readonly reservations: ReservationClient
  readonly provisioner: Provisioner
  readonly storage: StorageProvider
  readonly bucketClaims: Pick<BucketClaims, 'findOwner' | 'lift'>
  readonly findBucket: FindBucket
  readonly runner: Runner
  readonly domainProof: Pick<DomainProof, 'prove'>
  readonly idempotency: Pick<Idempotency, 'replayThenExecute'>
  readonly parseSpec: (body: unknown) => SpecResult
  readonly parseChange: (body: unknown, deployment: ChangeableDeployment) => SpecResult
}

/** Who calls, and the token of the deployment if one was sent. An operator needs none. */
export interface CallerWithToken {
  readonly caller: Caller
  readonly token: string | undefined
  /** The Idempotency-Key of a write. */
  readonly key?: string | undefined
}

export type CancelOutcome =
  | { readonly kind: 'cancelling'; readonly deployment: Deployment }
  | Rejection<'not-found' | 'token-mismatch' | 'idempotency-key-reused'>

/** An operator's actor is that of the operator listener, which authenticates. */
const isAuthorized = ({ caller, token }: CallerWithToken, { tokenHash }: DeploymentSituation): boolean =>
  caller.actor === 'operator' || (token !== undefined && timingSafeEqual(hashToken(token), tokenHash))

export type FoundSituation =
  | { readonly kind: 'found'; readonly situation: DeploymentSituation }
  | Rejection<'not-found' | 'token-mismatch'>

/** The deployment of a call, if its caller may make it. */
export const findSituation = async (
  { repository }: CallDependencies,
  id: string,
  caller: CallerWithToken,
): Promise<FoundSituation> => {
  const situation = await repository.findSituation(id)
  if (!situation) return { kind: 'not-found' }
  return isAuthorized(caller, situation) ? { kind: 'found', situation } : { kind: 'token-mismatch' }
}

export type CallVerdict<Accepted extends Verdict> =
  | { readonly kind: Accepted; readonly situation: DeploymentSituation }
  | Rejection<'not-found' | 'token-mismatch' | 'in-progress' | 'destroy-incomplete' | 'still-up'>

/** Decides a call by `decideCall`. The generation of the situation fences what follows. */
export const findAndDecide = async <Accepted extends Verdict>(
  deps: CallDependencies,
  id: string,
  call: Call,
  caller: CallerWithToken,
): Promise<CallVerdict<Accepted>> => {
  const found = await findSituation(deps, id, caller)
  if (found.kind !== 'found') return found
  const { situation } = found
  const verdict = situation.isAbandoned && call !== 'abandon' ? 'in-progress' : decideCall(situation, call)
  switch (verdict) {
    case 'in-progress':
    case 'destroy-incomplete':
    case 'still-up':
      return { kind: verdict }
    default:
      return { kind: verdict as Accepted, situation }
  }
}

/** The input of an apply or a destroy. A destroy runs with the stored input. */
export const parseInput = (
  { parseChange }: CallDependencies,
  operation: 'apply' | 'destroy',
  body: unknown,
  situation: DeploymentSituation,
): SpecResult => {
  const { data, error } = confirmation.safeParse(isJsonObject(body) ? body : {})
  if (error) return { kind: 'invalid-deployment', faults: toFieldFaults(error) }
  const parsed =
    operation === 'apply'
      ? parseChange(body, situation)
      : { spec: situation.spec, ...parseCredentials(body, situation.spec) }
  return parsed.kind === 'valid' ? { ...parsed, ...data } : parsed
}

/** Who can clear it. It names nothing that belongs to the other tenant's deployment. */
export const toRemainsDetail = (sovereignFQDN: string): string =>
  `Infrastructure of an earlier deployment of ${sovereignFQDN} remains: its owner can destroy it, or an operator can abandon it (DELETE of the deployment with ?abandon=true).`

export const toStateRequest = ({ id, generation, lineageId, spec, knownState }: DeploymentSituation): StateRequest => ({
  id,
  run: generation,
  stateKey: lineageId,
  bucket: spec.storage?.bucket ?? null,
  knownState,
})

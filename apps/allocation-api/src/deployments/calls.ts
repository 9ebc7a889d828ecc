import { timingSafeEqual } from 'node:crypto'
import { type Deployment, planRequest, toFieldFaults } from '@pool/contract'
import pLimit from 'p-limit'
import type { Caller, Rejection } from '../allocation/domain/types.ts'
import { isJsonObject } from '../lib/json.ts'
import { hashToken } from '../lib/token.ts'
import { type Call, decideCall, isFinished, type Verdict } from './domain/lifecycle.ts'
import { type StorageProvider, toModuleSecrets, toModuleVariables } from './domain/run.ts'
import { type ChangeableDeployment, parseCredentials, type SpecResult, toRecord } from './domain/spec.ts'
import type {
  AccessKeyPair,
  Obstacle,
  PlanOutcome,
  RejectionWithDetail,
  StartOutcome,
  UnlockOutcome,
} from './domain/types.ts'
import type { DomainProof, Proof, ProofOutcome } from './domain-proof.ts'
import type { FindObstacle } from './obstacles.ts'
import type { Provisioner, StateRequest } from './provisioner.ts'
import { toRemainsDetail } from './remains.ts'
import type { DeploymentRepository, DeploymentSituation } from './repository.ts'
import type { ReservationClient } from './reservation.ts'
import type { Runner } from './runner.ts'

/** Who calls, and the token of the deployment if one was sent. An operator needs none. */
export interface CallerWithToken {
  readonly caller: Caller
  readonly token: string | undefined
}

export type RemoveOutcome =
  | { readonly kind: 'cancelling'; readonly deployment: Deployment }
  | { readonly kind: 'removed' }
  | Rejection<'not-found' | 'token-mismatch' | 'in-progress'>
  | RejectionWithDetail<'still-up' | 'forbidden'>

export interface CallsOptions {
  readonly repository: DeploymentRepository
  readonly reservations: ReservationClient
  readonly provisioner: Provisioner
  readonly storage: StorageProvider
  readonly runner: Runner
  readonly findObstacle: FindObstacle
  readonly domainProof: Pick<DomainProof, 'prove'>
  readonly parseChange: (body: unknown, deployment: ChangeableDeployment) => SpecResult
}

/** A plan runs in the request, so this bounds the Terraform processes in addition to those of runs. */
const MAX_CONCURRENT_PLANS = 2
const MAX_QUEUED_PLANS = 10
const PLAN_RETRY_S = 30

const STILL_UP = 'Its infrastructure exists, or may exist in part: destroy the deployment first.'

/** An operator's actor is that of the operator listener, which authenticates. */
const isAuthorized = ({ caller, token }: CallerWithToken, { tokenHash }: DeploymentSituation): boolean =>
  caller.actor === 'operator' || (token !== undefined && timingSafeEqual(hashToken(token), tokenHash))

type Found<Accepted extends Verdict> =
  | { readonly kind: Accepted; readonly situation: DeploymentSituation }
  | Rejection<'not-found' | 'token-mismatch' | 'in-progress' | 'destroy-incomplete' | 'still-up'>

/** Calls to a deployment that exists. `decideCall` decides each one; the generation of the row fences what follows. */
export class DeploymentCalls {
  readonly #options: CallsOptions
  readonly #planning = pLimit(MAX_CONCURRENT_PLANS)

  constructor(options: CallsOptions) {
    this.#options = options
  }

  /** Starts an apply or a destroy. */
  async start(
    operation: 'apply' | 'destroy',
    id: string,
    body: unknown,
    callerWithToken: CallerWithToken,
  ): Promise<StartOutcome> {
    for (;;) {
      const found = await this.#find<'started'>(id, operation, callerWithToken)
      if (found.kind !== 'started') return found as StartOutcome
      const parsed = this.#parseInput(operation, body, found.situation)
      if (parsed.kind !== 'valid') return parsed
      const { spec, credentials } = parsed
      const situation = { ...found.situation, spec }
      const obstacle = await this.#options.findObstacle(spec, credentials, callerWithToken.caller)
      if (obstacle) return obstacle
      const proven = await this.#prove(operation, situation)
      if (proven.kind !== 'proven') return proven
      const outcome = await this.#accept(operation, situation, credentials, proven.proof, callerWithToken.caller)
      if (outcome.kind !== 'changed') return outcome
    }
  }

  /** What an apply or a destroy would do. */
  async plan(id: string, body: unknown, callerWithToken: CallerWithToken, signal: AbortSignal): Promise<PlanOutcome> {
    const request = planRequest.pick({ operation: true }).safeParse(isJsonObject(body) ? body : {})
    const operation = request.data?.operation ?? 'apply'
    const call = operation === 'destroy' ? 'plan-destroy' : 'plan'
    const found = await this.#find<'planned'>(id, call, callerWithToken)
    if (found.kind !== 'planned') return found as PlanOutcome
    const parsed = this.#parseInput(operation, body, found.situation)
    const operationFaults = request.error ? toFieldFaults(request.error) : []
    const faults = [...operationFaults, ...(parsed.kind === 'valid' ? [] : parsed.faults)]
    if (parsed.kind !== 'valid' || faults.length > 0) return { kind: 'invalid-deployment', faults }
    const situation = { ...found.situation, spec: parsed.spec }
    const obstacle =
      this.#planObstacle() ??
      (await this.#options.findObstacle(situation.spec, parsed.credentials, callerWithToken.caller))
    if (obstacle) return obstacle
    return this.#planning(() => this.#plan(operation, situation, parsed.credentials, signal))
  }

  /** Cancels a run in progress; deletes a finished deployment of which nothing remains, or abandons what remains. */
  async remove(id: string, shouldAbandon: boolean, callerWithToken: CallerWithToken): Promise<RemoveOutcome> {
    if (shouldAbandon && callerWithToken.caller.actor !== 'operator') {
      return { kind: 'forbidden', detail: 'Only an operator can abandon infrastructure, on the operator listener.' }
    }
    for (;;) {
      const found = await this.#find<'cancelled' | 'deleted' | 'abandoned'>(
        id,
        shouldAbandon ? 'abandon' : 'delete',
        callerWithToken,
      )
      if (found.kind === 'still-up') return { kind: 'still-up', detail: STILL_UP }
      if (!('situation' in found)) return found as RemoveOutcome
      const outcome = await this.#remove(found.kind, found.situation, callerWithToken.caller)
      if (outcome) return outcome
    }
  }

  /** Cancels the run in progress if there is one, and deletes nothing: it can be repeated after the end of the run. */
  async cancel(id: string, callerWithToken: CallerWithToken): Promise<RemoveOutcome> {
    const { repository, runner } = this.#options
    const situation = await repository.findSituation(id)
    if (!situation) return { kind: 'not-found' }
    if (!isAuthorized(callerWithToken, situation)) return { kind: 'token-mismatch' }
    const cancelled = isFinished(situation.status) ? null : await repository.cancel(id, callerWithToken.caller)
    if (cancelled) runner.cancel(id)
    const deployment = cancelled ?? (await repository.find(id))
    return deployment ? { kind: 'cancelling', deployment } : { kind: 'not-found' }
  }

  /** Lifts the lock that a run of this deployment took, which an operator has confirmed to be orphaned. */
  async unlock(id: string, caller: Caller): Promise<UnlockOutcome> {
    const { provisioner, repository } = this.#options
    const found = await this.#find<'unlocked'>(id, 'unlock', { caller, token: undefined })
    if (found.kind !== 'unlocked') return found as UnlockOutcome
    const { stateLock } = found.situation
    if (!stateLock) {
      return { kind: 'lock-not-recorded', detail: 'No run of this deployment is known to have left a lock.' }
    }
    const unlocked = await provisioner.unlock(this.#stateRequest(found.situation), stateLock.id)
    if (unlocked.kind === 'failed') return { kind: 'provisioning-unavailable', detail: unlocked.reason }
    if (unlocked.kind === 'other-lock') {
      const detail = `The state is locked with the ID ${unlocked.id}, which no run of this deployment took.`
      return { kind: 'lock-not-recorded', detail }
    }
    await repository.clearLock(found.situation, stateLock.id, caller)
    return { kind: 'unlocked', id, isLifted: unlocked.kind === 'unlocked' }
  }

  /** A destroy runs with the stored input. */
  #parseInput(operation: 'apply' | 'destroy', body: unknown, situation: DeploymentSituation): SpecResult {
    if (operation === 'apply') return this.#options.parseChange(body, situation)
    const parsed = parseCredentials(body, situation.spec)
    return parsed.kind === 'valid' ? { ...parsed, spec: situation.spec } : parsed
  }

  async #find<Accepted extends Verdict>(
    id: string,
    call: Call,
    callerWithToken: CallerWithToken,
  ): Promise<Found<Accepted>> {
    const situation = await this.#options.repository.findSituation(id)
    if (!situation) return { kind: 'not-found' }
    if (!isAuthorized(callerWithToken, situation)) return { kind: 'token-mismatch' }
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

  /** An apply claims the FQDN again if nothing of the lineage has kept it from others. */
  async #prove(operation: 'apply' | 'destroy', situation: DeploymentSituation): Promise<ProofOutcome> {
    const { spec, lineageId, status, hasInfrastructure, hasBucket } = situation
    const hasDomain = status === 'ready' || hasInfrastructure || hasBucket
    if (operation === 'destroy' || hasDomain) return { kind: 'proven', proof: null }
    return this.#options.domainProof.prove({ spec, lineageId, idempotencyKey: undefined })
  }

  /** The only place that accepts an operation. Stores its input. */
  async #accept(
    operation: 'apply' | 'destroy',
    situation: DeploymentSituation,
    credentials: AccessKeyPair | null,
    proof: Proof | null,
    caller: Caller,
  ): Promise<StartOutcome | { readonly kind: 'changed' }> {
    const { repository, runner } = this.#options
    const name = operation === 'apply' ? await this.#takeName(situation, caller) : null
    if (name && name.kind !== 'reserved') return name
    const reservationTokenHash = name ? name.tokenHash : situation.reservationTokenHash
    const accepted = await repository.accept(
      { ...situation, reservationTokenHash },
      { operation, record: toRecord(situation.spec, credentials), proof, caller },
    )
    if (accepted.kind !== 'accepted') return accepted
    runner.submit(accepted.state, credentials)
    return { kind: 'started', id: situation.id, status: operation === 'apply' ? 'provisioning' : 'destroying' }
  }

  async #takeName(situation: DeploymentSituation, caller: Caller) {
    const { repository, reservations } = this.#options
    const { sovereignFQDN, name } = situation.spec
    const remains = await repository.findRemains(sovereignFQDN, situation.lineageId)
    if (remains) return { kind: 'fqdn-remains' as const, detail: toRemainsDetail(sovereignFQDN, remains) }
    return name
      ? reservations.retake(situation, caller)
      : { kind: 'reserved' as const, tokenHash: situation.reservationTokenHash }
  }

  async #plan(
    operation: 'apply' | 'destroy',
    situation: DeploymentSituation,
    credentials: AccessKeyPair | null,
    signal: AbortSignal,
  ): Promise<PlanOutcome> {
    const { provisioner, storage } = this.#options
    const request = {
      ...this.#stateRequest(situation),
      variables: toModuleVariables(situation.id, situation.spec, storage),
      secrets: toModuleSecrets(credentials),
      mayImportBucket: situation.hasCreatedBucket,
      destroy: operation === 'destroy',
    }
    const planned = await provisioner.plan(request, signal)
    if (planned.kind === 'planned') return { kind: 'planned', operation, text: planned.text, json: planned.json }
    return { kind: 'plan-failed', detail: planned.kind === 'failed' ? planned.reason : 'The plan was stopped.' }
  }

  #planObstacle(): Obstacle | null {
    if (this.#planning.pendingCount < MAX_QUEUED_PLANS) return null
    const detail = 'Too many plans are waiting; retry later.'
    return { kind: 'provisioning-unavailable', detail, retryAfterSeconds: PLAN_RETRY_S }
  }

  /** Null if another call was accepted in the meantime. */
  async #remove(
    verdict: 'cancelled' | 'deleted' | 'abandoned',
    situation: DeploymentSituation,
    caller: Caller,
  ): Promise<RemoveOutcome | null> {
    const { repository, reservations, provisioner, runner } = this.#options
    if (verdict === 'cancelled') {
      const deployment = await repository.cancel(situation.id, caller)
      if (deployment) runner.cancel(situation.id)
      return deployment && { kind: 'cancelling', deployment }
    }
    if (verdict === 'abandoned') {
      if (!(await repository.markAbandoned(situation, caller))) return null
    }
    const archived = verdict === 'abandoned' ? await provisioner.archive(this.#stateRequest(situation)) : null
    // The name first: after a crash between the two, the deployment can still be removed again.
    await reservations.release(situation, caller)
    return (await repository.delete(situation, caller, archived)) ? { kind: 'removed' } : null
  }

  #stateRequest({ id, generation, lineageId, spec, knownState }: DeploymentSituation): StateRequest {
    return { id, run: generation, stateKey: lineageId, bucket: spec.storage?.bucket ?? null, knownState }
  }
}

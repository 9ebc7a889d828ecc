import { planRequest, toFieldFaults } from '@pool/contract'
import pLimit from 'p-limit'
import { isJsonObject } from '../../lib/text.ts'
import { toFailed } from '../domain/provisioner-failure.ts'
import type { ValidSpec } from '../domain/spec.ts'
import type { PlanOutcome } from '../domain/types.ts'
import type { DeploymentSituation } from '../repository.ts'
import { toModuleSecrets, toModuleVariables } from '../run.ts'
import { type CallDependencies, type CallerWithToken, findAndDecide, parseInput, toStateRequest } from './call.ts'

/** A plan runs in the request, so this bounds the Terraform processes in addition to those of runs. */
const MAX_CONCURRENT_PLANS = 2
const MAX_QUEUED_PLANS = 10
const PLAN_RETRY_S = 30

const runPlan = async (
  { provisioner, storage }: CallDependencies,
  operation: 'apply' | 'destroy',
  situation: DeploymentSituation,
  { credentials, adoptBucket = false }: Pick<ValidSpec, 'credentials' | 'adoptBucket'>,
  signal: AbortSignal,
): Promise<PlanOutcome> => {
  const request = {
    ...toStateRequest(situation),
    variables: toModuleVariables(situation.id, situation.spec, storage),
    secrets: toModuleSecrets(credentials),
    mayImportBucket: situation.hasCreatedBucket || adoptBucket,
    destroy: operation === 'destroy',
  }
  const planned = await provisioner.plan(request, signal).catch(toFailed)
  if (planned.kind === 'planned') return { ...planned, operation }
  return { kind: 'plan-failed', detail: planned.kind === 'failed' ? planned.reason : 'The plan was stopped.' }
}

/** What an apply or a destroy would do. Its limits are those of one process. */
export const createPlanner = (deps: CallDependencies) => {
  const limit = pLimit(MAX_CONCURRENT_PLANS)
  return async (
    id: string,
    body: unknown,
    callerWithToken: CallerWithToken,
    signal: AbortSignal,
  ): Promise<PlanOutcome> => {
    const request = planRequest.pick({ operation: true }).safeParse(isJsonObject(body) ? body : {})
    const operation = request.data?.operation ?? 'apply'
    const call = operation === 'destroy' ? 'plan-destroy' : 'plan'
    const found = await findAndDecide<'planned'>(deps, id, call, callerWithToken)
    if (found.kind !== 'planned') return found as PlanOutcome
    const parsed = parseInput(deps, operation, body, found.situation)
    const operationFaults = request.error ? toFieldFaults(request.error) : []
    const faults = [...operationFaults, ...(parsed.kind === 'valid' ? [] : parsed.faults)]
    if (parsed.kind !== 'valid' || faults.length > 0) return { kind: 'invalid-deployment', faults }
    const { spec, credentials } = parsed
    if (limit.pendingCount >= MAX_QUEUED_PLANS) {
      const detail = 'Too many plans are waiting; retry later.'
      return { kind: 'provisioning-unavailable', detail, retryAfterSeconds: PLAN_RETRY_S }
    }
    const obstacle = await deps.runner.findObstacle(spec, credentials, callerWithToken.caller)
    if (obstacle) return obstacle
    return limit(() => runPlan(deps, operation, { ...found.situation, spec }, parsed, signal))
  }
}

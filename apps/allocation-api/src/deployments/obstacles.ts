import type { ObjectStorageKeys } from '@pool/contract'
import type { Caller } from '../allocation/domain/types.ts'
import type { ValidationOutcome } from '../credentials/service.ts'
import type { AccessKeyPair, DeploymentSpec, Obstacle } from './domain/types.ts'
import type { Provisioner } from './provisioner.ts'
import type { Runner } from './runner.ts'

/** Limited per caller, so that deployments cannot be used to try credentials faster than the validation routes. */
export type ValidateKeys = (keys: ObjectStorageKeys, address: string | null) => Promise<ValidationOutcome>

export type FindObstacle = (
  spec: DeploymentSpec,
  credentials: AccessKeyPair | null,
  caller: Caller,
) => Promise<Obstacle | null>

const QUEUE_FULL_RETRY_S = 30

/** Finds out why no run can start now: prerequisites of this process, its queue, or credentials that do not work. */
export const createFindObstacle =
  ({
    provisioner,
    runner,
    validateKeys,
  }: {
    readonly provisioner: Pick<Provisioner, 'preflight'>
    readonly runner: Pick<Runner, 'hasCapacity'>
    readonly validateKeys: ValidateKeys
  }): FindObstacle =>
  async (spec, credentials, caller) => {
    const missing = await provisioner.preflight()
    if (missing !== null) return { kind: 'provisioning-unavailable', detail: missing }
    if (!runner.hasCapacity()) {
      const detail = 'Deployment queue is full, or the server is shutting down.'
      return { kind: 'provisioning-unavailable', detail, retryAfterSeconds: QUEUE_FULL_RETRY_S }
    }
    if (!credentials || !spec.storage) return null
    const outcome = await validateKeys({ region: spec.storage.region, ...credentials }, caller.address)
    if (outcome.kind === 'too-many-attempts') {
      return { ...outcome, detail: 'Too many credential checks from your address.' }
    }
    const { kind, message } = outcome
    if (kind === 'unavailable') return { kind: 'object-storage-unavailable', detail: message }
    if (kind === 'accepted') return null
    return { kind: 'invalid-deployment', faults: [{ field: 'objectStorageAccessKey', detail: message }] }
  }

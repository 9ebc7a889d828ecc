import type { ObjectStorageKeys } from '@pool/contract'
import type { Caller } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import type { Validate } from '../credentials/validate.ts'
import type { DuplicateRequest, Idempotency } from '../idempotency/idempotency.ts'
import type { CreateDecision, CreateOutcome } from './domain/create-outcome.ts'
import { recordOf } from './domain/record.ts'
import type { Ordered } from './domain/spec.ts'
import type { Job } from './domain/types.ts'
import type { Provisioner } from './provisioner.ts'
import type { CreateSaid, DeploymentStore } from './repository.ts'
import type { Names } from './reservation.ts'
import type { Runs } from './runner.ts'

export interface CreateDependencies {
  readonly orderOf: (body: unknown) => Ordered
  readonly infrastructure: Pick<Provisioner, 'lacks'>
  /** Within the caller's budget: whoever may not try keys as fast as they like may not do so here. */
  readonly validateKeys: Validate<ObjectStorageKeys>
  readonly allocations: Pick<AllocationService, 'reserve'>
  readonly names: Pick<Names, 'free'>
  readonly store: Pick<DeploymentStore, 'create' | 'hasProof'>
  readonly runs: Pick<Runs, 'hasRoom' | 'accept'>
  readonly idempotency: Pick<Idempotency, 'replayThenExecute'>
  /** A UUID that was never given out. */
  readonly newId: () => string
}

const decisionOf = (said: CreateSaid): CreateDecision =>
  said.outcome === 'created' ? { kind: 'created', id: said.id } : { kind: said.outcome }

/**
 * Everything is judged before anything is done: form, then whether this process can work at all, then the keys at their
 * provider. Then the name is reserved, and only what has its name becomes a deployment.
 */
export const create =
  ({
    orderOf,
    infrastructure,
    validateKeys,
    allocations,
    names,
    store,
    runs,
    idempotency,
    newId,
  }: CreateDependencies) =>
  async (body: unknown, caller: Caller, key: string | undefined): Promise<CreateOutcome> => {
    const asked = orderOf(body)
    if (asked.kind !== 'order') return asked
    const { order, keys } = asked

    const refuse = async (): Promise<CreateDecision | null> => {
      const missing = await infrastructure.lacks()
      if (missing !== null) return { kind: 'provisioning-unavailable', detail: missing }
      if (!runs.hasRoom()) {
        const detail = 'Too many deployments wait for their turn, or this process is stopping.'
        return { kind: 'provisioning-unavailable', detail, retryAfterSeconds: 30 }
      }
      if (!keys || !order.storage) return null
      const outcome = await validateKeys({ region: order.storage.region, ...keys }, caller.address)
      if (outcome.kind === 'too-many-attempts') {
        return { ...outcome, detail: 'Credentials were checked too often from your address.' }
      }
      const { kind, message } = outcome
      if (kind === 'unavailable') return { kind: 'object-storage-unavailable', detail: message }
      if (kind === 'accepted') return null
      return { kind: 'invalid-deployment', faults: [{ field: 'objectStorageAccessKey', detail: message }] }
    }

    /** The proof of the reservation; null: none is needed. */
    const reserveName = async (): Promise<{ token: string | null } | CreateDecision> => {
      if (!order.name) return { token: null }
      // The same reservation for the same key, should this request come a second time before it was answered.
      const reservationKey = key === undefined ? undefined : `deployment ${key}`
      const createdBy = `deployment of ${order.orgName}`
      const outcome = await allocations.reserve({ ...order.name, createdBy }, caller, reservationKey)
      if (outcome.kind === 'granted') return { token: outcome.reservationToken }
      // Other refusals are faults of form, which have been judged before.
      return { kind: 'subdomain-conflict' }
    }

    return idempotency.replayThenExecute<CreateDecision>(key, ['deployment', order, keys], {
      execute: async (claim): Promise<CreateDecision | DuplicateRequest> => {
        const refusal = await refuse()
        if (refusal) return refusal
        const reserved = await reserveName()
        if ('kind' in reserved) return reserved
        const reservationToken = reserved.token
        const id = newId()
        const said = await store.create({ id, order, record: recordOf(order, keys), reservationToken }, claim)
        if ('kind' in said) {
          // A twin with the same key was faster. What was reserved is theirs too, unless they have ended meanwhile.
          const isOurs = reservationToken !== null && !(await store.hasProof(reservationToken))
          if (isOurs) await names.free({ id, order, reservationToken })
          return said
        }
        const job: Job = {
          id,
          generation: 1,
          order,
          reservationToken,
          result: null,
          isCancelled: false,
          failure: null,
          lineCount: 0,
        }
        if (said.outcome === 'created') runs.accept(job, keys)
        else await names.free(job)
        return decisionOf(said)
      },
      replay: said => decisionOf(said as CreateSaid),
    })
  }

import type { Caller, RenewCommand } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import type { Job } from './domain/types.ts'

export type ReservationOperations = Pick<AllocationService, 'commit' | 'release' | 'renew' | 'isActiveWithToken'>

export type Taken =
  | { readonly kind: 'taken'; readonly isPublished: boolean }
  | { readonly kind: 'lost'; readonly reason: string }

/** In the history, what a run does to its name is told by the id of the deployment. */
const callerOf = (id: string): Caller => ({ actor: 'deployment', address: null, requestId: id })

type Holder = Pick<Job, 'id' | 'order' | 'reservationToken'>

const heldBy = ({ order, reservationToken }: Holder): RenewCommand | null =>
  order.name && reservationToken !== null ? { ...order.name, reservationToken } : null

/** The name of a deployment, from its reservation to its end. Each step can be done again after a crash. */
export const createNames = (allocations: ReservationOperations) => ({
  /** Makes the name active at the address. `isPublished` false: its records follow by themselves. */
  async take(job: Holder, loadBalancerIP: string): Promise<Taken> {
    const held = heldBy(job)
    if (!held) return { kind: 'taken', isPublished: true }
    const { sovereignFQDN } = job.order
    const outcome = await allocations.commit({ ...held, sovereignFQDN, loadBalancerIP }, callerOf(job.id), undefined)
    if (outcome.kind === 'committed') {
      return { kind: 'taken', isPublished: outcome.allocation.dns.status === 'published' }
    }
    // By this very deployment, before a crash.
    if (outcome.kind === 'already-active' && (await allocations.isActiveWithToken(held, held.reservationToken))) {
      return { kind: 'taken', isPublished: false }
    }
    return {
      kind: 'lost',
      reason: `The infrastructure is up, but the name could not be committed (${outcome.kind}): somebody else released it, or its time ran out.`,
    }
  },

  /** False: the reservation has ended, whoever ended it. */
  async keep(job: Holder): Promise<boolean> {
    const held = heldBy(job)
    if (!held) return true
    const { kind } = await allocations.renew(held, callerOf(job.id))
    return kind === 'renewed' || kind === 'already-active'
  },

  /** Frees the name if it still is this deployment's. */
  async free(job: Holder): Promise<void> {
    const held = heldBy(job)
    if (held) await allocations.release(held, callerOf(job.id), undefined)
  },
})

export type Names = ReturnType<typeof createNames>

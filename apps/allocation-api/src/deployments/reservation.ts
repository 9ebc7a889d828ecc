import type { Caller, RenewCommand } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import type { RunState } from './domain/types.ts'

export type ReservationOperations = Pick<AllocationService, 'commit' | 'release' | 'renew' | 'isActiveWithToken'>

export type NameCommit =
  /** If `isPublished` is false, the reconciler publishes the records later. */
  { readonly kind: 'committed'; readonly isPublished: boolean } | { readonly kind: 'lost'; readonly reason: string }

type Holder = Pick<RunState, 'id' | 'spec' | 'reservationTokenHash'>

/** The history shows the id of the deployment as the id of the request. */
const toCaller = (id: string): Caller => ({ actor: 'deployment', address: null, requestId: id })

const toReservation = ({ spec, reservationTokenHash }: Holder): RenewCommand | null =>
  spec.name && reservationTokenHash !== null ? { ...spec.name, tokenHash: reservationTokenHash } : null

/**
 * The reservation of a deployment's name. Each call can be repeated after a crash. Without a name, each does nothing.
 */
export class ReservationClient {
  readonly #allocations: ReservationOperations

  constructor(allocations: ReservationOperations) {
    this.#allocations = allocations
  }

  /** Points the name at the load balancer. */
  async commit(holder: Holder, loadBalancerIP: string): Promise<NameCommit> {
    const reservation = toReservation(holder)
    if (!reservation) return { kind: 'committed', isPublished: true }
    const { sovereignFQDN } = holder.spec
    const command = { ...reservation, sovereignFQDN, loadBalancerIP }
    const outcome = await this.#allocations.commit(command, toCaller(holder.id), undefined)
    if (outcome.kind === 'committed') {
      return { kind: 'committed', isPublished: outcome.allocation.dns.status === 'published' }
    }
    const isOwnCommit =
      outcome.kind === 'already-active' &&
      (await this.#allocations.isActiveWithToken(reservation, reservation.tokenHash))
    // An earlier run of this deployment committed the name and crashed.
    if (isOwnCommit) return { kind: 'committed', isPublished: false }
    return {
      kind: 'lost',
      reason: `The infrastructure is up, but the name could not be committed (${outcome.kind}): it was released by another client, or it expired.`,
    }
  }

  /** False if the reservation no longer exists. */
  async renew(holder: Holder): Promise<boolean> {
    const reservation = toReservation(holder)
    if (!reservation) return true
    const { kind } = await this.#allocations.renew(reservation, toCaller(holder.id))
    return kind === 'renewed' || kind === 'already-active'
  }

  /** Releases the name if it still belongs to this deployment. */
  async release(holder: Holder): Promise<void> {
    const reservation = toReservation(holder)
    if (reservation) await this.#allocations.release(reservation, toCaller(holder.id), undefined)
  }
}

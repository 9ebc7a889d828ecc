import type { Caller, RenewCommand } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import { hashToken } from '../lib/token.ts'
import type { DeploymentSpec } from './domain/types.ts'

export type ReservationOperations = Pick<
  AllocationService,
  'reserve' | 'commit' | 'release' | 'renew' | 'isActiveWithToken'
>

export type NameCommit =
  /** If `isPublished` is false, the reconciler publishes the records later. */
  { readonly kind: 'committed'; readonly isPublished: boolean } | { readonly kind: 'lost'; readonly reason: string }

/** The deployment that a name belongs to. */
export interface Holder {
  readonly id: string
  readonly spec: DeploymentSpec
  readonly lineageId: string
  readonly reservationTokenHash: Buffer | null
}

/** The history shows the id of the deployment as the id of the request. */
const toCaller = (id: string): Caller => ({ actor: 'deployment', address: null, requestId: id })

const toReservation = ({ spec, reservationTokenHash: tokenHash }: Holder): RenewCommand | null =>
  spec.name && tokenHash ? { ...spec.name, tokenHash } : null

export type NameReservation =
  /** The hash is null without a name. */
  { readonly kind: 'reserved'; readonly tokenHash: Buffer | null } | { readonly kind: 'subdomain-conflict' }

/**
 * The reservation of a deployment's name. Each call can be repeated after a crash. Without a name, each does nothing.
 */
export class ReservationClient {
  readonly #allocations: ReservationOperations

  constructor(allocations: ReservationOperations) {
    this.#allocations = allocations
  }

  /** Reserves the name of a new deployment. A repeated key returns the same reservation. */
  async reserve(spec: DeploymentSpec, caller: Caller, key: string | undefined): Promise<NameReservation> {
    if (!spec.name) return { kind: 'reserved', tokenHash: null }
    const command = { ...spec.name, createdBy: `deployment of ${spec.orgName}` }
    const outcome = await this.#allocations.reserve(command, caller, key)
    // All other rejections concern the form of the name, which has been validated.
    return outcome.kind === 'granted'
      ? { kind: 'reserved', tokenHash: hashToken(outcome.reservationToken) }
      : { kind: 'subdomain-conflict' }
  }

  /** Takes the name again if it was freed. */
  async retake(holder: Holder, caller: Caller): Promise<NameReservation> {
    const { reservationTokenHash: tokenHash } = holder
    if (await this.renew(holder)) return { kind: 'reserved', tokenHash }
    return this.reserve(holder.spec, caller, undefined)
  }

  /**
   * Keeps the name with the lineage from now on, also after its release or expiry. False if it belongs to another
   * client.
   */
  async hold(_holder: Holder): Promise<boolean> {
    return true
  }

  /** The lineage has no infrastructure any more: from now on its name can become free. */
  async letGo(_holder: Holder): Promise<void> {}

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

  /** False if the name no longer belongs to this deployment. */
  async renew(holder: Holder): Promise<boolean> {
    const reservation = toReservation(holder)
    if (!reservation) return true
    const { kind } = await this.#allocations.renew(reservation, toCaller(holder.id))
    if (kind === 'already-active') return this.#allocations.isActiveWithToken(reservation, reservation.tokenHash)
    return kind === 'renewed'
  }

  /** Releases the name if it still belongs to this deployment. */
  async release(holder: Holder): Promise<void> {
    const reservation = toReservation(holder)
    if (reservation) await this.#allocations.release(reservation, toCaller(holder.id), undefined)
  }
}

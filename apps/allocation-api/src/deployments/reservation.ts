import { hash } from 'node:crypto'
import type { RenewCommand } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import { hashToken } from '../lib/token.ts'
import type { Caller } from '../naming/naming.ts'
import type { DeploymentSpec } from './domain/types.ts'

export type ReservationOperations = Pick<
  AllocationService,
  'reserve' | 'retake' | 'commit' | 'update' | 'release' | 'renew' | 'isActiveWithToken'
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

const toCreatedBy = ({ orgName }: DeploymentSpec): string => `deployment of ${orgName}`

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
    const command = { ...spec.name, createdBy: toCreatedBy(spec) }
    const outcome = await this.#allocations.reserve(command, caller, key)
    // All other rejections concern the form of the name, which has been validated.
    return outcome.kind === 'granted'
      ? { kind: 'reserved', tokenHash: hashToken(outcome.reservationToken) }
      : { kind: 'subdomain-conflict' }
  }

  /**
   * Takes the name again if it was freed. The hash of the new token derives from that of the former one and from the
   * generation, so a repetition takes the same reservation, and no text is a token with this hash.
   */
  async retake(holder: Holder & { readonly generation: number }, caller: Caller): Promise<NameReservation> {
    const reservation = toReservation(holder)
    if (!reservation) return { kind: 'reserved', tokenHash: null }
    const { tokenHash: formerTokenHash, ...name } = reservation
    const tokenHash = hash('sha256', Buffer.concat([formerTokenHash, Buffer.from(`${holder.generation}`)]), 'buffer')
    const { lineageId, spec } = holder
    const command = { ...name, tokenHash, formerTokenHash, lineageId, createdBy: toCreatedBy(spec) }
    const { kind } = await this.#allocations.retake(command, caller)
    if (kind === 'granted') return { kind: 'reserved', tokenHash }
    return kind === 'held' ? { kind: 'reserved', tokenHash: formerTokenHash } : { kind: 'subdomain-conflict' }
  }

  /** Points the name at the load balancer. The records of an active name change in one write. */
  async commit(holder: Holder, loadBalancerIP: string): Promise<NameCommit> {
    const reservation = toReservation(holder)
    if (!reservation) return { kind: 'committed', isPublished: true }
    const { sovereignFQDN } = holder.spec
    const command = { ...reservation, sovereignFQDN, loadBalancerIP }
    const outcome = await this.#allocations.commit(command, toCaller(holder.id), undefined)
    if (outcome.kind === 'committed') {
      return { kind: 'committed', isPublished: outcome.allocation.dns.status === 'published' }
    }
    // Committed by an earlier operation, or by an earlier run that crashed.
    const update = { ...reservation, loadBalancerIP }
    const moved =
      outcome.kind === 'already-active' ? await this.#allocations.update(update, toCaller(holder.id), undefined) : null
    if (moved?.kind === 'updated')
      return { kind: 'committed', isPublished: moved.allocation.dns.status === 'published' }
    const cause = 'detail' in outcome ? outcome.detail : 'It was released by another client, or it expired.'
    return {
      kind: 'lost',
      reason: `The infrastructure is up, but the name could not be committed (${outcome.kind}). ${cause}`,
    }
  }

  /** False if the name no longer belongs to this deployment. */
  async renew(holder: Holder): Promise<boolean> {
    const reservation = toReservation(holder)
    if (!reservation) return true
    const { kind } = await this.#allocations.renew(reservation)
    if (kind === 'already-active') return this.#allocations.isActiveWithToken(reservation, reservation.tokenHash)
    return kind === 'renewed'
  }

  /** Releases the name if it still belongs to this deployment. `requester`: who asked for it; by default, its run. */
  async release(holder: Holder, requester?: Caller): Promise<void> {
    const reservation = toReservation(holder)
    const caller = { ...(requester ?? toCaller(holder.id)), actor: 'deployment' as const }
    if (reservation) await this.#allocations.release(reservation, caller, undefined)
  }
}

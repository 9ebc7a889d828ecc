import { type Idempotency, isDuplicate } from '../idempotency/idempotency.ts'
import { createToken, hashToken } from '../lib/token.ts'
import { type Caller, type Pools, validateName, validatePool } from '../naming/naming.ts'
import type {
  GrantedWithToken,
  RenewCommand,
  RenewOutcome,
  ReserveCommand,
  ReserveDecision,
  ReserveOutcome,
  RetakeCommand,
  RetakeOutcome,
} from './domain/types.ts'
import type { AllocationReader } from './reader.ts'
import type { AllocationRepository } from './repository.ts'

export interface ReservationOptions {
  readonly repository: Pick<AllocationRepository, 'reserve' | 'renew' | 'findReservation'>
  readonly reader: Pick<AllocationReader, 'isLiveFor'>
  readonly idempotency: Idempotency
  readonly pools: () => Pools
}

/** The life of a name until it is committed. */
export const createReservations = ({ repository, reader, idempotency, pools }: ReservationOptions) => ({
  /** Reserves a free name, or takes a released one back with its former token. A repeated key returns the same reservation while it lives, with its current expiry. */
  async reserve(command: ReserveCommand, caller: Caller, key: string | undefined): Promise<ReserveOutcome> {
    const { poolDomain, subdomain, createdBy, formerTokenHash } = command
    const rejection = validateName(poolDomain, subdomain, pools())
    if (rejection) return rejection
    const request = { poolDomain, subdomain, createdBy, former: { tokenHash: formerTokenHash }, caller }
    type Result = GrantedWithToken | Exclude<ReserveDecision, { kind: 'granted' }>
    const content = ['reserve', poolDomain, subdomain, createdBy]
    if (formerTokenHash) content.push(formerTokenHash.toString('hex'))
    return idempotency.executeThenReplay<Result>(key, content, {
      execute: async claim => {
        const { token: reservationToken, tokenHash } = createToken(claim?.token())
        const decision = await repository.reserve({ ...request, tokenHash, claim })
        return decision.kind === 'granted' ? { ...decision, reservationToken } : decision
      },
      success: 'granted',
      replay: async (_, token) => {
        if (token === null) throw new Error('the stored result of a reservation has no token')
        const decision = await repository.findReservation(command, hashToken(token))
        return decision && { ...decision, reservationToken: token }
      },
    })
  },

  /** Extends a reservation. It takes no Idempotency-Key, because repeating it is harmless. */
  async renew(command: RenewCommand): Promise<RenewOutcome> {
    return validatePool(command.poolDomain, pools()) ?? repository.renew(command)
  },

  /**
   * Reserves a free name, or one that was released but is still held by the lineage or in the cool-off of
   * `formerTokenHash`. `tokenHash` is the hash of the new token. A repetition with the same hash returns the same
   * reservation.
   */
  async retake(
    { tokenHash, formerTokenHash, lineageId, createdBy, ...name }: RetakeCommand,
    caller: Caller,
  ): Promise<RetakeOutcome> {
    const rejection = validatePool(name.poolDomain, pools())
    if (rejection) return rejection
    const former = { tokenHash: formerTokenHash, lineageId }
    const decision = await repository.reserve({ ...name, createdBy, tokenHash, former, caller })
    if (isDuplicate(decision)) throw new Error('a reservation without an Idempotency-Key returned duplicate-request')
    if (decision.kind !== 'conflict') return decision
    const granted = await repository.findReservation(name, tokenHash)
    if (granted) return granted
    return (await reader.isLiveFor(name, formerTokenHash, lineageId)) ? { kind: 'held' } : decision
  },
})

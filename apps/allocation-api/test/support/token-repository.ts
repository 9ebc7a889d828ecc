import type { Sql } from '@pool/runtime/database/client'
import type {
  CommitCommand,
  FormerHolder,
  Granted,
  ReleaseCommand,
  RenewCommand,
  ReserveCommand,
  ReserveDecision,
  ReserveRequest,
  UpdateCommand,
} from '../../src/allocation/domain/types.ts'
import {
  type AllocationRepositoryOptions,
  type CommitRequest,
  createAllocationRepository,
} from '../../src/allocation/repository.ts'
import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import { type IdempotencyClaim, isDuplicate } from '../../src/idempotency/idempotency.ts'
import { createToken, hashToken } from '../../src/lib/token.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { createTestWriter } from './database.ts'

export type TokenRepository = ReturnType<typeof createTokenRepository>
export type GrantedToken = Granted & { readonly reservationToken: string }
export type TokenDecision = GrantedToken | Exclude<ReserveDecision, Granted>

type WithToken<Command> = Omit<Command, 'tokenHash'> & { readonly reservationToken: string }
type OptionalToken<Command> = Omit<Command, 'tokenHash'> & { readonly reservationToken?: string | undefined }

export interface CommitWithToken extends Omit<CommitRequest, 'command'> {
  readonly command: WithToken<CommitCommand>
}

const toHashed = <Command extends { readonly reservationToken: string }>({ reservationToken, ...rest }: Command) => ({
  ...rest,
  tokenHash: hashToken(reservationToken),
})

/** The repository for tests that act as clients: they hold tokens, and it holds their hashes. */
export const createTokenRepository = (
  sql: Sql,
  options: AllocationRepositoryOptions & { readonly timeoutMs: number },
) => {
  const repository = createAllocationRepository(createTestWriter(sql, options), options)

  const reserveMany = async (requests: readonly Omit<ReserveRequest, 'tokenHash'>[]): Promise<TokenDecision[]> => {
    const tokens = requests.map(createToken)
    const hashed = requests.map((request, i) => ({ ...request, tokenHash: tokens[i]?.tokenHash ?? Buffer.alloc(32) }))
    const decisions = await repository.reserveMany(hashed, performance.now() + options.timeoutMs)
    return decisions.map((decision, i) =>
      decision.kind === 'granted' ? { ...decision, reservationToken: tokens[i]?.token ?? '' } : decision,
    )
  }

  return {
    ...repository,
    reserveHashed: repository.reserve,
    reserveMany,
    async reserve(command: ReserveCommand, caller: Caller, former: FormerHolder = {}): Promise<TokenDecision> {
      const { token, tokenHash } = createToken()
      const decision = await repository.reserve({ command, tokenHash, caller }, null, null, former)
      if (isDuplicate(decision)) throw new Error('a reservation without a key returned duplicate-request')
      return decision.kind === 'granted' ? { ...decision, reservationToken: token } : decision
    },
    update: (
      { reservationToken, ...command }: OptionalToken<UpdateCommand>,
      records: readonly RecordSet[],
      caller: Caller,
    ) => {
      const tokenHash = reservationToken === undefined ? undefined : hashToken(reservationToken)
      return repository.update({ ...command, tokenHash }, records, caller)
    },
    hold: (command: WithToken<RenewCommand>, lineageId: string) => repository.hold(toHashed(command), lineageId),
    commit: (
      command: WithToken<CommitCommand>,
      records: readonly RecordSet[],
      caller: Caller,
      claim: IdempotencyClaim | null = null,
    ) => repository.commit(toHashed(command), records, caller, claim),
    commitMany: (requests: readonly CommitWithToken[]) =>
      repository.commitMany(
        requests.map(({ command, ...rest }) => ({ command: toHashed(command), ...rest })),
        performance.now() + options.timeoutMs,
      ),
    renew: (command: WithToken<RenewCommand>) => repository.renew(toHashed(command)),
    release: (
      { reservationToken, ...command }: OptionalToken<ReleaseCommand>,
      caller: Caller,
      claim: IdempotencyClaim | null = null,
    ) => {
      const tokenHash = reservationToken === undefined ? undefined : hashToken(reservationToken)
      return repository.release({ ...command, tokenHash }, caller, claim)
    },
  }
}

/** The value of `encode(token_hash, 'hex')` in the row of this token. */
export const tokenDigest = (token: string): string => hashToken(token).toString('hex')

import { TARGET_FIELDS, type Target } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { createServerClock } from '@pool/runtime/database/time'
import type {
  CommitCommand,
  Granted,
  ReleaseCommand,
  RenewCommand,
  ReserveDecision,
  UpdateCommand,
} from '../../src/allocation/domain/types.ts'
import { type AllocationRepositoryOptions, createAllocationRepository } from '../../src/allocation/repository.ts'
import { type NameRequest, type NameStatement, toSharedWrite } from '../../src/allocation/sql.ts'
import { commitStatement } from '../../src/allocation/statements/commit.ts'
import { type FormerHolder, reserveStatement } from '../../src/allocation/statements/reserve.ts'
import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import { type IdempotencyClaim, isDuplicate } from '../../src/idempotency/idempotency.ts'
import { createToken, hashToken } from '../../src/lib/token.ts'
import type { Caller, PoolName } from '../../src/naming/naming.ts'
import { createTestWriter } from './database.ts'

export type TokenRepository = ReturnType<typeof createTokenRepository>
export type GrantedToken = Granted & { readonly reservationToken: string }
export type TokenDecision = GrantedToken | Exclude<ReserveDecision, Granted>

type WithToken<Command> = Omit<Command, 'tokenHash'> & { readonly reservationToken: string }
type OptionalToken<Command> = Omit<Command, 'tokenHash'> & { readonly reservationToken?: string | undefined }

/** Most tests name the address alone. */
type WithTarget<Command> = Omit<Command, 'target' | 'change'> & {
  readonly loadBalancerIP?: string
  readonly target?: Target
}

const toTargeted = <Command extends { readonly loadBalancerIP?: string; readonly target?: Target }>({
  loadBalancerIP,
  target = loadBalancerIP === undefined ? undefined : { loadBalancerIP },
  ...rest
}: Command) => ({ ...rest, target })

const withCommitTarget = <Command extends { readonly loadBalancerIP?: string; readonly target?: Target }>(
  command: Command,
) => {
  const { target = {}, ...rest } = toTargeted(command)
  return { ...rest, target }
}

export interface CommitWithToken {
  readonly command: WithTarget<WithToken<CommitCommand>>
  readonly records: readonly RecordSet[]
  readonly caller: Caller
}

export interface ReserveWithCaller {
  readonly command: PoolName & { readonly createdBy: string }
  readonly caller: Caller
}

const toHashed = <Command extends { readonly reservationToken?: string | undefined }>({
  reservationToken,
  ...rest
}: Command) => ({
  ...rest,
  tokenHash: reservationToken === undefined ? undefined : hashToken(reservationToken),
})

const withToken = <Command extends { readonly reservationToken: string }>({ reservationToken, ...rest }: Command) => ({
  ...rest,
  tokenHash: hashToken(reservationToken),
})

/** The repository for tests that act as clients: they hold tokens, and it holds their hashes. */
export const createTokenRepository = (
  sql: Sql,
  options: AllocationRepositoryOptions & { readonly timeoutMs: number },
) => {
  const repository = createAllocationRepository(createTestWriter(sql, options), options)

  const inOneStatement = async <Request extends NameRequest, Row extends object, Decision>(
    statement: NameStatement<Request, Row, Decision>,
    requests: readonly Request[],
  ): Promise<readonly Decision[]> => {
    const clock = createServerClock(sql, options)
    const deadline = await clock.toServerDeadline(performance.now() + options.timeoutMs)
    const limits = { lockWait: `${options.timeoutMs}ms`, ...deadline }
    return (await toSharedWrite(statement).execute(requests, sql, limits)) as readonly Decision[]
  }
  const reserve = async (
    { poolDomain, subdomain, createdBy }: ReserveWithCaller['command'],
    caller: Caller,
    former: FormerHolder = {},
  ): Promise<TokenDecision> => {
    const { token, tokenHash } = createToken()
    const decision = await repository.reserve({ poolDomain, subdomain, createdBy, tokenHash, caller, former })
    if (isDuplicate(decision)) throw new Error('a reservation without a key returned duplicate-request')
    return decision.kind === 'granted' ? { ...decision, reservationToken: token } : decision
  }
  const commit = (
    command: WithTarget<WithToken<CommitCommand>>,
    records: readonly RecordSet[],
    caller: Caller,
    claim: IdempotencyClaim | null = null,
  ) => repository.commit({ ...withToken(withCommitTarget(command)), records, caller, claim })

  return {
    ...repository,
    reserveHashed: repository.reserve,
    reserve,
    /** In one statement. The names differ. */
    async reserveMany(requests: readonly ReserveWithCaller[]): Promise<TokenDecision[]> {
      const tokens = requests.map(() => createToken())
      const decisions = await inOneStatement(
        reserveStatement(options.reservation),
        requests.map(({ command, caller }, i) => ({
          ...command,
          caller,
          tokenHash: tokens[i]?.tokenHash ?? Buffer.of(),
        })),
      )
      return decisions.map((decision, i) =>
        decision.kind === 'granted' ? { ...decision, reservationToken: tokens[i]?.token ?? '' } : decision,
      )
    },
    commit,
    /** As `reserveMany`. */
    commitMany: (requests: readonly CommitWithToken[]) =>
      inOneStatement(
        commitStatement,
        requests.map(({ command, ...rest }) => ({ ...withToken(withCommitTarget(command)), ...rest })),
      ),
    /** Whatever the target was before. */
    update(command: WithTarget<OptionalToken<UpdateCommand>>, records: readonly RecordSet[], caller: Caller) {
      const { target, ...rest } = toTargeted(command)
      const plan = target ? { target, replaced: TARGET_FIELDS, kept: {} } : null
      return repository.update({ ...toHashed(rest), plan, records, caller })
    },
    hold: (command: WithToken<RenewCommand>, lineageId: string) =>
      repository.hold({ ...withToken(command), lineageId }),
    letGo: (name: PoolName, lineageId: string) => repository.letGo({ ...name, lineageId }),
    liftCoolOff: (name: PoolName, caller: Caller) => repository.liftCoolOff({ ...name, caller }),
    renew: (command: WithToken<RenewCommand>) => repository.renew(withToken(command)),
    release: (command: OptionalToken<ReleaseCommand>, caller: Caller, claim: IdempotencyClaim | null = null) =>
      repository.release({ ...toHashed(command), caller, claim }),
  }
}

/** The value of `encode(token_hash, 'hex')` in the row of this token. */
export const tokenDigest = (token: string): string => hashToken(token).toString('hex')

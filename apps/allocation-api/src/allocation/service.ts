import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Allocation,
  type CheckResult,
  type DnsState,
  firstViolation,
  invalidAddressDetail,
  isLoadBalancerAddress,
  type NameAction,
  subdomain as subdomainSchema,
} from '@pool/contract'
import { createBatcher } from '@pool/runtime/database/batcher'
import { createRecords, type RecordTemplate } from '../dns/domain/rrset.ts'
import { type Idempotency, isDuplicate } from '../idempotency/idempotency.ts'
import { throttledCache } from '../lib/cached-query.ts'
import { createPageQueue, paginate } from '../lib/paginate.ts'
import { createToken, hashToken } from '../lib/token.ts'
import type { Caller } from '../naming/naming.ts'
import { type PoolName, type Pools, toBucketName, toFqdn, validateName, validatePool } from '../naming/naming.ts'
import type { WaitUntilApplied } from '../reconciler/reconciler.ts'
import type {
  ActionObstacle,
  AllocationCount,
  CommitCommand,
  CommitDecision,
  CommitOutcome,
  CoolOffOutcome,
  EntryWithId,
  GetOutcome,
  GrantedWithToken,
  HistoryQuery,
  InvalidField,
  ListOutcome,
  ListQuery,
  Rejection,
  ReleaseCommand,
  ReleaseDecision,
  ReleaseOutcome,
  RenewCommand,
  RenewOutcome,
  ReserveCommand,
  ReserveDecision,
  ReserveOutcome,
  RetakeCommand,
  RetakeOutcome,
  UpdateCommand,
  UpdateDecision,
  UpdateOutcome,
} from './domain/types.ts'
import { sweepExpired } from './expired-sweeper.ts'
import type { AllocationReader } from './reader.ts'
import type { AllocationRepository } from './repository.ts'
import { type CommitRow, toCommitDecision } from './statements/commit.ts'
import { type ReleaseRow, toReleaseDecision } from './statements/release.ts'
import { toUpdateDecision, type UpdateRow } from './statements/update.ts'

export interface AllocationOptions {
  readonly repository: AllocationRepository
  readonly reader: AllocationReader
  /** Counts every row, so it needs its own connection: a statement queued behind it on the same one would wait. */
  readonly countByState: AllocationReader['countByState']
  readonly idempotency: Idempotency
  /** Waits, for a bounded time, until the provider has the records of a version. */
  readonly waitUntilApplied: WaitUntilApplied
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
  /** Start of every bucket name. */
  readonly bucketPrefix: string
  /** Whether a client of the in-cluster listener can release only its own names. */
  readonly releaseNeedsToken?: boolean
  readonly statementTimeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly onSwept: (count: number) => void
}

const NO_COOL_OFF = 'The name is not in a cool-off.'

const toHex = (hash: Buffer): string => hash.toString('hex')

/** How long a scrape of the metrics waits for a new count before it gets the previous one. */
const COUNT_WAIT_MS = 2_000
/**
 * Of the checks. Two statements in flight: one at the database while the next one is prepared. A higher limit makes the
 * batches smaller and their total cost higher.
 */
const CHECK_BATCHING = { maxInFlight: 2, maxBatchSize: 100, slowMs: 100 }

export type AllocationService = ReturnType<typeof createAllocationService>

/** The life of a name: check, reserve, renew, commit, release, and the queries. */
export const createAllocationService = (options: AllocationOptions) => {
  const { repository, reader, idempotency, waitUntilApplied, pools } = options
  const findStateInBatch = createBatcher({
    ...CHECK_BATCHING,
    timeoutMs: options.statementTimeoutMs,
    execute: reader.findStates,
  })
  const count = throttledCache(options.countByState, {
    now: options.now,
    wait: () => sleep(COUNT_WAIT_MS, undefined, { ref: false }),
  })

  const fetchPage = createPageQueue({ now: options.now, sleep: ms => sleep(ms, undefined, { ref: false }) })

  const validateFields = ({
    poolDomain,
    subdomain,
    loadBalancerIP,
    sovereignFQDN,
  }: Pick<UpdateCommand, keyof PoolName | 'loadBalancerIP' | 'sovereignFQDN'>): InvalidField | null => {
    if (loadBalancerIP !== undefined && !isLoadBalancerAddress(loadBalancerIP, options.acceptsLoopback)) {
      return { kind: 'invalid-lb-ip', detail: invalidAddressDetail }
    }
    const fqdn = toFqdn(poolDomain, subdomain)
    return sovereignFQDN === undefined || sovereignFQDN === fqdn
      ? null
      : { kind: 'invalid-fqdn', detail: `sovereignFQDN must be ${fqdn}, the subdomain and the pool.` }
  }

  const toRecords = ({ poolDomain, subdomain }: PoolName, address: string) =>
    createRecords(toFqdn(poolDomain, subdomain), address, options.recordTemplate)

  /** The rejection of a repeated request by a client that no longer has the name; null if it still has it. */
  const rejectFormerHolder = async (
    name: PoolName,
    tokenHash: Buffer,
  ): Promise<Rejection<'not-found' | 'already-active' | 'conflict'> | null> => {
    const holder = await reader.findHolder(name, tokenHash)
    if (holder === 'own') return null
    if (holder === null) return { kind: 'not-found' }
    return { kind: holder === 'active' ? 'already-active' : 'conflict' }
  }

  const toReleaseRequest = (command: ReleaseCommand, caller: Caller) => ({
    ...command,
    caller,
    needsProof: options.releaseNeedsToken === true && caller.actor === 'in-cluster',
    isDraining: pools().draining.includes(command.poolDomain),
  })

  const findDns = async (name: PoolName): Promise<DnsState> => {
    const allocation = await reader.find(name)
    return allocation?.state === 'active' ? allocation.dns : { status: 'pending' }
  }

  return {
    /** Whether a tenant could reserve the name now. The contract defines which reason is reported first. */
    async check(poolDomain: string, sub: string | undefined): Promise<CheckResult> {
      const parsed = subdomainSchema.safeParse(sub)
      if (!parsed.success)
        return { available: false, reason: 'invalid-format', detail: firstViolation(parsed.error).detail }
      const subdomain = parsed.data
      const fqdn = toFqdn(poolDomain, subdomain)
      const rejection = validateName(poolDomain, subdomain, pools())
      if (rejection) {
        const { kind: reason, detail } = rejection
        return { available: false, reason, detail, ...(reason === 'unsupported-pool' ? {} : { fqdn }) }
      }
      const state = await findStateInBatch({ poolDomain, subdomain })
      if (state === 'pool') {
        return {
          available: false,
          reason: 'reserved',
          detail: `"${subdomain}" is reserved; choose another name.`,
          fqdn,
        }
      }
      if (state === 'reserved') {
        return { available: false, reason: 'reserved-state', detail: `${fqdn} is reserved; it may become free.`, fqdn }
      }
      if (state === 'active') return { available: false, reason: 'active-state', detail: `${fqdn} is in use.`, fqdn }
      if (state !== null) {
        const { kind: reason, availableAt } = state
        const detail = `${fqdn} was released; it becomes available at ${availableAt}.`
        return { available: false, reason, detail, fqdn, availableAt }
      }
      const bucket = toBucketName(options.bucketPrefix, fqdn)
      if (bucket.kind === 'bucket') return { available: true, fqdn }
      // The name is valid, but a deployment with object storage would be rejected.
      const detail = `The name is free, but it cannot be used for a deployment with object storage. ${bucket.reason}`
      return { available: true, detail, fqdn }
    },

    /** Reserves a free name, or takes a released one back with its former token. A repeated key returns the same reservation while it lives, with its current expiry. */
    async reserve(command: ReserveCommand, caller: Caller, key: string | undefined): Promise<ReserveOutcome> {
      const { poolDomain, subdomain, createdBy, formerTokenHash } = command
      const rejection = validateName(poolDomain, subdomain, pools())
      if (rejection) return rejection
      const request = { poolDomain, subdomain, createdBy, former: { tokenHash: formerTokenHash }, caller }
      type Result = GrantedWithToken | Exclude<ReserveDecision, { kind: 'granted' }>
      const content = [
        'reserve',
        poolDomain,
        subdomain,
        createdBy,
        ...(formerTokenHash ? [toHex(formerTokenHash)] : []),
      ]
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

    /** Makes a reservation active, then waits a bounded time for its records. */
    async commit(command: CommitCommand, caller: Caller, key: string | undefined): Promise<CommitOutcome> {
      const { poolDomain, subdomain, tokenHash, sovereignFQDN, loadBalancerIP } = command
      const rejection = validateFields(command) ?? validatePool(poolDomain, pools())
      if (rejection) return rejection
      const records = toRecords(command, loadBalancerIP)
      const content = ['commit', poolDomain, subdomain, toHex(tokenHash), sovereignFQDN, loadBalancerIP]
      const decision = await idempotency.executeThenReplay<CommitDecision | Rejection<'conflict'>>(key, content, {
        execute: claim => repository.commit({ ...command, records, caller, claim }),
        success: 'committed',
        replay: async stored => {
          const first = toCommitDecision(stored as CommitRow)
          return first.kind === 'committed' ? ((await rejectFormerHolder(command, tokenHash)) ?? first) : first
        },
      })
      if (decision.kind !== 'committed') return decision
      const dns = await waitUntilApplied({ zone: poolDomain, subdomain, version: decision.version })
      return { kind: 'committed', allocation: { ...decision.allocation, dns } }
    },

    /**
     * Changes the address of an active name, then waits a bounded time for its records. The FQDN is validated only.
     * Without a token, any active name can be changed: the caller must be an operator.
     */
    async update(command: UpdateCommand, caller: Caller, key: string | undefined): Promise<UpdateOutcome> {
      const { poolDomain, subdomain, tokenHash, loadBalancerIP, sovereignFQDN } = command
      const rejection = validateFields(command) ?? validatePool(poolDomain, pools())
      if (rejection) return rejection
      const records = loadBalancerIP === undefined ? [] : toRecords(command, loadBalancerIP)
      const token = tokenHash ? toHex(tokenHash) : null
      const content = ['update', poolDomain, subdomain, token, loadBalancerIP ?? null, sovereignFQDN ?? null]
      const decision = await idempotency.executeThenReplay<UpdateDecision | Rejection<'conflict'>>(key, content, {
        execute: claim => repository.update({ ...command, records, caller, claim }),
        success: 'updated',
        replay: async stored => {
          const first = toUpdateDecision(stored as UpdateRow)
          if (first.kind !== 'updated') return first
          const current = await reader.find(command)
          if (current === null) return { kind: 'not-found' }
          // An operator sends no token, but each grant has its own time.
          return current.reservedAt === first.allocation.reservedAt ? first : { kind: 'conflict' }
        },
      })
      if (decision.kind !== 'updated') return decision
      const { allocation, version } = decision
      const dns: DnsState =
        version === null ? await findDns(command) : await waitUntilApplied({ zone: poolDomain, subdomain, version })
      return { kind: 'updated', allocation: { ...allocation, dns } }
    },

    /** Why an action would be rejected; null: it would take effect. In the order in which the action decides. */
    async findObstacle(
      action: NameAction,
      command: UpdateCommand & ReleaseCommand,
      caller: Caller,
    ): Promise<ActionObstacle | null> {
      const rejection = validateFields(command) ?? validatePool(command.poolDomain, pools())
      if (rejection) return rejection
      if (action === 'lift-cool-off') {
        const [state] = await reader.findStates([command])
        return typeof state === 'object' && state !== null ? null : { kind: 'not-found', detail: NO_COOL_OFF }
      }
      if (action === 'release') {
        const outcome = await reader.decideRelease(toReleaseRequest(command, caller))
        return outcome === 'released' ? null : { kind: outcome }
      }
      const allocation = await reader.find(command)
      if (allocation === null) return { kind: 'not-found' }
      if (allocation.state === 'reserved') return { kind: 'not-active' }
      const isOwn = !command.tokenHash || (await reader.findHolder(command, command.tokenHash)) === 'own'
      return isOwn ? null : { kind: 'token-mismatch' }
    },

    /** Makes a name that is in its cool-off free. */
    async liftCoolOff(name: PoolName, caller: Caller): Promise<CoolOffOutcome> {
      const rejection = validatePool(name.poolDomain, pools())
      if (rejection) return rejection
      return (await repository.liftCoolOff({ ...name, caller }))
        ? { kind: 'lifted' }
        : { kind: 'not-found', detail: NO_COOL_OFF }
    },

    // For deployments, which know only the hash of their token.

    /**
     * Gives a live name to a lineage, before it can have infrastructure: until `letGo` the name is not free, whatever
     * happens to the reservation. False if the token does not have the name.
     */
    async hold(command: RenewCommand, lineageId: string): Promise<boolean> {
      return repository.hold({ ...command, lineageId })
    },

    /** The lineage has no infrastructure any more. A released name becomes free: after the cool-off if it was ever active. */
    async letGo(name: PoolName, lineageId: string): Promise<boolean> {
      return repository.letGo({ ...name, lineageId })
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

    /** Extends a reservation. It takes no Idempotency-Key, because repeating it is harmless. */
    async renew(command: RenewCommand): Promise<RenewOutcome> {
      return validatePool(command.poolDomain, pools()) ?? repository.renew(command)
    },

    /** Frees a name immediately, then waits a bounded time until the provider has removed its records. */
    async release(command: ReleaseCommand, caller: Caller, key: string | undefined): Promise<ReleaseOutcome> {
      const { poolDomain, subdomain, tokenHash, deploymentTokenHash } = command
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const content = [
        'release',
        poolDomain,
        subdomain,
        tokenHash ? toHex(tokenHash) : null,
        ...(deploymentTokenHash ? [toHex(deploymentTokenHash)] : []),
      ]
      const request = toReleaseRequest(command, caller)
      const decision = await idempotency.executeThenReplay<ReleaseDecision>(key, content, {
        execute: claim => repository.release({ ...request, claim }),
        success: 'released',
        replay: stored => toReleaseDecision(stored as ReleaseRow),
      })
      if (decision.kind !== 'released') return decision
      const { allocation: freed, version } = decision
      const withdrawal: DnsState =
        version === null
          ? { status: 'published' }
          : await waitUntilApplied({ zone: poolDomain, subdomain, version, isWithdrawal: true })
      return { kind: 'released', freed, withdrawal }
    },

    async get(name: PoolName): Promise<GetOutcome> {
      const rejection = validatePool(name.poolDomain, pools())
      if (rejection) return rejection
      const allocation = await reader.find(name)
      return allocation ? { kind: 'found', allocation } : { kind: 'not-found' }
    },

    /** The allocations of a pool in the order of their subdomains, page by page. */
    list(poolDomain: string, { state, limit, cursor }: ListQuery): ListOutcome<Allocation> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const pages = paginate({
        fetch: (after = '', size) => fetchPage(() => reader.list(poolDomain, { after, limit: size, state })),
        toCursor: allocation => allocation.subdomain,
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },

    /** The transitions of a pool or of one name, newest first, page by page. */
    history(poolDomain: string, { sub, limit, cursor }: HistoryQuery): ListOutcome<EntryWithId> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const pages = paginate({
        fetch: (position, size) => {
          const before = position === undefined ? undefined : Number(position)
          return fetchPage(() => reader.listHistory(poolDomain, { subdomain: sub, before, limit: size }))
        },
        toCursor: ({ id }) => String(id),
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },

    /** Whether the name is active and was committed with this token. */
    async isActiveWithToken(name: PoolName, tokenHash: Buffer): Promise<boolean> {
      return reader.isActiveWithToken(name, tokenHash)
    },

    /** For the metrics: recent, not current. */
    async count(): Promise<readonly AllocationCount[]> {
      return count()
    },

    async sweep(signal: AbortSignal): Promise<void> {
      await sweepExpired(
        {
          deleteReservations: repository.deleteExpired,
          deleteKeys: idempotency.deleteExpiredKeys,
          onDeleted: options.onSwept,
          now: options.now,
          sleep: (ms, stopped) => sleep(ms, undefined, { signal: stopped }).catch(() => {}),
        },
        signal,
      )
    },
  }
}

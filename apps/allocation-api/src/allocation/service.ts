import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Allocation,
  type CheckResult,
  type DnsState,
  firstViolation,
  subdomain as subdomainSchema,
} from '@pool/contract'
import { createBatcher } from '@pool/database/batcher'
import { createRecords, type RecordTemplate } from '../dns/domain/rrset.ts'
import { type Idempotency, isDuplicate } from '../idempotency/idempotency.ts'
import { throttledCache } from '../lib/cached-query.ts'
import { paginate } from '../lib/paginate.ts'
import { createToken, hashToken } from '../lib/token.ts'
import { toBucketName, toFqdn, validateName, validatePool } from '../naming/naming.ts'
import type { WaitUntilApplied } from '../reconciler/reconciler.ts'
import type {
  AllocationCount,
  Caller,
  CommitCommand,
  CommitDecision,
  CommitOutcome,
  EntryWithId,
  GetOutcome,
  GrantedWithToken,
  HistoryQuery,
  ListOutcome,
  ListQuery,
  PoolName,
  ReleaseCommand,
  ReleaseDecision,
  ReleaseOutcome,
  RenewCommand,
  RenewOutcome,
  ReserveCommand,
  ReserveDecision,
  ReserveOutcome,
} from './domain/types.ts'
import { sweepExpired } from './expired-sweeper.ts'
import type { AllocationReader } from './reader.ts'
import {
  type AllocationRepository,
  type CommitResult,
  type ReleaseResult,
  type ReserveResult,
  toCommitDecision,
  toReleaseDecision,
} from './repository.ts'

export interface AllocationOptions {
  readonly repository: AllocationRepository
  readonly reader: AllocationReader
  /** Counts every row, so it needs its own connection: a statement queued behind it on the same one would wait. */
  readonly countByState: AllocationReader['countByState']
  readonly idempotency: Idempotency
  /** Waits, for a bounded time, until the provider has the records of a version. */
  readonly waitUntilApplied: WaitUntilApplied
  readonly managedDomains: readonly string[]
  readonly recordTemplate: RecordTemplate
  /** Start of every bucket name. */
  readonly bucketPrefix: string
  readonly statementTimeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly onSwept: (count: number) => void
}

/** How long a scrape of the metrics waits for a new count before it gets the previous one. */
const COUNT_WAIT_MS = 2_000
/**
 * Statements of reserves, and of checks, in flight: one at the database while the next one is prepared. A higher limit makes
 * the batches smaller and their total cost higher.
 */
const MAX_IN_FLIGHT = 2
/** Such a batch takes a few milliseconds, which is how long the requests behind it wait. */
const MAX_BATCH_SIZE = 100
/** A statement that takes longer waits for a locked row or a dead connection and must not block the other requests. */
const SLOW_MS = 100

export type AllocationService = ReturnType<typeof createAllocationService>

/** The life of a name: check, reserve, renew, commit, release, and the queries. */
export const createAllocationService = (options: AllocationOptions) => {
  const { repository, reader, idempotency, waitUntilApplied, managedDomains } = options
  const batching = {
    maxInFlight: MAX_IN_FLIGHT,
    maxBatchSize: MAX_BATCH_SIZE,
    slowMs: SLOW_MS,
    timeoutMs: options.statementTimeoutMs,
  }
  const findStateInBatch = createBatcher({ ...batching, execute: reader.findStates })
  const reserveInBatch = createBatcher({ ...batching, execute: repository.reserveMany })
  const count = throttledCache(options.countByState, {
    now: options.now,
    wait: () => sleep(COUNT_WAIT_MS, undefined, { ref: false }),
  })

  return {
    /** Whether a tenant could reserve the name now. The contract defines which reason is reported first. */
    async check(poolDomain: string, sub: string | undefined): Promise<CheckResult> {
      const parsed = subdomainSchema.safeParse(sub)
      if (!parsed.success)
        return { available: false, reason: 'invalid-format', detail: firstViolation(parsed.error).detail }
      const subdomain = parsed.data
      const fqdn = toFqdn(poolDomain, subdomain)
      const rejection = validateName(poolDomain, subdomain, managedDomains)
      if (rejection) {
        const { kind: reason, detail } = rejection
        return { available: false, reason, detail, ...(reason === 'reserved' ? { fqdn } : {}) }
      }
      const state = await findStateInBatch({ poolDomain, subdomain })
      if (state === 'reserved') {
        return { available: false, reason: 'reserved-state', detail: `${fqdn} is reserved; it may become free.`, fqdn }
      }
      if (state === 'active') return { available: false, reason: 'active-state', detail: `${fqdn} is in use.`, fqdn }
      const bucket = toBucketName(options.bucketPrefix, fqdn)
      if (bucket.kind === 'bucket') return { available: true, fqdn }
      // The name is valid, but a deployment with object storage would be rejected.
      const detail = `The name is free, but it cannot be used for a deployment with object storage. ${bucket.reason}`
      return { available: true, detail, fqdn }
    },

    /** Reserves a free name. A repeated key returns the same reservation while it lives, with its current expiry. */
    async reserve(command: ReserveCommand, caller: Caller, key: string | undefined): Promise<ReserveOutcome> {
      const { poolDomain, subdomain, createdBy } = command
      const rejection = validateName(poolDomain, subdomain, managedDomains)
      if (rejection) return rejection
      const { token: reservationToken, tokenHash } = createToken()
      const request = { command, tokenHash, caller }
      const withToken = (decision: ReserveDecision, token: string) =>
        decision.kind === 'granted' ? { ...decision, reservationToken: token } : decision
      // The statement of a keyed request stores its result under the key, so it cannot be shared.
      if (key === undefined) return withToken(await reserveInBatch(request), reservationToken)
      type Result = GrantedWithToken | Exclude<ReserveDecision, { kind: 'granted' }>
      return idempotency.executeThenReplay<Result>(key, ['reserve', poolDomain, subdomain, createdBy], {
        execute: async claim => {
          const sealedToken = claim?.sealToken(reservationToken) ?? null
          const decision = await repository.reserve(request, claim, sealedToken)
          return isDuplicate(decision) ? decision : withToken(decision, reservationToken)
        },
        replay: async (stored, token) => {
          const result = stored as ReserveResult
          if (result.outcome !== 'granted') return { kind: result.outcome }
          if (token === null) throw new Error('the stored result of a reservation has no token')
          const decision = await repository.findReservation(command, hashToken(token))
          return decision && { ...decision, reservationToken: token }
        },
      })
    },

    /** Makes a reservation active, then waits a bounded time for its records. */
    async commit(command: CommitCommand, caller: Caller, key: string | undefined): Promise<CommitOutcome> {
      const { poolDomain, subdomain, tokenHash, sovereignFQDN, loadBalancerIP } = command
      const rejection = validatePool(poolDomain, managedDomains)
      if (rejection) return rejection
      const records = createRecords(toFqdn(poolDomain, subdomain), loadBalancerIP, options.recordTemplate)
      const content = ['commit', poolDomain, subdomain, tokenHash.toString('hex'), sovereignFQDN, loadBalancerIP]
      const decision = await idempotency.executeThenReplay<CommitDecision>(key, content, {
        execute: claim => repository.commit(command, records, caller, claim),
        replay: stored => toCommitDecision(stored as CommitResult),
      })
      if (decision.kind !== 'committed') return decision
      const dns = await waitUntilApplied({ zone: poolDomain, subdomain, version: decision.version })
      return { kind: 'committed', allocation: { ...decision.allocation, dns } }
    },

    /** Extends a reservation. It takes no Idempotency-Key, because repeating it is harmless. */
    async renew(command: RenewCommand, caller: Caller): Promise<RenewOutcome> {
      return validatePool(command.poolDomain, managedDomains) ?? repository.renew(command, caller)
    },

    /** Frees a name immediately, then waits a bounded time until the provider has removed its records. */
    async release(command: ReleaseCommand, caller: Caller, key: string | undefined): Promise<ReleaseOutcome> {
      const { poolDomain, subdomain, tokenHash } = command
      const rejection = validatePool(poolDomain, managedDomains)
      if (rejection) return rejection
      const content = ['release', poolDomain, subdomain, tokenHash?.toString('hex') ?? null]
      const decision = await idempotency.executeThenReplay<ReleaseDecision>(key, content, {
        execute: claim => repository.release(command, caller, claim),
        replay: stored => toReleaseDecision(stored as ReleaseResult),
      })
      if (decision.kind !== 'released') return decision
      const { allocation: freed, version } = decision
      const withdrawal: DnsState =
        version === null ? { status: 'published' } : await waitUntilApplied({ zone: poolDomain, subdomain, version })
      return { kind: 'released', freed, withdrawal }
    },

    async get(name: PoolName): Promise<GetOutcome> {
      const rejection = validatePool(name.poolDomain, managedDomains)
      if (rejection) return rejection
      const allocation = await reader.find(name)
      return allocation ? { kind: 'found', allocation } : { kind: 'not-found' }
    },

    /** The allocations of a pool in the order of their subdomains, page by page. */
    list(poolDomain: string, { state, limit, cursor }: ListQuery): ListOutcome<Allocation> {
      const rejection = validatePool(poolDomain, managedDomains)
      if (rejection) return rejection
      const pages = paginate({
        fetch: (after = '', size) => reader.list(poolDomain, { after, limit: size, state }),
        toCursor: allocation => allocation.subdomain,
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },

    /** The transitions of a pool or of one name, newest first, page by page. */
    history(poolDomain: string, { sub, limit, cursor }: HistoryQuery): ListOutcome<EntryWithId> {
      const rejection = validatePool(poolDomain, managedDomains)
      if (rejection) return rejection
      const pages = paginate({
        fetch: (position, size) => {
          const before = position === undefined ? undefined : Number(position)
          return reader.listHistory(poolDomain, { subdomain: sub, before, limit: size })
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

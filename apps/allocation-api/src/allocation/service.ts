import { setTimeout as sleep } from 'node:timers/promises'
import { type DnsState, type NameAction, splitTarget } from '@pool/contract'
import { planTarget } from '../dns/domain/target.ts'
import { throttledCache } from '../lib/cached-query.ts'
import { type Caller, type PoolName, toFqdn, validatePool } from '../naming/naming.ts'
import { findTargetConflict } from '../records/domain/change.ts'
import { type ActiveNameOptions, createActiveNames, NO_ADDRESS, validateFields } from './active-names.ts'
import { type CheckOptions, createCheck } from './check.ts'
import type {
  ActionObstacle,
  CoolOffOutcome,
  GetOutcome,
  ReleaseCommand,
  ReleaseDecision,
  ReleaseOutcome,
  UpdateCommand,
} from './domain/types.ts'
import { sweepExpired } from './expired-sweeper.ts'
import { createLists, type ListOptions } from './lists.ts'
import type { AllocationReader } from './reader.ts'
import type { AllocationRepository } from './repository.ts'
import { createReservations, type ReservationOptions } from './reservations.ts'
import { type ReleaseRow, toReleaseDecision } from './statements/release.ts'

export interface AllocationOptions extends CheckOptions, ReservationOptions, ActiveNameOptions, ListOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly repository: AllocationRepository
  readonly reader: AllocationReader
  /** Counts every row, so it needs its own connection: a statement queued behind it on the same one would wait. */
  readonly countByState: AllocationReader['countByState']
  /** Whether a client of the in-cluster listener can release only its own names. */
  readonly releaseNeedsToken?: boolean
  readonly onSwept: (count: number) => void
}

const NO_COOL_OFF = 'The name is not in a cool-off.'

/** How long a scrape of the metrics waits for a new count before it gets the previous one. */
const COUNT_WAIT_MS = 2_000

export type AllocationService = ReturnType<typeof createAllocationService>

/** The life of a name: check, reserve, renew, commit, release, and the queries. */
export const createAllocationService = (options: AllocationOptions) => {
  const { repository, reader, idempotency, waitUntilApplied, pools } = options
  const toReleaseRequest = (command: ReleaseCommand, caller: Caller) => ({
    ...command,
    caller,
    needsProof: options.releaseNeedsToken === true && caller.actor === 'in-cluster',
    isDraining: pools().draining.includes(command.poolDomain),
  })

  return {
    check: createCheck(options),
    ...createReservations(options),
    ...createActiveNames(options),
    ...createLists(options),

    /** Why an action would be rejected; null: it would take effect. In the order in which the action decides. */
    async findObstacle(
      action: NameAction,
      command: UpdateCommand & ReleaseCommand,
      caller: Caller,
    ): Promise<ActionObstacle | null> {
      const { change = {} } = command
      const rejection = validateFields(command, change, options) ?? validatePool(command.poolDomain, pools())
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
      if (!isOwn) return { kind: 'token-mismatch' }
      if (Object.keys(change).length === 0) return null
      const { target } = planTarget(splitTarget(allocation).target, change)
      if (!target) return NO_ADDRESS
      const fqdn = toFqdn(command.poolDomain, command.subdomain)
      const detail = findTargetConflict(fqdn, target, await reader.findTenantRecords(command), options.recordTemplate)
      return detail === null ? null : { kind: 'record-conflict', detail }
    },

    /** Makes a name that is in its cool-off free. */
    async liftCoolOff(name: PoolName, caller: Caller): Promise<CoolOffOutcome> {
      const rejection = validatePool(name.poolDomain, pools())
      if (rejection) return rejection
      return (await repository.liftCoolOff({ ...name, caller }))
        ? { kind: 'lifted' }
        : { kind: 'not-found', detail: NO_COOL_OFF }
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
        tokenHash ? tokenHash.toString('hex') : null,
        ...(deploymentTokenHash ? [deploymentTokenHash.toString('hex')] : []),
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

    isActiveWithToken: reader.isActiveWithToken,

    /** For the metrics: recent, not current. */
    count: throttledCache(options.countByState, {
      now: options.now,
      wait: () => sleep(COUNT_WAIT_MS, undefined, { ref: false }),
    }),

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

import { createBatcher } from '@pool/runtime/database/batcher'
import { isDatabaseUnavailable } from '@pool/runtime/database/errors'
import { advanceClock, type ClockReading, endsWait, toRemainingMs } from '../lease/lease.ts'
import {
  type HistoryOutcome,
  type LeaseDirectory,
  type LeaseService,
  type LeaseStatusOutcome,
  type ReadOutcome,
  type SlotUnavailable,
  toObservedLease,
  toReading,
  toStatus,
  type WriteOutcome,
} from '../lease-service.ts'
import type { LeaseRepository, SlotWrite, StoredLease, WrittenLease } from './repository.ts'
import { createWaits, type Observation } from './waits.ts'

/** Of the reads. Two statements in flight: one at the database while the next one is prepared. */
const READ_BATCHING = { maxInFlight: 2, maxBatchSize: 100, slowMs: 100 }
/** How long a waiter does not see a change whose notification was lost. */
const RECHECK_MS = 2_000
/** Of one process: each has a request, a timer and some closures. */
const MAX_WAITERS = 20_000

/** The outcomes with a new generation. */
const CHANGES: ReadonlySet<WrittenLease['outcome']> = new Set(['granted', 'renewed', 'released'])

export interface PostgresLeaseServiceOptions {
  readonly repository: LeaseRepository
  readonly timeoutMs: number
  /** Called after each write that has changed a slot. */
  readonly onWritten: (slot: string) => void
  readonly checkHealth: () => Promise<boolean>
  readonly recheckMs?: number
  readonly maxWaiters?: number
}

export type PostgresLeaseService = ReturnType<typeof createPostgresLeaseService>

const toWriteOutcome = ({ outcome, lease, now }: WrittenLease): WriteOutcome => {
  const observed = toObservedLease(lease, now)
  switch (outcome) {
    case 'granted':
    case 'renewed':
    case 'released':
      return { kind: outcome, ...observed }
    case 'absent':
      return { kind: outcome }
    case 'observed':
      throw new Error('a write was not decided')
    default:
      return { kind: 'rejected', reason: outcome, ...observed }
  }
}

/**
 * The leases in Postgres, for any number of replicas. Requests that arrive while statements are in flight share the next one,
 * whatever their slots are.
 */
export const createPostgresLeaseService = ({
  repository,
  timeoutMs,
  onWritten,
  checkHealth,
  recheckMs = RECHECK_MS,
  maxWaiters = MAX_WAITERS,
}: PostgresLeaseServiceOptions) => {
  const readInBatch = createBatcher<string, StoredLease>({ ...READ_BATCHING, timeoutMs, execute: repository.readMany })

  const write = async (request: SlotWrite): Promise<WrittenLease> => {
    const written = await repository.write(request)
    if (CHANGES.has(written.outcome)) {
      onWritten(request.slot)
      waits.onChanged([request.slot])
    }
    return written
  }

  /** A clock that was set back is stored, as otherwise the lease of a dead holder would not expire. */
  const toObservation = async (slot: string, { lease, wallNow }: StoredLease): Promise<Observation> => {
    const { now, reanchored }: ClockReading = advanceClock(lease, wallNow)
    if (!reanchored) return { lease, now }
    const written = await write({ slot, request: { kind: 'observe' }, caller: '' })
    return { lease: written.lease, now: written.now }
  }

  const observe = async (slot: string): Promise<Observation> => toObservation(slot, await readInBatch(slot))

  const observeMany = async (slots: readonly string[]): Promise<Observation[]> => {
    const stored = await repository.readMany(slots)
    return Promise.all(stored.map((lease, index) => toObservation(slots[index] ?? '', lease)))
  }

  const waits = createWaits({
    observe: observeMany,
    hasEnded: (condition, { lease, now }) => endsWait(condition, lease, now),
    remainingMs: ({ lease, now }) => toRemainingMs(lease, now),
    recheckMs,
    maxWaiters,
  })

  const answer = async <Outcome>(execute: () => Promise<Outcome>): Promise<Outcome | SlotUnavailable> => {
    try {
      return await execute()
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error
      return { kind: 'lease-unavailable', reason: String(error) }
    }
  }

  const leases: LeaseService = {
    read: ({ slot }, known) =>
      answer<ReadOutcome>(async () => {
        const { lease, now } = await observe(slot)
        return toReading(lease, now, known)
      }),

    wait: ({ slot }, { caller, condition, known, maxMs, signal }) =>
      answer<ReadOutcome>(async () => {
        const end = await waits.wait(slot, { caller, condition, maxMs, signal })
        switch (end.kind) {
          case 'condition-holds':
            return toReading(end.observation.lease, end.observation.now)
          case 'time-is-up': {
            const { lease, now } = await observe(slot)
            return toReading(lease, now, endsWait(condition, lease, now) ? [] : known)
          }
          case 'aborted':
            return { kind: 'absent' }
          case 'too-many':
            return { kind: 'overloaded', reason: 'too many clients wait' }
          case 'stopping':
            return { kind: 'lease-unavailable', reason: 'the witness stops' }
        }
      }),

    write: ({ slot }, request, caller) =>
      answer<WriteOutcome>(async () => toWriteOutcome(await write({ slot, request, caller }))),

    history: ({ slot }) =>
      answer<HistoryOutcome>(async () => {
        const transitions = await repository.readHistory(slot)
        return transitions.length === 0 ? { kind: 'absent' } : { kind: 'history', transitions }
      }),

    async readMany(addresses) {
      const slots = addresses.map(({ slot }) => slot)
      const observations = await answer(() => observeMany(slots))
      return addresses.map(({ slot }, index): LeaseStatusOutcome => {
        if ('kind' in observations) return observations
        const { lease, now = 0 } = observations[index] ?? {}
        return toStatus(lease, now, waits.countWaiters(slot))
      })
    },

    checkHealth,
  }

  const directory: LeaseDirectory = {
    async list({ prefix, limit, cursor }) {
      const after = Buffer.from(cursor ?? '', 'base64url').toString()
      const page = await answer(() => repository.list({ prefix, limit, after }))
      if ('kind' in page) {
        const detail = 'The database did not respond; retry later.'
        return { kind: 'copy-unavailable', reason: ('reason' in page && page.reason) || page.kind, detail }
      }
      const last = page.leases.at(-1)
      const nextCursor = page.isLast || !last ? undefined : Buffer.from(last.slot).toString('base64url')
      return { kind: 'listed', leases: page.leases, nextCursor }
    },
  }

  return { leases, directory, waits }
}

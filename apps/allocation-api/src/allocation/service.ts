import { setTimeout as sleep } from 'node:timers/promises'
import { createBatcher } from '@pool/database/batcher'
import type { Sql } from '@pool/database/client'
import type { RecordTemplate } from '../dns/domain/rrset.ts'
import { createOnce, deleteExpiredKeys } from '../idempotency/idempotency.ts'
import { throttledCache } from '../lib/cached-query.ts'
import type { Settle } from '../reconciler/reconciler.ts'
import { check } from './check.ts'
import { commit } from './commit.ts'
import type { ReserveRequest } from './domain/types.ts'
import { sweep } from './expired-sweeper.ts'
import { get } from './get.ts'
import { createHistoryReader } from './history.ts'
import { list, readHistory } from './list.ts'
import { createCount, createReader } from './reader.ts'
import { release } from './release.ts'
import { renew } from './renew.ts'
import { createStore } from './repository.ts'
import { type ReserveDependencies, reserve } from './reserve.ts'

export interface AllocationOptions {
  readonly sql: Sql
  /** Connections for counting all of the table: a request whose statement came behind that would wait for it. */
  readonly countSql: Sql
  readonly managedDomains: readonly string[]
  /** Waits, for a bounded time, until the records of a version are at the provider. */
  readonly settle: Settle
  readonly template: RecordTemplate
  /** What the name of every bucket begins with. */
  readonly platformPrefix: string
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly countTimeoutMs: number
  readonly idempotencyTtlMs: number
  readonly reservation: { readonly ttlMs: number; readonly maxAgeMs: number }
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  readonly onSwept: (count: number) => void
}

/** How long a scrape of the metrics waits for a count; it has the one before then. */
const COUNT_PATIENCE_MS = 2_000

/**
 * Statements of reserves, and of checks, under way at a time. While the database is at one, the next is being made ready:
 * more of them would be smaller, and cost more together.
 */
const MAX_IN_FLIGHT = 2
/** Reserves, or checks, of one statement. It takes a few milliseconds then, which is how long the next ones wait. */
const MAX_BATCH_SIZE = 100
/**
 * One that takes so long waits for a row that somebody holds, or for a connection that is gone: two of them must not be
 * all that there is.
 */
const SLOW_MS = 100

/** Names: who holds which, and what may be done with it. */
export const createAllocationService = (options: AllocationOptions) => {
  const { sql, managedDomains, settle, template, platformPrefix, reservation, now, onSwept } = options
  const timeoutMs = options.statementTimeoutMs
  const reader = createReader(sql, { timeoutMs })
  const history = createHistoryReader(sql, { timeoutMs })
  const store = createStore(sql, { timeoutMs })
  const once = createOnce(sql, { timeoutMs, keyTtlMs: options.idempotencyTtlMs })
  const batching = { maxInFlight: MAX_IN_FLIGHT, maxBatchSize: MAX_BATCH_SIZE, slowMs: SLOW_MS, timeoutMs }

  const heldState = createBatcher({ ...batching, execute: reader.heldStates })
  const reserveTogether = createBatcher({
    ...batching,
    execute: (requests: readonly ReserveRequest[]) => store.reserveAll(requests, reservation.ttlMs),
  })
  // What has a key takes its turn by the statement that decides it: it has one of its own.
  const decide: ReserveDependencies['decide'] = (command, ttlMs, caller, turn) =>
    turn ? store.reserve(command, ttlMs, caller, turn) : reserveTogether({ command, caller })

  return {
    verbs: {
      check: check({ heldState, managedDomains, platformPrefix }),
      get: get({ reader, managedDomains }),
      reserve: reserve({ decide, reader, once, managedDomains, ttlMs: reservation.ttlMs }),
      commit: commit({ store, once, settle, managedDomains, template }),
      renew: renew({ store, managedDomains, ...reservation }),
      release: release({ store, once, settle, managedDomains }),
      list: list({ reader, managedDomains }),
      readHistory: readHistory({ history, managedDomains }),
    },
    reader,
    once,
    // It reads every row of the table, at each replica.
    count: throttledCache(createCount(options.countSql, { timeoutMs: options.countTimeoutMs }), {
      now,
      patience: () => sleep(COUNT_PATIENCE_MS, undefined, { ref: false }),
    }),
    sweep: sweep({
      deleteExpired: store.deleteExpired,
      forgetKeys: limit => deleteExpiredKeys(sql, limit, timeoutMs),
      onDeleted: onSwept,
      now,
      rest: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {}),
    }),
  }
}

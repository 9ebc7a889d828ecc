import type { Caller, CommitCommand, ReleaseCommand, RenewCommand, ReserveCommand } from '../allocation/allocation.ts'
import type { CommitOutcome } from '../allocation/commit.ts'
import type { Once } from '../allocation/once.ts'
import type { Reader } from '../allocation/reader.ts'
import type { ReleaseOutcome } from '../allocation/release.ts'
import type { ReserveOutcome } from '../allocation/reserve.ts'
import type { Sql } from '../database/connect.ts'
import { type CreateDependencies, create } from './create.ts'
import { follow } from './follow.ts'
import { get, list } from './get.ts'
import type { Infrastructure } from './infrastructure.ts'
import { createLineStore } from './line-store.ts'
import { createNames } from './name.ts'
import { createNews } from './news.ts'
import { remove } from './remove.ts'
import type { RunOutcome } from './run.ts'
import { createRuns } from './runs.ts'
import { createDeploymentStore } from './store.ts'
import type { StorageProvider } from './variables.ts'

export interface DeploymentsOptions {
  readonly sql: Sql
  readonly once: Once
  readonly reader: Pick<Reader, 'isActiveUnder'>
  readonly allocation: {
    readonly reserve: (command: ReserveCommand, caller: Caller, key: string | undefined) => Promise<ReserveOutcome>
    readonly commit: (command: CommitCommand, caller: Caller, key: string | undefined) => Promise<CommitOutcome>
    readonly renew: (command: RenewCommand, caller: Caller) => Promise<{ readonly kind: string }>
    readonly release: (command: ReleaseCommand, caller: Caller, key: string | undefined) => Promise<ReleaseOutcome>
  }
  readonly orderOf: CreateDependencies['orderOf']
  readonly validateKeys: CreateDependencies['validateKeys']
  readonly infrastructure: Infrastructure
  readonly storage: StorageProvider
  readonly atOnce: number
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly leaseMs: number
  readonly reservationTtlMs: number
  readonly now: () => number
  readonly date: () => Date
  readonly newId: () => string
  readonly isUnavailable: (error: unknown) => boolean
  readonly onEnd: (id: string, outcome: RunOutcome, seconds: number) => void
  readonly onError: (id: string | null, error: unknown) => void
}

/** How late a line is at a reader of another replica. */
const POLL_MS = 500
/** Proxies commonly take a connection for dead after a minute of silence. */
const IDLE_MS = 15_000

export type Deployments = ReturnType<typeof assembleDeployments>

/** Deployments, from the request to the end of the work. */
export const assembleDeployments = (options: DeploymentsOptions) => {
  const { sql, once, reader, allocation, orderOf, validateKeys, infrastructure, storage, atOnce, leaseMs } = options
  const timeouts = { timeoutMs: options.statementTimeoutMs }
  const store = createDeploymentStore(sql, { ...timeouts, leaseMs })
  const lines = createLineStore(sql, timeouts)
  const names = createNames({ ...allocation, reader })
  const news = createNews()
  const runs = createRuns({
    store,
    lines,
    names,
    infrastructure,
    storage,
    atOnce,
    leaseMs,
    keepNameEveryMs: options.reservationTtlMs / 3,
    now: options.now,
    date: options.date,
    isUnavailable: options.isUnavailable,
    onLines: news.wake,
    onEnd: options.onEnd,
    onError: options.onError,
  })
  return {
    verbs: {
      create: create({
        orderOf,
        infrastructure,
        validateKeys,
        reserve: allocation.reserve,
        names,
        store,
        runs,
        once,
        newId: options.newId,
      }),
      get: get({ store }),
      list: list({ store }),
      remove: remove({ store, runs, names }),
      follow: follow({ read: store.read, readLines: lines.read, news, pollMs: POLL_MS, idleMs: IDLE_MS }),
    },
    count: store.count,
    running: runs.count,
    tend: runs.tend,
    stop: runs.stop,
  }
}

import type { Sql } from '@pool/database/client'
import { type CreateDependencies, create } from './create.ts'
import { createLineStore } from './log-repository.ts'
import { createNews } from './notifier.ts'
import { get, list } from './queries.ts'
import { remove } from './remove.ts'
import { createDeploymentStore } from './repository.ts'
import { createNames, type ReservationOperations } from './reservation.ts'
import { createRuns, type RunsDependencies } from './runner.ts'
import { follow } from './tail-log.ts'

export interface DeploymentsOptions
  extends Omit<RunsDependencies, 'store' | 'lines' | 'names' | 'keepNameEveryMs' | 'onLines'>,
    Pick<CreateDependencies, 'idempotency' | 'orderOf' | 'validateKeys' | 'newId'> {
  readonly sql: Sql
  readonly allocations: ReservationOperations & CreateDependencies['allocations']
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly reservationTtlMs: number
}

/** How late a line is at a reader of another replica. */
const POLL_MS = 500
/** Proxies commonly take a connection for dead after a minute of silence. */
const IDLE_MS = 15_000

export type Deployments = ReturnType<typeof createDeploymentService>

/** Deployments, from the request to the end of the work. */
export const createDeploymentService = (options: DeploymentsOptions) => {
  const { sql, allocations } = options
  const timeouts = { timeoutMs: options.statementTimeoutMs }
  const store = createDeploymentStore(sql, { ...timeouts, leaseMs: options.leaseMs })
  const lines = createLineStore(sql, timeouts)
  const names = createNames(allocations)
  const news = createNews()
  const runs = createRuns({
    ...options,
    store,
    lines,
    names,
    keepNameEveryMs: options.reservationTtlMs / 3,
    onLines: news.wake,
  })
  return {
    verbs: {
      create: create({ ...options, names, store, runs }),
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

import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import type { StorageProvider } from './domain/tfvars.ts'
import type { Job, ObjectStorageCredentials } from './domain/types.ts'
import type { LineStore } from './log-repository.ts'
import { createLogWriter } from './log-writer.ts'
import type { Provisioner } from './provisioner.ts'
import type { DeploymentStore } from './repository.ts'
import type { Names } from './reservation.ts'
import { RunLost, type RunOutcome, runDeployment, type StopReason } from './run-deployment.ts'

export interface RunsDependencies {
  readonly store: DeploymentStore
  readonly lines: Pick<LineStore, 'append'>
  readonly names: Names
  readonly infrastructure: Provisioner
  readonly storage: StorageProvider
  /** Deployments worked on at a time by this process. */
  readonly atOnce: number
  /** Milliseconds. */
  readonly leaseMs: number
  readonly keepNameEveryMs: number
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  readonly date: () => Date
  readonly isUnavailable: (error: unknown) => boolean
  readonly onLines: (id: string) => void
  readonly onEnd: (id: string, outcome: RunOutcome, seconds: number) => void
  readonly onError: (id: string | null, error: unknown) => void
}

interface Active {
  readonly job: Job
  readonly stop: AbortController
  /** Others work on it now, or may: whatever it was stopped for before, it must not go on. */
  isLost: boolean
  /** When the lease was last known to be renewed. */
  heldAt: number
  nameKeptAt: number
}

/** Deployments that wait in this process, with their keys in its memory. */
const MOST_WAITING = 100
/** Between two attempts at a database that is away. */
const PAUSE_MS = 500

/**
 * The deployments that this process works on: a bounded number at a time, each under a lease that is renewed while it
 * goes on. A process that cannot renew stops before others take over; what one has left, whoever comes first takes up.
 */
export const createRuns = (deps: RunsDependencies) => {
  const { store, lines, names, infrastructure, storage, atOnce, leaseMs, keepNameEveryMs, now, onError } = deps
  const limit = pLimit(atOnce)
  const active = new Map<string, Active>()
  const ended = new Set<Promise<void>>()
  let isStopping = false

  const halt = (one: Active, reason: StopReason): void => {
    if (reason === 'lost') one.isLost = true
    one.stop.abort(reason)
  }

  const insistFor =
    (one: Active) =>
    async <Result>(step: () => Promise<Result>): Promise<Result> => {
      for (;;) {
        if (one.isLost) throw new RunLost()
        try {
          return await step()
        } catch (error) {
          if (!deps.isUnavailable(error)) throw error
          await sleep(PAUSE_MS)
        }
      }
    }

  const work = async (one: Active, keys: ObjectStorageCredentials | null): Promise<void> => {
    const { job, stop } = one
    const began = now()
    const log = createLogWriter({ lines, run: job, now: deps.date, onStored: () => deps.onLines(job.id) })
    const outcome = await runDeployment(job, keys, {
      store,
      names,
      infrastructure,
      storage,
      insist: insistFor(one),
      ...log,
      signal: stop.signal,
      onDefect: error => onError(job.id, error),
    })
    deps.onEnd(job.id, outcome, (now() - began) / 1_000)
    deps.onLines(job.id)
  }

  const accept = (job: Job, keys: ObjectStorageCredentials | null): void => {
    // Of one that was left nobody knows when its name was last kept.
    const nameKeptAt = job.generation > 1 ? Number.NEGATIVE_INFINITY : now()
    const one: Active = { job, stop: new AbortController(), isLost: false, heldAt: now(), nameKeptAt }
    active.set(job.id, one)
    const worked = Promise.withResolvers<void>()
    let hasBegun = false
    const begin = (): Promise<void> => {
      if (!hasBegun) worked.resolve(work(one, keys))
      hasBegun = true
      return worked.promise
    }
    // What is stopped while it waits makes nothing any more: its name need not wait for a turn to be freed.
    one.stop.signal.addEventListener('abort', begin, { once: true })
    if (isStopping) halt(one, 'stopping')
    void limit(begin).catch(() => {})
    const end = worked.promise
      .catch((error: unknown) => onError(job.id, error))
      .finally(() => {
        if (active.get(job.id) === one) active.delete(job.id)
        ended.delete(end)
      })
    ended.add(end)
  }

  const hold = async (): Promise<void> => {
    const asked = [...active.values()]
    if (asked.length === 0) return
    const at = now()
    const held = await store.hold(asked.map(({ job: { id, generation } }) => ({ id, generation })))
    const byId = new Map(held.map(one => [one.id, one]))
    for (const one of asked) {
      const found = byId.get(one.job.id)
      if (!found && active.get(one.job.id) === one) halt(one, 'lost')
      if (found) one.heldAt = at
      if (found?.isCancelled) halt(one, 'cancelled')
    }
  }

  const keepNames = async (): Promise<void> => {
    const due = [...active.values()].filter(
      one => !one.stop.signal.aborted && now() - one.nameKeptAt >= keepNameEveryMs,
    )
    const tried = await Promise.allSettled(
      due.map(async one => {
        const isKept = await names.keep(one.job)
        one.nameKeptAt = now()
        if (!isKept && active.get(one.job.id) === one) halt(one, 'name-lost')
      }),
    )
    const failed = tried.find(each => each.status === 'rejected')
    if (failed) throw failed.reason
  }

  return {
    hasRoom: (): boolean => !isStopping && limit.pendingCount < MOST_WAITING,
    count: (): number => active.size,
    accept,
    /** Stops the run of it if it is one of this process; others learn of it when they renew their lease. */
    cancel(id: string): void {
      const one = active.get(id)
      if (one) halt(one, 'cancelled')
    },

    /** To be called again and again, several times within a lease. */
    async tend(): Promise<void> {
      try {
        await hold()
        const free = atOnce - active.size
        if (!isStopping && free > 0) for (const job of await store.take(free)) accept(job, null)
        await keepNames()
      } finally {
        // A little earlier than the lease ends, for a clock that runs slower than the database's.
        for (const one of active.values()) if (now() - one.heldAt > 0.8 * leaseMs) halt(one, 'lost')
      }
    },

    /** Every run is stopped and comes to its end. */
    async stop(): Promise<void> {
      isStopping = true
      for (const one of active.values()) halt(one, 'stopping')
      await Promise.all(ended)
    },
  }
}

export type Runs = ReturnType<typeof createRuns>

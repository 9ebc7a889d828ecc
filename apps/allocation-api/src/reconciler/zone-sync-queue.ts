import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { NOTHING_SYNCED, type SyncResult } from './sync-zone.ts'
import type { WithZoneLock, ZoneLock } from './zone-lock.ts'

/**
 * `done`: no name failed. `incomplete`: at least one did. `busy`: another replica had the lock for too long. `failed`: an
 * unexpected error.
 */
export type SyncOutcome = 'done' | 'incomplete' | 'busy' | 'failed'

export interface ZoneSyncQueueOptions {
  readonly zone: string
  readonly withZoneLock: WithZoneLock
  readonly sync: (lock: ZoneLock) => Promise<SyncResult>
  readonly onEnded: (outcome: SyncOutcome) => void
  readonly onError: (error: unknown) => void
}

/** The requests that one sync serves. */
interface Batch extends PromiseWithResolvers<SyncResult> {
  /** Runs the sync in the asynchronous context of the first request, so that its spans are part of that trace. */
  readonly run: <Result>(work: () => Result) => Result
}

/** The pause after an error, such as a zone lock that could not be acquired. */
const ERROR_PAUSE_MS = 100

/**
 * The syncs of one zone, with the semantics of a Kubernetes work queue: at most one sync runs, and at most one more is
 * scheduled behind it. A sync serves every request made before it holds the zone lock, so a hundred commits cost a few
 * syncs. Between processes the lock decides.
 *
 * Nothing here has to survive a crash: the database knows what is due.
 */
export class ZoneSyncQueue {
  readonly #options: ZoneSyncQueueOptions
  /** The requests that no sync has started to serve. */
  #scheduled: Batch | undefined
  /** The requests that the running sync serves. */
  #running: Batch | undefined
  #draining: Promise<void> | undefined
  #isStopping = false

  constructor(options: ZoneSyncQueueOptions) {
    this.#options = options
  }

  /** The result of a sync that starts after this call. It is empty if the sync could not start, or failed. */
  request(): Promise<SyncResult> {
    if (this.#isStopping) return Promise.resolve(NOTHING_SYNCED)
    this.#scheduled ??= { ...Promise.withResolvers(), run: AsyncLocalStorage.snapshot() }
    this.#draining ??= this.#drain()
    return this.#scheduled.promise
  }

  /** Accepts no more requests and waits for those that it accepted. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#draining
  }

  async #drain(): Promise<void> {
    while (this.#scheduled) {
      const result = await this.#runSync()
      // Without the lock no sync has started: its requests end with the empty result.
      this.#startScheduled()
      this.#running?.resolve(result)
      this.#running = undefined
      if (result.hasMore) void this.request()
    }
    this.#draining = undefined
  }

  async #runSync(): Promise<SyncResult> {
    const { zone, withZoneLock, sync, onEnded, onError } = this.#options
    try {
      const result = await withZoneLock(zone, lock => {
        this.#startScheduled()
        return this.#running ? this.#running.run(() => sync(lock)) : sync(lock)
      })
      onEnded(result === null ? 'busy' : result.hasFailed ? 'incomplete' : 'done')
      return result ?? NOTHING_SYNCED
    } catch (error) {
      onEnded('failed')
      onError(error)
      await sleep(ERROR_PAUSE_MS)
      return NOTHING_SYNCED
    }
  }

  #startScheduled(): void {
    if (this.#running) return
    this.#running = this.#scheduled
    this.#scheduled = undefined
  }
}

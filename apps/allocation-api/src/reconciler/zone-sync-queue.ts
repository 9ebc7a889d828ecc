import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SyncOutcome } from '../observability/domain/observer.ts'
import { NOTHING_SYNCED, type SyncResult } from './domain/outcome.ts'

export interface ZoneSyncQueueOptions {
  /** Null: another replica had the lock of the zone for too long. */
  readonly sync: () => Promise<SyncResult | null>
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
 * scheduled behind it. A sync serves every request made before it starts, so a hundred commits cost a few syncs. Between
 * processes the lock of the zone decides.
 *
 * Nothing here has to survive a crash: the database knows what is due.
 */
export class ZoneSyncQueue {
  readonly #options: ZoneSyncQueueOptions
  /** The requests that no sync has started to serve. */
  #scheduled: Batch | undefined
  #draining: Promise<void> | undefined
  #isStopping = false

  constructor(options: ZoneSyncQueueOptions) {
    this.#options = options
  }

  /** The result of a sync that starts after this call. It is empty if the sync could not start, or failed. */
  request(): Promise<SyncResult> {
    if (this.#isStopping) return Promise.resolve(NOTHING_SYNCED)
    this.#scheduled ??= { ...Promise.withResolvers(), run: AsyncLocalStorage.snapshot() }
    const { promise } = this.#scheduled
    // It takes the scheduled batch at once.
    this.#draining ??= this.#drain()
    return promise
  }

  /** Accepts no more requests and waits for those that it accepted. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#draining
  }

  async #drain(): Promise<void> {
    while (this.#scheduled) {
      const batch = this.#scheduled
      this.#scheduled = undefined
      const result = await this.#runSync(batch)
      batch.resolve(result)
      if (result.hasMore) void this.request()
    }
    this.#draining = undefined
  }

  async #runSync(batch: Batch): Promise<SyncResult> {
    const { sync, onEnded, onError } = this.#options
    try {
      const result = await batch.run(sync)
      onEnded(result === null ? 'busy' : result.hasFailed ? 'incomplete' : 'done')
      return result ?? NOTHING_SYNCED
    } catch (error) {
      onEnded('failed')
      onError(error)
      await sleep(ERROR_PAUSE_MS)
      return NOTHING_SYNCED
    }
  }
}

import type { Unavailable } from '../dns/domain/result.ts'
import { type DiffContext, type DiffMode, diffZone, type ZoneDiff } from './diff-zone.ts'
import type { ReconcilerRepository } from './repository.ts'
import type { Busy, WithZoneLock } from './zone-lock.ts'

export interface DriftObserver {
  onDriftCheck(zone: string, result: ZoneDiff | Unavailable): void
  onError(event: 'zone sync failed', error: unknown, context: { readonly zone: string }): void
}

export interface DriftDetectorOptions extends DiffContext {
  readonly repository: DiffContext['repository'] &
    Pick<ReconcilerRepository, 'claimDueDriftChecks' | 'recordDriftCheck' | 'retryNow'>
  readonly withZoneLock: WithZoneLock
  /** Milliseconds from one drift check of a zone to the next. */
  readonly driftIntervalMs: number
  /** From 0 to 1. */
  readonly random: () => number
  readonly observer: DiffContext['observer'] & DriftObserver
}

/** A drift check that did not end is started again after this time, by any replica. */
const CLAIM_MS = 60_000

/** Finds records that the provider no longer has as they were written, periodically and on request. */
export class DriftDetector {
  readonly #options: DriftDetectorOptions
  readonly #inFlight = new Map<string, Promise<void>>()
  #isStopping = false

  constructor(options: DriftDetectorOptions) {
    this.#options = options
  }

  /** Starts the drift check of each zone where it is due. Drifted names become due, and the next sync repairs them. */
  async startDueChecks(): Promise<void> {
    if (this.#isStopping) return
    const { repository, driftIntervalMs } = this.#options
    for (const zone of await repository.claimDueDriftChecks(Math.min(CLAIM_MS, driftIntervalMs))) {
      if (!this.#inFlight.has(zone)) this.#inFlight.set(zone, this.#checkInBackground(zone))
    }
  }

  /** The difference of the zone; nothing is changed. */
  async preview(zone: string): Promise<ZoneDiff | Unavailable | Busy> {
    return (await this.#diff(zone, 'dry-run')) ?? { kind: 'busy' }
  }

  /** Makes drifted names due. `retryFailed` makes the names that failed before due as well. */
  async check(
    zone: string,
    { retryFailed }: { retryFailed: boolean } = { retryFailed: false },
  ): Promise<ZoneDiff | Unavailable | Busy> {
    const { repository, driftIntervalMs, random, observer } = this.#options
    const result = await this.#diff(zone, 'apply', retryFailed)
    if (result === null) return { kind: 'busy' }
    // The jitter spreads replicas and zones over time.
    if (result.kind === 'compared') await repository.recordDriftCheck(zone, driftIntervalMs * (0.9 + 0.2 * random()))
    observer.onDriftCheck(zone, result)
    return result
  }

  /** Starts no more checks and waits for those in flight. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#inFlight.values())
  }

  #diff(zone: string, mode: DiffMode, retryFailed = false): Promise<ZoneDiff | Unavailable | null> {
    const { withZoneLock, repository } = this.#options
    return withZoneLock(zone, async lock => {
      const result = await diffZone(this.#options, zone, lock, mode)
      if (retryFailed && result.kind === 'compared') await repository.retryNow(zone)
      return result
    })
  }

  async #checkInBackground(zone: string): Promise<void> {
    try {
      await this.check(zone)
    } catch (error) {
      this.#options.observer.onError('zone sync failed', error, { zone })
    } finally {
      this.#inFlight.delete(zone)
    }
  }
}

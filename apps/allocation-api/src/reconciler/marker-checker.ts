import type { Pools } from '../naming/naming.ts'
import { checkMarkers, findOtherProvider, type MarkerContext } from './check-markers.ts'
import { parseMarkers, toMarkerName } from './domain/zone-marker.ts'
import type { ProviderClient } from './provider-client.ts'
import { holdDuring, type WithZoneLock, type ZoneLock } from './zone-lock.ts'

export interface MarkerCheckerOptions extends Omit<MarkerContext, 'provider'> {
  readonly provider: MarkerContext['provider'] & Pick<ProviderClient, 'isCircuitOpen' | 'findZoneToProbe'>
  readonly withZoneLock: WithZoneLock
  readonly pools: () => Pools
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly onError: (zone: string, error: unknown) => void
}

/** The pause after a check that failed, without its jitter of a fifth either way. */
const RETRY_MS = 10_000

/**
 * Compares the marker of each zone with the database once after the start, because a restored database may have nothing to
 * write, and its next drift check may be far away. It also probes the provider when the pause of an open circuit is over and no
 * other call does.
 */
export class MarkerChecker {
  readonly #options: MarkerCheckerOptions
  readonly #checked = new Set<string>()
  readonly #retryAt = new Map<string, number>()
  #running: Promise<void> | undefined
  #isStopping = false

  constructor(options: MarkerCheckerOptions) {
    this.#options = options
  }

  /** Starts the checks that are due, one after another, so that other work on a slow provider does not wait for all of them. */
  startDueChecks(): void {
    if (this.#running || this.#isStopping || this.#findDueZone() === null) return
    this.#running = this.#checkDueZones().finally(() => {
      this.#running = undefined
    })
  }

  /** Starts no more checks and waits for the one in flight. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#running
  }

  #findDueZone(): string | null {
    const { provider, pools, now } = this.#options
    const probed = provider.findZoneToProbe()
    if (probed !== null || provider.isCircuitOpen()) return probed
    const { managed, draining } = pools()
    const isDue = (zone: string) => !this.#checked.has(zone) && now() >= (this.#retryAt.get(zone) ?? 0)
    return [...managed, ...draining].find(isDue) ?? null
  }

  async #checkDueZones(): Promise<void> {
    const { withZoneLock, now, random, onError } = this.#options
    while (!this.#isStopping) {
      const zone = this.#findDueZone()
      if (zone === null) return
      this.#retryAt.set(zone, now() + RETRY_MS * (0.8 + 0.4 * random()))
      try {
        const isDone = await withZoneLock(zone, lock => holdDuring(lock, () => this.#check(zone, lock)))
        // Another replica has the lock: the next call of `startDueChecks` tries again.
        if (isDone === null) return
        if (isDone) this.#checked.add(zone)
      } catch (error) {
        onError(zone, error)
        return
      }
    }
  }

  /** False if the zone could not be read. */
  async #check(zone: string, lock: ZoneLock): Promise<boolean> {
    const { provider } = this.#options
    if (await findOtherProvider(this.#options, zone)) return true
    const read = await provider.read(zone, { names: [toMarkerName(zone)], branches: [] })
    if (read.kind === 'unavailable') return false
    await lock.assertHeld()
    await checkMarkers(this.#options, zone, parseMarkers(zone, read.records), 'apply')
    return true
  }
}

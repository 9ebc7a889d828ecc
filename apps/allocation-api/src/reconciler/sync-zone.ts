import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { SyncOutcome } from '../observability/domain/observer.ts'
import {
  type Failure,
  indexRecords,
  limitPlans,
  MAX_BATCH_SIZE,
  type NameOutcome,
  NOTHING_SYNCED,
  type Outcome,
  type PlannedName,
  type PlanOptions,
  planName,
  requireProgress,
  type SyncResult,
  toFailure,
  toOutcome,
  toStopFailure,
  toWantedRecords,
} from './domain/plan.ts'
import { confirmPurge, needsConfirmation, toReadAfterWrite } from './domain/purge.ts'
import { findStopCause, isOwnProvider, isStaleRead, parseMarkers, toMarkerName } from './domain/zone-marker.ts'
import type { LockedZone } from './locked-zone.ts'
import type { Due } from './repository.ts'

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
      onEnded(result === null ? 'busy' : result.failed.size > 0 ? 'incomplete' : 'done')
      return result ?? NOTHING_SYNCED
    } catch (error) {
      onEnded('failed')
      onError(error)
      await sleep(ERROR_PAUSE_MS)
      return NOTHING_SYNCED
    }
  }
}

/**
 * One sync of a zone: read the zone, subtract it from the desired records, apply the difference, save the outcomes. It is the
 * same after a commit, a crash or an outage, and repeating it changes nothing. `due` was read when the lock was acquired.
 */
export const syncZone = async (zone: LockedZone, due: Due): Promise<SyncResult> => {
  const { tools } = zone
  const { writes } = due
  let { names } = due
  const failAll = (failure: Failure) => zone.save(names.map(name => ({ name, outcome: failure })))
  // A replica with the provider of the zone publishes the names.
  if (names.length === 0 || !isOwnProvider(writes, tools.providerKind)) return NOTHING_SYNCED
  if (writes.stoppedCause) return failAll(toStopFailure(zone.name, writes.stoppedCause))
  const wanted = toWantedRecords(zone.name, names)
  const read = await zone.read({ ...wanted, names: [...wanted.names, toMarkerName(zone.name)] })
  if (read.kind === 'unavailable') return failAll(toFailure(read))
  // Changes made during a long read need not wait for the next sync: the lock excludes other writers since the read.
  if (read.isFullZone) names = await tools.repository.listDue(zone.name, MAX_BATCH_SIZE)
  const markers = parseMarkers(zone.name, read.records)
  if (findStopCause(markers, writes)) {
    const { stopCause } = await zone.checkMarkers(markers, 'apply')
    if (stopCause) return failAll(toStopFailure(zone.name, stopCause))
  }
  if (isStaleRead(markers, writes)) {
    const reason = `The DNS provider shows the zone ${zone.name} as it was before the last write. Nothing was written.`
    return failAll({ kind: 'failed', cause: 'zone', reason, isTransient: true })
  }
  const options = await zone.planOptions(names)
  const current = indexRecords(zone.name, read)
  const plans = limitPlans(names.map(name => planName(current, name, options)))
  const planned = names.flatMap((name, i): PlannedName[] => {
    const plan = plans[i]
    return plan ? [{ name, plan }] : []
  })
  const { result, locked, stoppedCause, serial } = await zone.apply(planned, writes.installation)
  if (stoppedCause) return failAll(toStopFailure(zone.name, stoppedCause))
  const attempts = planned.map(({ name, plan }): Attempt => {
    const fqdn = `${name.subdomain}.${zone.name}`
    return { name, plan, outcome: locked.has(name.subdomain) ? { kind: 'locked' } : toOutcome(fqdn, plan, result) }
  })
  const advanced = attempts.filter(
    ({ plan }) => plan.kind === 'changes' && plan.isPartial && plan.deletedRecords.length > 0,
  )
  const outcomes = await confirmPurges(zone, attempts, serial, options)
  return zone.save(requireProgress(outcomes, new Set(advanced.map(({ name }) => name.subdomain))))
}

interface Attempt extends PlannedName, NameOutcome {}

/**
 * Reads the names again that have a new holder: only when a read that began after the write shows nothing of an earlier
 * holder is the purge over. Later, a record of another writer may be the new holder's.
 */
const confirmPurges = async (
  zone: LockedZone,
  attempts: readonly Attempt[],
  serial: number | null,
  options: PlanOptions,
): Promise<readonly NameOutcome[]> => {
  const needsRead = new Set(attempts.filter(({ name, plan, outcome }) => needsConfirmation(name, plan, outcome)))
  if (needsRead.size === 0) return attempts
  const branches = Array.from(needsRead, ({ name }) => `${name.subdomain}.${zone.name}`)
  const read = await zone.read({ names: [toMarkerName(zone.name)], branches })
  const after = toReadAfterWrite(zone.name, read.kind === 'read' ? read : { records: [] })
  const confirm = (attempt: Attempt): Outcome =>
    read.kind === 'unavailable' ? toFailure(read) : confirmPurge(attempt, after, serial, options)
  return attempts.map(one => (needsRead.has(one) ? { name: one.name, outcome: confirm(one) } : one))
}

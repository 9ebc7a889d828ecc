import { setTimeout as sleep } from 'node:timers/promises'
import type { DnsState } from '@pool/contract'
import { isSettled, toDnsState } from './domain/status.ts'
import type { ZoneStore } from './sync-repository.ts'
import type { PassReport } from './sync-zone.ts'
import type { ZoneLock } from './zone-lock.ts'
import type { InTurn } from './zone-scheduler.ts'

export interface ConvergenceDependencies {
  readonly zones: Pick<ZoneStore, 'zonesWithDue' | 'progress'>
  readonly inTurn: InTurn
  readonly pass: (zone: string, claim: ZoneLock) => Promise<PassReport>
  /** Milliseconds that a caller waits for its own version at the most. */
  readonly waitMs: number
  readonly onError: (zone: string, error: unknown) => void
}

/** A name and the version of its desired records that the caller has just stated. */
export interface DesiredVersion {
  readonly zone: string
  readonly subdomain: string
  readonly version: number
}

/** Waits, for a bounded time, until the version is at the provider, and says where it stands then. */
export type WaitUntilApplied = (stated: DesiredVersion) => Promise<DnsState>

/** A zone whose claim cannot be had just now is not asked for again at once. */
const ERROR_PAUSE_MS = 100

const nothing: PassReport = { applied: new Map(), isMoreDue: false }

/** The promise's value, or null after `ms`. */
const orNull = async <Value>(ms: number, promise: Promise<Value>): Promise<Value | null> => {
  const over = new AbortController()
  const timeout = sleep(Math.max(0, ms), null, { signal: over.signal }).catch(() => null)
  return Promise.race([promise, timeout]).finally(() => over.abort())
}

/**
 * Brings zones to their desired records. Within this process one pass of a zone runs at a time, and everything that is
 * asked for before a pass has its claim is in that pass: a hundred commits cost a few passes. Between processes the
 * claim decides. Nothing here needs to be remembered over a crash: what is due stands in the database.
 */
export const createConvergence = (deps: ConvergenceDependencies) => {
  const waiting = new Map<string, PromiseWithResolvers<PassReport>>()
  const running = new Map<string, Promise<void>>()
  let stopping = false

  const runPass = async (zone: string): Promise<void> => {
    let pass: PromiseWithResolvers<PassReport> | undefined
    let report = nothing
    try {
      const result = await deps.inTurn(zone, claim => {
        pass = waiting.get(zone)
        waiting.delete(zone)
        return deps.pass(zone, claim)
      })
      report = result ?? nothing
    } catch (error) {
      deps.onError(zone, error)
      await sleep(ERROR_PAUSE_MS)
    }
    pass ??= waiting.get(zone)
    if (waiting.get(zone) === pass) waiting.delete(zone)
    pass?.resolve(report)
    if (report.isMoreDue) void converge(zone)
  }

  const runZone = async (zone: string): Promise<void> => {
    while (waiting.has(zone)) await runPass(zone)
    running.delete(zone)
  }

  /** The report of a pass that begins after this call. */
  const converge = (zone: string): Promise<PassReport> => {
    if (stopping) return Promise.resolve(nothing)
    const next = waiting.get(zone) ?? Promise.withResolvers<PassReport>()
    waiting.set(zone, next)
    if (!running.has(zone)) running.set(zone, runZone(zone))
    return next.promise
  }

  const settle: WaitUntilApplied = async ({ zone, subdomain, version }) => {
    const until = performance.now() + deps.waitMs
    for (;;) {
      const report = await orNull(until - performance.now(), converge(zone))
      if ((report?.applied.get(subdomain) ?? 0) >= version) return { status: 'published' }
      try {
        // Another replica's pass may have had it; the table knows.
        const progress = await deps.zones.progress(zone, subdomain)
        const isOver = stopping || performance.now() >= until
        if (isOver || isSettled(progress, version)) return toDnsState(progress)
      } catch (error) {
        // What the caller did stands in the database already: not knowing where its records are must not undo the answer.
        deps.onError(zone, error)
        return { status: 'pending' }
      }
    }
  }

  return {
    settle,
    /** Does what is due in the zone, for `waitMs` at the most; what is left goes on. */
    async run(zone: string): Promise<void> {
      const until = performance.now() + deps.waitMs
      while (performance.now() < until) {
        const report = await orNull(until - performance.now(), converge(zone))
        if (!report?.isMoreDue) return
      }
    },
    /** Starts a pass of every zone that has something due; what a crash, an outage or a pause has left behind. */
    async catchUp(): Promise<void> {
      for (const zone of await deps.zones.zonesWithDue()) void converge(zone)
    },
    /** Starts nothing more and waits for the passes under way. */
    async stop(): Promise<void> {
      stopping = true
      await Promise.all(running.values())
    },
  }
}

import type { Sql } from '@pool/database/client'
import type { DnsProvider, Unavailable } from '../dns/provider.ts'
import { type Compared, createComparison } from './diff-zone.ts'
import { createDrift } from './drift-detector.ts'
import { createComparisonStore } from './drift-repository.ts'
import { createCalls } from './provider-client.ts'
import { createConvergence } from './reconciler.ts'
import { createZoneStore } from './sync-repository.ts'
import { createPass } from './sync-zone.ts'
import type { ZoneLocks } from './zone-lock.ts'
import { createTurns } from './zone-scheduler.ts'

export interface ReconcilerOptions {
  readonly provider: DnsProvider
  readonly sql: Sql
  readonly zoneLocks: ZoneLocks
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly providerTimeoutMs: number
  readonly commitWaitMs: number
  readonly driftIntervalMs: number
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly onCall: (operation: 'read' | 'apply', outcome: 'done' | 'refused' | 'unavailable', seconds: number) => void
  readonly onCompared: (zone: string, outcome: Compared | Unavailable) => void
  readonly onDefect: (error: unknown) => void
  readonly onError: (zone: string, error: unknown) => void
}

export type Reconciler = ReturnType<typeof createReconciler>

/** Desired state of the zones, from the table to the provider. */
export const createReconciler = (options: ReconcilerOptions) => {
  const { provider, sql, zoneLocks: claims, now, random, onCall, onCompared, onDefect, onError } = options
  const { providerTimeoutMs: callDeadlineMs, commitWaitMs, driftIntervalMs } = options
  const timeouts = { timeoutMs: options.statementTimeoutMs }
  const zones = createZoneStore(sql, timeouts)
  const comparisons = createComparisonStore(sql, timeouts)
  const hasZoneTtl = provider.hasZoneTtl ?? false
  const inTurn = createTurns({ claims, isOneAtATime: provider.concurrency === 1 })
  const calls = createCalls({ provider, deadlineMs: callDeadlineMs, now, random, onCall, onDefect })
  const convergence = createConvergence({
    zones,
    inTurn,
    pass: createPass({ zones, calls, hasZoneTtl, comparisonEveryMs: driftIntervalMs, random }),
    waitMs: commitWaitMs,
    onError,
  })
  const drift = createDrift({
    zones: comparisons,
    inTurn,
    compare: createComparison({ zones: comparisons, calls, hasZoneTtl }),
    run: convergence.run,
    everyMs: driftIntervalMs,
    random,
    onCompared,
    onError,
  })
  return {
    waitUntilApplied: convergence.settle,
    preview: drift.preview,
    repair: drift.repair,
    lag: zones.lag,
    isCircuitOpen: calls.isHeldBack,
    /** What is due anywhere, whoever has left it. */
    async syncDueZones(): Promise<void> {
      await convergence.catchUp()
      await drift.catchUp()
    },
    async stop(): Promise<void> {
      await Promise.all([convergence.stop(), drift.stop()])
    },
  }
}

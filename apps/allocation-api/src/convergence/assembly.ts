import type { Sql } from '../database/connect.ts'
import type { DnsProvider, Unavailable } from '../dns/provider.ts'
import { createCalls } from './calls.ts'
import type { Claims } from './claim.ts'
import { type Compared, createComparison } from './compare.ts'
import { createComparisonStore } from './comparison-store.ts'
import { createConvergence } from './converge.ts'
import { createDrift } from './drift.ts'
import { createPass } from './pass.ts'
import { createTurns } from './turns.ts'
import { createZoneStore } from './zone-store.ts'

export interface DnsOptions {
  readonly provider: DnsProvider
  readonly sql: Sql
  readonly claims: Claims
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly callDeadlineMs: number
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

export type Dns = ReturnType<typeof assembleDns>

/** Desired state of the zones, from the table to the provider. */
export const assembleDns = (options: DnsOptions) => {
  const { provider, sql, claims, now, random, onCall, onCompared, onDefect, onError } = options
  const { callDeadlineMs, commitWaitMs, driftIntervalMs } = options
  const timeouts = { timeoutMs: options.statementTimeoutMs }
  const zones = createZoneStore(sql, timeouts)
  const comparisons = createComparisonStore(sql, timeouts)
  const isTtlOfZone = provider.isTtlOfZone ?? false
  const inTurn = createTurns({ claims, isOneAtATime: provider.isOneAtATime ?? false })
  const calls = createCalls({ provider, deadlineMs: callDeadlineMs, now, random, onCall, onDefect })
  const convergence = createConvergence({
    zones,
    inTurn,
    pass: createPass({ zones, calls, isTtlOfZone, comparisonEveryMs: driftIntervalMs, random }),
    waitMs: commitWaitMs,
    onError,
  })
  const drift = createDrift({
    zones: comparisons,
    inTurn,
    compare: createComparison({ zones: comparisons, calls, isTtlOfZone }),
    run: convergence.run,
    everyMs: driftIntervalMs,
    random,
    onCompared,
    onError,
  })
  return {
    settle: convergence.settle,
    preview: drift.preview,
    repair: drift.repair,
    lag: zones.lag,
    isHeldBack: calls.isHeldBack,
    /** What is due anywhere, whoever has left it. */
    async catchUp(): Promise<void> {
      await convergence.catchUp()
      await drift.catchUp()
    },
    async stop(): Promise<void> {
      await Promise.all([convergence.stop(), drift.stop()])
    },
  }
}

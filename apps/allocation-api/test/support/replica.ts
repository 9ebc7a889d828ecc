import { createDatabaseClient } from '@pool/runtime/database/client'
import type { RecordTemplate } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { createPools } from '../../src/naming/naming.ts'
import type { DriftCheckResult } from '../../src/observability/domain/observer.ts'
import { createReconciler, type Reconciler } from '../../src/reconciler/reconciler.ts'
import { createZoneLocks } from '../../src/reconciler/zone-lock.ts'

export const DRIFT_MS = 600_000
/** For a busy machine. */
const STATEMENT_TIMEOUT_MS = 20_000
const WAIT_MS = 30_000

export interface ReplicaOptions {
  readonly url: string
  readonly provider: DnsProvider
  readonly providerKind?: string
  readonly writesZones?: boolean
  readonly waitMs?: number
  readonly lockWaitMs?: number
  readonly recordTemplate?: RecordTemplate
  readonly callTimeoutMs?: number
  readonly random?: () => number
  /** Milliseconds by which the clock of the replica is ahead. */
  readonly aheadMs?: () => number
}

/** The DNS reconciler of one replica, with its own connections and without the rest of the API. */
export interface Replica {
  readonly dns: Reconciler
  /** Errors of the reconciler and errors that the provider threw. */
  readonly errors: readonly unknown[]
  readonly driftChecks: readonly DriftCheckResult[]
  /** The causes of the zones that this replica stopped. */
  readonly stops: readonly string[]
  readonly markerRejections: readonly string[]
  /** The outcomes of the syncs. */
  readonly syncs: readonly string[]
  close(): Promise<void>
}

export const startReplica = ({
  url,
  provider,
  providerKind = 'fake',
  writesZones = true,
  waitMs = WAIT_MS,
  lockWaitMs = WAIT_MS,
  recordTemplate = { names: ['@', '*'], ttl: 60 },
  callTimeoutMs = STATEMENT_TIMEOUT_MS,
  random = () => 0.5,
  aheadMs = () => 0,
}: ReplicaOptions): Replica => {
  const sql = createDatabaseClient(url, {
    maxConnections: 4,
    applicationName: 'replica',
    maxStatementMs: STATEMENT_TIMEOUT_MS,
  })
  const lockLimits = { waitMs: lockWaitMs, idleTimeoutMs: 30_000, timeoutMs: STATEMENT_TIMEOUT_MS }
  const zoneLocks = createZoneLocks(url, lockLimits, { silences: 0 })
  const errors: unknown[] = []
  const driftChecks: DriftCheckResult[] = []
  const stops: string[] = []
  const markerRejections: string[] = []
  const syncs: string[] = []
  const dns = createReconciler({
    provider,
    providerKind,
    writesZones,
    sql,
    withLock: zoneLocks.withLock,
    pools: () => createPools(['pool.test', 'other.test']),
    recordTemplate,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    providerTimeoutMs: callTimeoutMs,
    commitWaitMs: waitMs,
    driftIntervalMs: DRIFT_MS,
    now: () => performance.now() + aheadMs(),
    random,
    observer: {
      onProviderCall() {},
      onCircuitOpened() {},
      onCircuitClosed() {},
      onSync: (_, outcome) => void syncs.push(outcome),
      onDriftCheck: (_, result) => void driftChecks.push(result),
      onZoneStopped: (_, cause) => void stops.push(cause),
      onMarkerRejected: (_, reason) => void markerRejections.push(reason),
      onError: (_, error) => void errors.push(error),
    },
  })
  return {
    dns,
    errors,
    driftChecks,
    stops,
    markerRejections,
    syncs,
    async close() {
      await dns.stop()
      await Promise.all([zoneLocks.close(), sql.end({ timeout: 1 })])
    },
  }
}

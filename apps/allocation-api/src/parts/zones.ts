import { type ConfigIssue, ConfigIssuesError } from '@pool/runtime/service/env'
import { FAILURE_CAUSES } from '../reconciler/domain/status.ts'
import { createProviderMoves } from '../reconciler/provider-moves.ts'
import { createReconciler } from '../reconciler/reconciler.ts'
import { createZoneLocks } from '../reconciler/zone-lock.ts'
import type { ServiceConfig } from '../service-config.ts'
import type { Base } from './base.ts'
import type { Database } from './database.ts'
import { type Job, now } from './part.ts'

const PROVIDER_TIMEOUT_MS = 10_000
/** How long the request of an operator, or a check, waits for the lock of a zone. */
const ZONE_LOCK_WAIT_MS = 10_000
/** How long a zone waits for a process that died while it wrote. Every build has the same. */
const ZONE_LEASE_MS = 5_000
/** How often each replica looks for changes that a crash, an outage or a pause left due. */
const SYNC_INTERVAL_MS = 1_000

const toProviderIssue =
  (kind: string) =>
  ({ zone, providerKind }: { zone: string; providerKind: string }): ConfigIssue => ({
    variable: 'DNSPROVIDER_KIND',
    detail: `is ${kind}, but ${zone} was published with ${providerKind}; set it to ${providerKind}, or set PDM_DNS_PROVIDER_MOVE=true to publish every name again with ${kind}`,
  })

/** Zones that were published with another kind of provider are published again, if the operator has asked for it. */
const moveZones = async (
  { dns, dnsProvider }: ServiceConfig,
  { observer }: Base,
  { sql, timeoutMs, pools }: Database,
) => {
  const moves = createProviderMoves(sql, { timeoutMs })
  const { managed, draining } = pools()
  const moved = await moves.listOtherProviders(managed, dnsProvider.kind)
  if (moved.length === 0) return
  if (!dns.movesProvider) throw new ConfigIssuesError(moved.map(toProviderIssue(dnsProvider.kind)))
  const names = await moves.moveTo(dnsProvider.kind, [...managed, ...draining])
  observer.onProviderMove(
    moved.map(({ zone }) => zone),
    names,
  )
}

export type Zones = Awaited<ReturnType<typeof createZones>>

/** The DNS provider and the reconciler. Throws ConfigIssuesError if zones were published with another provider. */
export const createZones = async (config: ServiceConfig, base: Base, database: Database) => {
  const { dns, dnsProvider } = config
  const { observer, tracer } = base
  const { sql, zoneSql, timeoutMs, pools } = database
  await moveZones(config, base, database)
  const { provider, info } = await dnsProvider.start({
    listZones: () => [...pools().managed, ...pools().draining],
    sql,
    onError: error => observer.onError('dns provider error', error),
  })
  const zoneLocks = createZoneLocks(zoneSql, { waitMs: ZONE_LOCK_WAIT_MS, leaseMs: ZONE_LEASE_MS, timeoutMs })
  const reconciler = createReconciler({
    provider,
    providerKind: dnsProvider.kind,
    writesZones: dns.writesZones,
    keepsUnknown: dns.keepsUnknown,
    sql,
    zoneSql,
    withLock: zoneLocks.withLock,
    pools,
    recordTemplate: dns.recordTemplate,
    statementTimeoutMs: timeoutMs,
    providerTimeoutMs: PROVIDER_TIMEOUT_MS,
    commitWaitMs: dns.commitWaitMs,
    driftIntervalMs: dns.driftIntervalMs,
    now,
    random: Math.random,
    observer,
    tracer,
  })
  const jobs: readonly Job[] = [
    { failure: 'search for due zones failed', intervalMs: SYNC_INTERVAL_MS, run: reconciler.syncDueZones },
    { failure: 'zone sync failed', intervalMs: SYNC_INTERVAL_MS, run: reconciler.checkMarkers },
  ]

  return {
    provider,
    reconciler,
    /** For the log. */
    address: { kind: dnsProvider.kind, ...info },
    // The built-in DNS server answers on this machine only.
    routes: { reconciler, acceptsLoopback: dnsProvider.kind === 'local' },
    canDelegate: !provider.hasNoDelegations,
    gauges: {
      zoneStates: reconciler.listZoneStates,
      failureCauses: FAILURE_CAUSES,
      isCircuitOpen: reconciler.isCircuitOpen,
    },
    jobs,
    endWaits: reconciler.endWaits,
    stop: reconciler.stop,
    close: () => provider.close(),
  }
}

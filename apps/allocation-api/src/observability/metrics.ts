import { operationList } from '@pool/contract'
import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'
import {
  type DriftCheckResult,
  PROBE_ROUTES,
  type RequestLogEntry,
  SYNC_OUTCOMES,
  type SyncOutcome,
  toRoute,
} from './domain/observer.ts'

/** How far the published records of a zone lag behind the desired ones. */
interface ZoneState {
  readonly zone: string
  /** Without it the zone has no samples. */
  readonly isTracked: boolean
  readonly oldestPendingSeconds: number
  readonly pendingNames: number
  readonly syncedAt: Date | null
  readonly driftCheckedAt: Date | null
  /** Names by the cause of their last failure. */
  readonly failing: Readonly<Record<string, number>>
  readonly stopCause: string | null
}

export interface BuildInfo {
  readonly version: string
  readonly nodeVersion: string
  readonly providerKind: string
}

/** What a scrape reads. A source that rejects has no samples in that scrape. */
export interface GaugeSources {
  /** Live allocations by pool and state. */
  countAllocations(): Promise<readonly { poolDomain: string; state: string; count: number }[]>
  countDeployments(): Promise<readonly { status: string; count: number }[]>
  /** Deployments that this process works on, or has in its queue. */
  activeDeployments(): number
  zoneStates(): Promise<readonly ZoneState[]>
  /** Every key of `failing` in a `ZoneState`. */
  readonly failureCauses: readonly string[]
  isCircuitOpen(): boolean
  /** The pools that have names or records but are no longer configured. */
  drainingPools(): readonly string[]
  /** What an acknowledged write has survived; null while the database accepts no writes. */
  durability(): Promise<string | null>
  /** Every value of `durability`. */
  readonly durabilities: readonly string[]
  /** Whether `/readyz` is 200. */
  isReady(): Promise<boolean>
  acceptsWrites(): Promise<boolean>
  /** Sessions at the database server, of all its clients, and how many it accepts. */
  countConnections(): Promise<{ readonly open: number; readonly max: number }>
  /** Bytes that this process may still write to the directory of the deployments; null if the directory cannot be read. */
  freeBytes(): Promise<number | null>
  /** The pools that this process manages. */
  managedPools(): readonly string[]
}

const EMPTY_ZONE = {
  isTracked: true,
  oldestPendingSeconds: 0,
  pendingNames: 0,
  syncedAt: null,
  driftCheckedAt: null,
  failing: {},
  stopCause: null,
} as const

const DRIFT_CHECK_OUTCOMES = ['compared', 'unavailable'] as const
const RUN_OUTCOMES = ['ready', 'destroyed', 'failed', 'released', 'lease-lost']

const counted: ReadonlyMap<string, string> = new Map(
  operationList.flatMap(({ method, path, counted }) =>
    counted === undefined ? [] : [[`${method.toUpperCase()} ${toRoute(path)}`, counted]],
  ),
)

/** The operation whose outcome is counted, by method and route; HEAD is GET without a body (RFC 9110 section 9.3.2). */
export const toOperation = (method: string, route: string): string | undefined =>
  counted.get(`${method === 'HEAD' ? 'GET' : method} ${route}`)

/** Without a value the gauge has no sample. */
const setOrRemove = (gauge: Gauge, value: number | null): void => {
  if (value === null) gauge.remove()
  else gauge.set(value)
}

/** Counted since the start of the process. */
export interface RequestTotals {
  readonly requests: number
  /** Responses with 5xx. */
  readonly errors: number
  readonly requestMs: number
}

export type Metrics = ReturnType<typeof createMetrics>

/** Adds the metrics of the service to `registry`. */
export const createMetrics = (registry: Registry, { version, nodeVersion, providerKind }: BuildInfo) => {
  const registers = [registry]
  let refreshGauges = async (): Promise<void> => {}

  const requests = new Histogram({
    name: 'pdm_http_request_duration_seconds',
    help: 'Seconds until the response headers were ready, by listener, method, route and status.',
    labelNames: ['listener', 'method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const operations = new Counter({
    name: 'pdm_operations_total',
    help: 'Operations by outcome.',
    labelNames: ['operation', 'outcome'],
    registers,
  })
  const swept = new Counter({
    name: 'pdm_sweeper_deleted_total',
    help: 'Expired reservations that the sweeper of this process deleted.',
    registers,
  })
  const providerCalls = new Histogram({
    name: 'pdm_dns_operation_duration_seconds',
    help: 'Seconds of calls to the DNS provider, by operation and outcome.',
    labelNames: ['operation', 'outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const credentialChecks = new Counter({
    name: 'pdm_credential_validations_total',
    help: 'Credential checks by kind and outcome; unavailable: the provider gave no result.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  new Gauge({
    name: 'pdm_build_info',
    help: 'Build information; value is always 1.',
    labelNames: ['version', 'node', 'dns_provider'],
    registers,
  }).set({ version, node: nodeVersion, dns_provider: providerKind }, 1)

  const ready = new Gauge({
    name: 'pdm_ready',
    help: '1 if /readyz of this process is 200.',
    registers,
  })
  const acceptsWrites = new Gauge({
    name: 'pdm_database_accepts_writes',
    help: '1 if the database accepted a write of this process, at most a second ago.',
    registers,
  })
  const totals = { requests: 0, errors: 0, requestMs: 0 }
  let countedActiveSeconds = 0
  new Counter({
    name: 'pdm_event_loop_active_seconds_total',
    help: 'Seconds that the event loop of this process was busy; its rate is the utilization, 1 at most.',
    registers,
    collect() {
      const activeSeconds = performance.eventLoopUtilization().active / 1_000
      this.inc(activeSeconds - countedActiveSeconds)
      countedActiveSeconds = activeSeconds
    },
  })
  const syncs = new Counter({
    name: 'pdm_dns_syncs_total',
    help: 'Syncs of a zone by this process, by outcome; done: no name failed; incomplete: at least one did; busy: another replica had the lock of the zone.',
    labelNames: ['zone', 'outcome'],
    registers,
  })
  const driftChecks = new Counter({
    name: 'pdm_dns_drift_checks_total',
    help: 'Drift checks of a whole zone by this process, by outcome.',
    labelNames: ['zone', 'outcome'],
    registers,
  })
  const driftedNames = new Counter({
    name: 'pdm_dns_drifted_names_total',
    help: 'Names whose records differed from what this service had written, found by this process.',
    labelNames: ['zone'],
    registers,
  })
  const lastSweep = new Gauge({
    name: 'pdm_sweeper_last_run_timestamp_seconds',
    help: 'Unix time at which the sweeper of this process last ended without an error; at first that of the start.',
    registers,
  })
  const deploymentRuns = new Histogram({
    name: 'pdm_deployment_duration_seconds',
    help: 'Seconds that this process worked on a deployment, by outcome.',
    labelNames: ['outcome'],
    buckets: [1, 5, 15, 60, 180, 300, 600, 900, 1_800, 3_600],
    registers,
  })
  // Before the first event, so that `increase` sees the step from 0 to 1.
  for (const outcome of RUN_OUTCOMES) deploymentRuns.zero({ outcome })

  /** The counters of a zone start at 0, for the same reason. */
  const startCounters = (zone: string): void => {
    driftedNames.inc({ zone }, 0)
    for (const outcome of DRIFT_CHECK_OUTCOMES) driftChecks.inc({ zone, outcome }, 0)
    for (const outcome of SYNC_OUTCOMES) syncs.inc({ zone, outcome }, 0)
  }

  const addGauges = (sources: GaugeSources, onSourceError: (error: unknown) => void): void => {
    for (const zone of sources.managedPools()) startCounters(zone)
    lastSweep.setToCurrentTime()
    const allocations = new Gauge({
      name: 'pdm_allocations',
      help: 'Names in the database that are not free, by pool and state.',
      labelNames: ['pool', 'state'],
      registers,
    })
    new Gauge({
      name: 'pdm_pool_draining',
      help: '1 for each pool that has names or records but is not in the configuration of this process.',
      labelNames: ['pool'],
      registers,
      collect() {
        this.reset()
        for (const pool of sources.drainingPools()) this.set({ pool }, 1)
      },
    })
    new Gauge({
      name: 'pdm_database_durability',
      help: '1 for what an acknowledged write has survived: asynchronous and volatile writes can be lost.',
      labelNames: ['mode'],
      registers,
      async collect() {
        const current = await sources.durability().catch(() => null)
        this.reset()
        if (current) for (const mode of sources.durabilities) this.set({ mode }, mode === current ? 1 : 0)
      },
    })
    const oldestPending = new Gauge({
      name: 'pdm_dns_oldest_pending_seconds',
      help: 'Age of the oldest change of a zone that the provider does not have yet; 0 if there is none.',
      labelNames: ['zone'],
      registers,
    })
    const pendingNames = new Gauge({
      name: 'pdm_dns_pending_names',
      help: 'Names of a zone with a change that the provider does not have yet.',
      labelNames: ['zone'],
      registers,
    })
    const failing = new Gauge({
      name: 'pdm_dns_failing_names',
      help: 'Names of a zone whose last attempt failed, by cause; foreign-record: an unmanaged record conflicts.',
      labelNames: ['zone', 'cause'],
      registers,
    })
    const stopped = new Gauge({
      name: 'pdm_dns_zone_stopped',
      help: '1 for each zone to which nothing is written until an operator resumes it, by cause.',
      labelNames: ['zone', 'cause'],
      registers,
    })
    const lastSync = new Gauge({
      name: 'pdm_dns_last_sync_timestamp_seconds',
      help: 'Unix time at which a replica last finished a sync of a zone.',
      labelNames: ['zone'],
      registers,
    })
    const lastDriftCheck = new Gauge({
      name: 'pdm_dns_last_drift_check_timestamp_seconds',
      help: 'Unix time at which a replica last compared a whole zone with its desired records.',
      labelNames: ['zone'],
      registers,
    })
    const deployments = new Gauge({
      name: 'pdm_deployments',
      help: 'Deployments in the database, by status.',
      labelNames: ['status'],
      registers,
    })
    const connections = new Gauge({
      name: 'pdm_database_connections',
      help: 'Sessions at the database server, of all its clients.',
      registers,
    })
    const maxConnections = new Gauge({
      name: 'pdm_database_max_connections',
      help: 'Sessions that the database server accepts from users without special privileges.',
      registers,
    })
    const freeBytes = new Gauge({
      name: 'pdm_deployments_dir_free_bytes',
      help: 'Bytes that this process may still write to the directory of the deployments.',
      registers,
    })
    new Gauge({
      name: 'pdm_dns_circuit_open',
      help: '1 from the failure at which calls to the DNS provider are suspended until the next one that succeeds.',
      registers,
      collect() {
        this.set(sources.isCircuitOpen() ? 1 : 0)
      },
    })
    new Gauge({
      name: 'pdm_deployments_active',
      help: 'Deployments that this process works on or has queued; only its memory holds their credentials.',
      registers,
      collect() {
        this.set(sources.activeDeployments())
      },
    })

    const setZone = ({ zone, failing: names, ...status }: ZoneState): void => {
      oldestPending.set({ zone }, status.oldestPendingSeconds)
      pendingNames.set({ zone }, status.pendingNames)
      for (const cause of sources.failureCauses) failing.set({ zone, cause }, names[cause] ?? 0)
      if (status.stopCause) stopped.set({ zone, cause: status.stopCause }, 1)
      if (status.syncedAt) lastSync.set({ zone }, status.syncedAt.getTime() / 1_000)
      if (status.driftCheckedAt) lastDriftCheck.set({ zone }, status.driftCheckedAt.getTime() / 1_000)
    }

    refreshGauges = async () => {
      const [counts, zones, deploymentCounts, sessions, free, isReady, canWrite] = await Promise.allSettled([
        sources.countAllocations(),
        sources.zoneStates(),
        sources.countDeployments(),
        sources.countConnections(),
        sources.freeBytes(),
        sources.isReady(),
        sources.acceptsWrites(),
      ])
      const ofTables = [
        allocations,
        oldestPending,
        pendingNames,
        failing,
        stopped,
        lastSync,
        lastDriftCheck,
        deployments,
      ]
      for (const gauge of ofTables) gauge.reset()
      ready.set(Number(isReady.status === 'fulfilled' && isReady.value))
      acceptsWrites.set(Number(canWrite.status === 'fulfilled' && canWrite.value))
      setOrRemove(freeBytes, free.status === 'fulfilled' ? free.value : null)
      setOrRemove(connections, sessions.status === 'fulfilled' ? sessions.value.open : null)
      setOrRemove(maxConnections, sessions.status === 'fulfilled' ? sessions.value.max : null)
      if (sessions.status === 'rejected') onSourceError(sessions.reason)
      if (deploymentCounts.status === 'rejected') onSourceError(deploymentCounts.reason)
      else for (const { status, count } of deploymentCounts.value) deployments.set({ status }, count)
      if (counts.status === 'rejected') onSourceError(counts.reason)
      else for (const { poolDomain, state, count } of counts.value) allocations.set({ pool: poolDomain, state }, count)
      if (zones.status === 'rejected') onSourceError(zones.reason)
      else {
        // A zone without a name has no row yet.
        for (const zone of sources.managedPools()) setZone({ ...EMPTY_ZONE, zone })
        for (const zone of zones.value) if (zone.isTracked) setZone(zone)
      }
    }
  }

  return {
    contentType: registry.contentType,
    /** The exposition text of one scrape. */
    async text(): Promise<string> {
      await refreshGauges()
      return registry.metrics()
    },
    /** Adds the gauges that are read at a scrape. Called once, when their sources exist. */
    addGauges,
    /** Of all requests of this process. */
    totals: (): RequestTotals => ({ ...totals }),
    countRequest({ listener, method, route, status, outcome, seconds }: RequestLogEntry): void {
      totals.requests += 1
      // A 503 of a probe is an answer: the process starts, or its database is away.
      if (status >= 500 && !PROBE_ROUTES.has(route)) totals.errors += 1
      totals.requestMs += seconds * 1_000
      requests.observe({ listener, method, route, status: String(status) }, seconds)
      const operation = toOperation(method, route)
      if (operation && outcome) operations.inc({ operation, outcome })
    },
    countCredentialCheck(kind: 'object-storage' | 'token', outcome: string): void {
      credentialChecks.inc({ kind, outcome })
    },
    countRun(outcome: string, seconds: number): void {
      deploymentRuns.observe({ outcome }, seconds)
    },
    countSwept(count: number): void {
      swept.inc(count)
    },
    countSweep(): void {
      lastSweep.setToCurrentTime()
    },
    countSync(zone: string, outcome: SyncOutcome): void {
      syncs.inc({ zone, outcome })
    },
    countDriftCheck(zone: string, result: DriftCheckResult): void {
      driftChecks.inc({ zone, outcome: result.kind })
      if (result.kind === 'compared') driftedNames.inc({ zone }, result.driftedCount)
    },
    countProviderCall(operation: 'read' | 'apply', outcome: string, seconds: number): void {
      providerCalls.observe({ operation, outcome }, seconds)
    },
  }
}

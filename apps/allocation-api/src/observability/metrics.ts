import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { failureCauses } from '../reconciler/domain/status.ts'
import { type Answered, verbOf } from './domain/request-log.ts'

/** How far a zone is behind what is desired; times are Unix times in seconds. */
interface ZoneLag {
  readonly zone: string
  readonly oldestPendingSeconds: number
  readonly convergedAt: number | null
  readonly comparedAt: number | null
  /** Names by the cause of their last failure. */
  readonly failing: Readonly<Record<string, number>>
}

export interface MetricsSources {
  /** Live allocations by pool and state. */
  readonly countAllocations: () => Promise<readonly { poolDomain: string; state: string; count: number }[]>
  readonly countDeployments: () => Promise<readonly { status: string; count: number }[]>
  /** Deployments that this process works on, or has in its queue. */
  readonly deploymentsHere: () => number
  readonly zoneLag: () => Promise<readonly ZoneLag[]>
  /** Whether the DNS provider is being left alone after a failure. */
  readonly isProviderHeldBack: () => boolean
  readonly version: string
  readonly nodeVersion: string
  readonly providerKind: string
  /** A source did not answer; its metrics are left out of this scrape. */
  readonly onSourceError: (error: unknown) => void
}

export type Metrics = ReturnType<typeof createMetrics>

export const createMetrics = (sources: MetricsSources) => {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })

  const requests = new Histogram({
    name: 'pdm_http_request_duration_seconds',
    help: 'Requests by address, method, route and status: seconds until the headers of the answer.',
    labelNames: ['listener', 'method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const outcomes = new Counter({
    name: 'pdm_outcomes_total',
    help: 'What each verb came to.',
    labelNames: ['verb', 'outcome'],
    registers,
  })
  const swept = new Counter({
    name: 'pdm_sweeper_deleted_total',
    help: 'Expired reservations deleted by the sweeper of this process.',
    registers,
  })
  const dnsCalls = new Histogram({
    name: 'pdm_dns_operation_duration_seconds',
    help: 'Calls of the DNS provider by operation and outcome.',
    labelNames: ['operation', 'outcome'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  })
  const validations = new Counter({
    name: 'pdm_credential_validations_total',
    help: 'Checks of credentials by kind and outcome; unavailable: the provider said nothing of them.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  new Gauge({
    name: 'pdm_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'node', 'dns_provider'],
    registers,
  }).set({ version: sources.version, node: sources.nodeVersion, dns_provider: sources.providerKind }, 1)

  const allocations = new Gauge({
    name: 'pdm_allocations',
    help: 'Live allocations by pool and state, as the database has them.',
    labelNames: ['pool', 'state'],
    registers,
  })
  const pending = new Gauge({
    name: 'pdm_dns_oldest_pending_seconds',
    help: 'Age of the oldest change of a zone that is not at the provider yet; 0 when there is none.',
    labelNames: ['zone'],
    registers,
  })
  const failing = new Gauge({
    name: 'pdm_dns_failing_names',
    help: "Names of a zone whose last attempt failed, by cause; foreign-record: somebody else's record is in the way.",
    labelNames: ['zone', 'cause'],
    registers,
  })
  const converged = new Gauge({
    name: 'pdm_dns_last_convergence_timestamp_seconds',
    help: 'Unix time at which a zone was last brought to its desired records, by any replica.',
    labelNames: ['zone'],
    registers,
  })

  const compared = new Gauge({
    name: 'pdm_dns_last_comparison_timestamp_seconds',
    help: 'Unix time at which all of a zone was last compared with its desired records, by any replica.',
    labelNames: ['zone'],
    registers,
  })
  const comparisons = new Counter({
    name: 'pdm_dns_comparisons_total',
    help: 'Comparisons of a whole zone by this process, by outcome.',
    labelNames: ['outcome'],
    registers,
  })
  const drifted = new Counter({
    name: 'pdm_dns_drifted_names_total',
    help: 'Names whose records were no longer as this service had written them, found by this process.',
    labelNames: ['zone'],
    registers,
  })
  new Gauge({
    name: 'pdm_dns_provider_held_back',
    help: '1 while this process leaves the DNS provider alone after a failure.',
    registers,
    collect() {
      this.set(sources.isProviderHeldBack() ? 1 : 0)
    },
  })

  const deployments = new Gauge({
    name: 'pdm_deployments',
    help: 'Deployments by status, as the database has them.',
    labelNames: ['status'],
    registers,
  })
  new Gauge({
    name: 'pdm_deployments_here',
    help: 'Deployments under way in this process; the keys of each are in its memory alone.',
    registers,
    collect() {
      this.set(sources.deploymentsHere())
    },
  })
  const deploymentRuns = new Histogram({
    name: 'pdm_deployment_duration_seconds',
    help: 'Work on deployments by outcome: seconds from the turn of one to its end in this process.',
    labelNames: ['outcome'],
    buckets: [1, 5, 15, 60, 180, 300, 600, 900, 1_800, 3_600],
    registers,
  })

  const refresh = async (): Promise<void> => {
    const [counts, zones, deployed] = await Promise.allSettled([
      sources.countAllocations(),
      sources.zoneLag(),
      sources.countDeployments(),
    ])
    for (const gauge of [allocations, pending, failing, converged, compared, deployments]) gauge.reset()
    if (deployed.status === 'rejected') sources.onSourceError(deployed.reason)
    else for (const { status, count } of deployed.value) deployments.set({ status }, count)
    if (counts.status === 'rejected') sources.onSourceError(counts.reason)
    else for (const { poolDomain, state, count } of counts.value) allocations.set({ pool: poolDomain, state }, count)
    if (zones.status === 'rejected') sources.onSourceError(zones.reason)
    else {
      for (const { zone, oldestPendingSeconds, convergedAt, comparedAt, failing: names } of zones.value) {
        pending.set({ zone }, oldestPendingSeconds)
        for (const cause of failureCauses) failing.set({ zone, cause }, names[cause] ?? 0)
        if (convergedAt !== null) converged.set({ zone }, convergedAt)
        if (comparedAt !== null) compared.set({ zone }, comparedAt)
      }
    }
  }

  return {
    contentType: registry.contentType,
    async text(): Promise<string> {
      await refresh()
      return registry.metrics()
    },
    answered({ listener, method, route, status, outcome, seconds }: Answered): void {
      requests.observe({ listener, method, route, status: String(status) }, seconds)
      const verb = verbOf(method, route)
      if (verb && outcome) outcomes.inc({ verb, outcome })
    },
    credentialsValidated(kind: 'object-storage' | 'token', outcome: string): void {
      validations.inc({ kind, outcome })
    },
    deploymentEnded(outcome: string, seconds: number): void {
      deploymentRuns.observe({ outcome }, seconds)
    },
    swept(count: number): void {
      swept.inc(count)
    },
    dnsCompared(
      zone: string,
      outcome: { readonly kind: 'compared'; readonly reopened: number } | { readonly kind: 'unavailable' },
    ): void {
      comparisons.inc({ outcome: outcome.kind })
      if (outcome.kind === 'compared') drifted.inc({ zone }, outcome.reopened)
    },
    dnsCall(operation: 'read' | 'apply', outcome: string, seconds: number): void {
      dnsCalls.observe({ operation, outcome }, seconds)
    },
  }
}

import { DURABILITIES } from '@pool/runtime/database/health'
import { createMetricsRegistry } from '@pool/runtime/service/metrics-registry'
import { Counter, Gauge, Histogram } from '@prometheus-io/client'
import type { MetricsSource, ObservedRequest } from '../http/types.ts'

/** What a scrape reads. */
export interface GaugeSources {
  /** Whether `/healthz` is 200. */
  isReady(): Promise<boolean>
  /** What an acknowledged write has survived; null while the database accepts no writes. */
  durability(): string | null
}

/** The metrics of the witness on Postgres. */
export const createMetrics = () => {
  const registry = createMetricsRegistry()
  const registers = [registry]
  const requests = new Histogram({
    name: 'lease_witness_http_request_duration_seconds',
    help: 'Seconds until the response headers were ready, which includes waits, by method, route and status.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  })
  const operations = new Counter({
    name: 'lease_witness_operations_total',
    help: 'Requests by outcome.',
    labelNames: ['method', 'route', 'outcome'],
    registers,
  })
  // Before the first late renewal, so that `increase` sees the step from 0 to 1.
  operations.inc({ method: 'PUT', route: '/lease/:slot', outcome: 'rejected-expired' }, 0)
  const ready = new Gauge({
    name: 'lease_witness_ready',
    help: '1 if /healthz of this process is 200.',
    registers,
  })
  const durability = new Gauge({
    name: 'lease_witness_database_durability',
    help: '1 for what an acknowledged write has survived: asynchronous and volatile writes can be lost.',
    labelNames: ['mode'],
    registers,
  })
  /** The source of the routes that respond now. */
  const toSource = ({ isReady, durability: readDurability }: GaugeSources): MetricsSource => ({
    contentType: registry.contentType,
    async text() {
      const isReadyNow = await isReady()
      ready.set(Number(isReadyNow))
      durability.reset()
      const current = isReadyNow ? readDurability() : null
      if (current !== null) for (const mode of DURABILITIES) durability.set({ mode }, Number(mode === current))
      return registry.metrics()
    },
  })
  return {
    toSource,
    onRequest({ method, route, outcome, status, seconds }: ObservedRequest): void {
      requests.observe({ method, route, status: String(status) }, seconds)
      operations.inc({ method, route, outcome })
    },
  }
}

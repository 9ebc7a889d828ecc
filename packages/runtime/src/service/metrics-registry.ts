import { collectDefaultMetrics, Registry } from '@prometheus-io/client'

/**
 * Default metrics that have the suffix of another type, which `promtool check metrics` rejects. The first three are sums of
 * other default metrics.
 */
const MISNAMED_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_utilization_histogram',
  'nodejs_eventloop_utilization_summary',
]

/** A registry with the default metrics of a Node process. */
export const createMetricsRegistry = (): Registry => {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  for (const name of MISNAMED_METRICS) registry.removeSingleMetric(name)
  return registry
}

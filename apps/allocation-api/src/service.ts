import { setTimeout as sleep } from 'node:timers/promises'
import { runPeriodically } from '@pool/runtime/service/run-periodically'
import type { WithoutLimit } from '@pool/runtime/service/run-service'
import { requireOwnFolder } from './deployments/terraform/folder-access.ts'
import { reportLimitations } from './doctor/startup.ts'
import type { Log } from './observability/log.ts'
import { createBase } from './parts/base.ts'
import { openDatabase } from './parts/database.ts'
import { createDeployments } from './parts/deployments.ts'
import { openListeners } from './parts/listeners.ts'
import { createNames } from './parts/names.ts'
import { createOperatorView } from './parts/operator-view.ts'
import type { Part } from './parts/part.ts'
import { createZones } from './parts/zones.ts'
import { findConfigWarnings, type ServiceConfig } from './service-config.ts'

/** How long a request can wait for its records after a stop has begun: for less than the listeners leave it open. */
const MAX_WAIT_MS = 6_000

export interface Service {
  /** Where it listens, for the log. */
  readonly address: Readonly<Record<string, unknown>>
  /** Stops gracefully. Resolves when every connection is closed. `withoutLimit` waits for what has limits of its own. */
  stop(withoutLimit: WithoutLimit): Promise<void>
}

/**
 * Composes the service of its parts and starts it. The listeners respond to probes while the service waits for the
 * database. `stop` ends everything in reverse order.
 */
export const startService = async (config: ServiceConfig, log: Log, nodeVersion: string): Promise<Service> => {
  const { dataDir, runner } = config.deployments
  // The container that runs Terraform checks its own.
  if (runner === null) await requireOwnFolder(dataDir)
  const base = await createBase(config, log, nodeVersion)
  const { observer } = base
  const listeners = await openListeners(config, base)
  for (const { variable, detail } of findConfigWarnings(config.env, config)) observer.onConfigWarning(variable, detail)
  const database = await openDatabase(config, base)
  const zones = await createZones(config, base, database)
  const names = createNames(config, base, database, zones)
  const deployments = createDeployments(config, base, database, names)
  const operatorView = createOperatorView(config, base, database, zones, names, deployments)

  base.metrics.addGauges({ ...database.gauges, ...zones.gauges, ...names.gauges, ...deployments.gauges }, error =>
    observer.onError('metrics source unavailable', error),
  )
  listeners.serve({
    ...base.routes,
    ...database.routes,
    ...zones.routes,
    ...names.routes,
    ...deployments.routes,
    ...operatorView.routes,
  })
  const parts: readonly Part[] = [base, database, zones, names, deployments, operatorView]
  const jobs = parts
    .flatMap(part => part.jobs ?? [])
    .map(({ run, intervalMs, failure }) =>
      runPeriodically(run, { intervalMs, onError: error => observer.onError(failure, error) }),
    )
  base.setPhase('ready')
  const startChecks = new AbortController()
  // Everything else works, so the start neither waits nor fails.
  const { provider } = zones
  const { provisioner } = deployments
  void reportLimitations({ config, provider, provisioner, observer, signal: startChecks.signal })

  return {
    address: { ...listeners.ports, dns: zones.address, managedDomains: config.managedDomains },
    async stop(withoutLimit) {
      base.setPhase('draining')
      startChecks.abort()
      // Readiness is off, and load balancers need time to notice.
      await sleep(config.drainMs)
      // Terraform can need minutes to save what it is creating. Until then, requests are answered.
      await withoutLimit(deployments.stop())
      base.endStreams()
      const ending = setTimeout(zones.endWaits, MAX_WAIT_MS)
      // Runs need the database until they end, and the reconciler for their names.
      await Promise.all([deployments.stop(), listeners.stop()])
      clearTimeout(ending)
      // A request that ended in the meantime may have started another run.
      await deployments.stop()
      await Promise.all([...jobs.map(job => job.stop()), zones.stop()])
      for (const part of parts.toReversed()) await part.close?.()
    },
  }
}

import { createHttpsGet } from '../credentials/https-client.ts'
import type { Provisioner } from '../deployments/provisioner.ts'
import type { DnsProvider } from '../dns/provider.ts'
import type { Observer } from '../observability/domain/observer.ts'
import type { ServiceConfig } from '../service-config.ts'
import { findUnreachableStorage } from './storage.ts'
import { checkZones, groupUnusable } from './zones.ts'

/** For one zone, and for one region of the object storage. Nothing waits for it. */
const TIMEOUT_MS = 10_000

export interface StartupChecks {
  readonly config: Pick<
    ServiceConfig,
    'managedDomains' | 'dnsProvider' | 'dns' | 'objectStorage' | 'objectStorageCa' | 'env'
  >
  readonly provider: Pick<DnsProvider, 'checkZone' | 'concurrency'>
  readonly provisioner: Pick<Provisioner, 'preflight' | 'describeExposure' | 'describeLimits'>
  readonly observer: Pick<
    Observer,
    | 'onZonesUnusable'
    | 'onObjectStorageUnreachable'
    | 'onDeploymentsUnavailable'
    | 'onTerraformExposed'
    | 'onModuleLimited'
    | 'onError'
  >
  /** Ends the checks: what they find afterwards may come from the stop. */
  readonly signal: AbortSignal
}

const reportZones = async ({ config, provider, observer, signal }: StartupChecks): Promise<void> => {
  const { dnsProvider, managedDomains, dns } = config
  // The built-in server has every zone. An account that accepts one call at a time belongs to the reconciler.
  if (dnsProvider.kind === 'local' || provider.concurrency === 1 || !dns.writesZones) return
  const checked = await checkZones(provider, { zones: managedDomains, timeoutMs: TIMEOUT_MS, signal })
  if (signal.aborted) return
  for (const { zones, reason, advice } of groupUnusable(checked)) observer.onZonesUnusable(zones, reason, advice)
}

const reportStorage = async ({ config, observer, signal }: StartupChecks): Promise<void> => {
  const { objectStorage, objectStorageCa, env } = config
  // Whether a deployment uses the default is unknown.
  if (!env.OBJECT_STORAGE_DOMAIN?.trim()) return
  const get = createHttpsGet({ deadlineMs: TIMEOUT_MS, extraCa: objectStorageCa })
  const unreachable = await findUnreachableStorage(objectStorage.domain, get)
  if (signal.aborted) return
  for (const reason of unreachable) observer.onObjectStorageUnreachable(reason)
}

const reportDeployments = async ({ provisioner, observer, signal }: StartupChecks): Promise<void> => {
  const missing = await provisioner.preflight(signal)
  if (signal.aborted) return
  if (missing !== null) return observer.onDeploymentsUnavailable(missing)
  const exposure = await provisioner.describeExposure()
  if (exposure !== null && !signal.aborted) observer.onTerraformExposed(exposure)
  const limits = await provisioner.describeLimits()
  if (limits !== null && !signal.aborted) observer.onModuleLimited(limits)
}

/** Reports what the service cannot do as it is configured. It serves everything else meanwhile. Never rejects. */
export const reportLimitations = async (checks: StartupChecks): Promise<void> => {
  const { observer, signal } = checks
  const reports = [reportZones, reportStorage, reportDeployments].map(report =>
    report(checks).catch(error => {
      if (!signal.aborted) observer.onError('checks at the start failed', error)
    }),
  )
  await Promise.all(reports)
}

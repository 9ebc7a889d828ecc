import { randomUUID } from 'node:crypto'
import { objectStorageRegions, type ServiceSettings } from '@pool/contract'
import { untilAborted } from '@pool/runtime/database/time'
import { deleteInBatches } from '../lib/delete-in-batches.ts'
import { createRateLimiter, toRateLimitKey } from '../lib/rate-limiter.ts'
import { createChangeReader } from '../operator/changes.ts'
import { SAMPLE_INTERVAL_S } from '../operator/domain/series.ts'
import { createSamples, type ReplicaSample } from '../operator/samples.ts'
import { createOperatorSessions } from '../operator/sessions.ts'
import { createWitness, noWitness } from '../operator/witness.ts'
import type { ServiceConfig } from '../service-config.ts'
import type { Base } from './base.ts'
import { type Database, RETENTION_INTERVAL_MS } from './database.ts'
import type { Deployments } from './deployments.ts'
import type { Names } from './names.ts'
import { type Job, MAX_LIMITED_CLIENTS, now, sleep } from './part.ts'
import type { Zones } from './zones.ts'

/** Of one request to the lease witness. */
const WITNESS_TIMEOUT_MS = 5_000

const sumValues = (counts: Readonly<Partial<Record<string, number>>>): number =>
  Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0)

const toSettings = (
  config: ServiceConfig,
  version: string,
  { managed, draining }: ReturnType<Database['pools']>,
): ServiceSettings => ({
  version,
  managedDomains: [...managed],
  drainingDomains: [...draining],
  dnsProvider: config.dnsProvider.kind,
  writesZones: config.dns.writesZones,
  acceptsLoopback: config.dnsProvider.kind === 'local',
  recordNames: [...config.dns.recordTemplate.names],
  recordTtlSeconds: config.dns.recordTemplate.ttl,
  reservationTtlSeconds: config.reservation.ttlMs / 1_000,
  coolOffSeconds: config.nameCoolOffMs / 1_000,
  bucketPrefix: config.objectStorage.platformPrefix,
  objectStorage: {
    provider: config.objectStorage.provider,
    domain: config.objectStorage.domain,
    regions: [...objectStorageRegions],
  },
  tokenProviders: [...config.credentials.tokenUrls.keys()],
  deploymentProviders: [...config.deployments.knownProviders],
  requiresDomainProof: config.domainProof.isRequired,
  hasWitness: config.witness !== null,
})

/** What the console shows beside names, zones and deployments: sessions, settings, samples, changes and leases. */
export const createOperatorView = (
  config: ServiceConfig,
  { metrics, version, nodeVersion }: Base,
  { sql, readSql, pools, timeoutMs, isReady }: Database,
  { reconciler }: Zones,
  { countByState }: Names,
  { deployments }: Deployments,
) => {
  const sessions = createOperatorSessions(sql, { timeoutMs, tokens: config.operator?.tokens ?? [] })
  const { attemptsPerMinute } = config.credentials
  const limitFailures = createRateLimiter({ perMinute: attemptsPerMinute, maxCallers: MAX_LIMITED_CLIENTS })
  const samples = createSamples(sql, { replica: { id: randomUUID(), version, nodeVersion }, timeoutMs })

  const readSample = async (): Promise<ReplicaSample> => {
    const zones = await reconciler.listZoneStates()
    return {
      ...metrics.totals(),
      eventLoopMs: performance.eventLoopUtilization().active,
      isReady: await isReady(),
      circuitOpen: reconciler.isCircuitOpen(),
      activeRuns: deployments.activeCount(),
      pendingNames: zones.reduce((sum, zone) => sum + zone.pendingNames, 0),
      failingNames: zones.reduce((sum, zone) => sum + sumValues(zone.failing), 0),
    }
  }
  const storeSamples = async (signal: AbortSignal) => {
    const storing = readSample().then(samples.add)
    const counting = storing.then(() => samples.addPools(countByState))
    // Nothing waits for a sample. A count of millions of rows takes seconds.
    await untilAborted(counting, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }
  const deleteOldRows = async (signal: AbortSignal) => {
    await deleteInBatches({ now, sleep, deleteBatch: samples.deleteOld }, signal)
    await deleteInBatches({ now, sleep, deleteBatch: sessions.deleteEnded }, signal)
  }
  const jobs: readonly Job[] = [
    { failure: 'storing a sample failed', intervalMs: SAMPLE_INTERVAL_S * 1_000, run: storeSamples },
    { failure: 'deletion of old rows failed', intervalMs: RETENTION_INTERVAL_MS, run: deleteOldRows },
  ]

  return {
    routes: {
      sessions: {
        ...sessions,
        limitFailures: (address: string | null) => limitFailures(toRateLimitKey(address), now()),
      },
      operatorView: {
        settings: () => toSettings(config, version, pools()),
        pools,
        reconciler,
        readOverview: samples.readOverview,
        readChanges: createChangeReader(readSql, { timeoutMs, now }),
        witness: config.witness ? createWitness({ ...config.witness, timeoutMs: WITNESS_TIMEOUT_MS }) : noWitness,
        sleep,
      },
    },
    jobs,
  }
}

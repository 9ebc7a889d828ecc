import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabaseClient } from '@pool/database/client'
import { isDatabaseUnavailable } from '@pool/database/errors'
import { createHealthCheck } from '@pool/database/health-check'
import { waitForDatabase } from '@pool/database/wait-for-database'
import { type CoveredPool, createPoolRegistry } from './allocation/pool-registry.ts'
import { createAllocationReader } from './allocation/reader.ts'
import { createAllocationRepository } from './allocation/repository.ts'
import { createAllocationService } from './allocation/service.ts'
import { type Config, readConfig } from './config/config.ts'
import { type ConfigIssue, ConfigIssuesError, type Env, EnvReader } from './config/env.ts'
import { readCaFile } from './credentials/ca-file.ts'
import { createCredentialService, toRateLimitKey } from './credentials/service.ts'
import { applySchema } from './database/migrate.ts'
import { createBucketClaims } from './deployments/bucket-claims.ts'
import { parseDeploymentChange, parseDeploymentSpec, type SpecRules } from './deployments/domain/spec.ts'
import { createDomainProof } from './deployments/domain-proof.ts'
import { DeploymentService } from './deployments/service.ts'
import { createTerraform } from './deployments/terraform/terraform.ts'
import { createTxtResolver } from './deployments/txt-resolver.ts'
import { type ChosenProvider, readProvider } from './dns/registry.ts'
import { type AppDependencies, type AppOptions, createApp } from './http/app.ts'
import { openApiDocument } from './http/routes/docs.ts'
import { type HttpServer, listen } from './http/server.ts'
import { createEventStreams } from './http/sse.ts'
import { createIdempotency } from './idempotency/idempotency.ts'
import { createRateLimiter } from './lib/rate-limiter.ts'
import { runPeriodically } from './lib/run-periodically.ts'
import { toBucketName } from './naming/naming.ts'
import { reservedLabels } from './naming/reserved-labels.ts'
import type { Logger } from './observability/log.ts'
import { createMetrics } from './observability/metrics.ts'
import { createObserver } from './observability/observer.ts'
import { createReconciler } from './reconciler/reconciler.ts'
import { createZoneLocks } from './reconciler/zone-lock.ts'

export interface ServiceConfig extends Config {
  readonly dnsProvider: ChosenProvider
  /** PEM of additional authorities for the certificate of the object storage; null: the system's only. */
  readonly objectStorageCa: string | null
  /** What Terraform may inherit. */
  readonly env: Env
}

export interface Service {
  /** Where it listens, for the log. */
  readonly address: Readonly<Record<string, unknown>>
  /** Stops gracefully. Resolves when every connection is closed. */
  stop(): Promise<void>
}

const VERSION = '1.0.0'
/** How long the service waits for the database before the start fails. */
const MAX_DATABASE_WAIT_MS = 30_000
/** Below the contract's 2 s, so that there is time for the response. */
const HEALTH_CHECK_TIMEOUT_MS = 1_500
/** Counting every row takes time in proportion to their number. No request waits for it. */
const COUNT_TIMEOUT_MS = 60_000
/** How long a process knows nothing of a pool that another replica has added. */
const POOL_REFRESH_MS = 5_000
const PROVIDER_TIMEOUT_MS = 10_000
/** Below the contract's 8 s for one credential check, so that there is time for the response. */
const CREDENTIAL_CHECK_TIMEOUT_MS = 7_900
/** How long a sync waits for the lock of a zone before it looks again whether changes are due. */
const ZONE_LOCK_WAIT_MS = 10_000
/** After this idle time Postgres ends the transaction that holds a zone lock. Longer than one provider call. */
const ZONE_LOCK_IDLE_MS = 30_000
/** How often each replica looks for changes that a crash, an outage or a pause left due. */
const SYNC_INTERVAL_MS = 1_000
/** How long after its last renewal the lease of a deployment's run expires. */
const RUN_LEASE_MS = 30_000
/** How often a replica renews its leases and claims expired ones. */
const LEASE_RENEWAL_MS = 2_000
/** From SIGINT to SIGKILL of Terraform. Shorter than a graceful stop. */
const TERRAFORM_GRACE_MS = 7_000
/** How long a request waits for the TXT record that proves a domain. */
const TXT_LOOKUP_TIMEOUT_MS = 5_000
const REQUEST_GRACE_MS = 8_000
/** Of one client address, in one process. */
const CHALLENGES_PER_MINUTE = 60
const MAX_CHALLENGE_CLIENTS = 10_000

const toConfigIssue =
  (env: Env) =>
  ({ pool, name }: CoveredPool): ConfigIssue => ({
    variable: env.DNSPROVIDER_MANAGED_DOMAINS?.trim() ? 'DNSPROVIDER_MANAGED_DOMAINS' : 'DNSPROVIDER_DOMAIN',
    detail: `lists ${pool}, but ${name} is granted, and its holder would control that pool; release the name first`,
  })

/** The whole configuration, or every error in it. */
export const readServiceConfig = (env: Env): { config: ServiceConfig } | { issues: readonly ConfigIssue[] } => {
  const variable = 'OBJECT_STORAGE_CA_FILE'
  const service = readConfig(env)
  const dns = readProvider(env)
  const authorities = readCaFile(variable, new EnvReader(env).text(variable) ?? null)
  if ('config' in service && 'provider' in dns && 'ca' in authorities) {
    return { config: { ...service.config, dnsProvider: dns.provider, objectStorageCa: authorities.ca, env } }
  }
  return { issues: [service, dns, authorities].flatMap(result => ('issues' in result ? result.issues : [])) }
}

/**
 * Composes the service and starts it: database, DNS, allocation, deployments, listeners, background jobs. `stop` ends
 * them in reverse order.
 */
export const startService = async (config: ServiceConfig, log: Logger, nodeVersion: string): Promise<Service> => {
  const { managedDomains, reservation, objectStorage, dnsProvider } = config
  const { timeoutMs } = config.database
  // The built-in DNS server answers on this machine only.
  const acceptsLoopback = dnsProvider.kind === 'local'
  let phase: 'starting' | 'ready' | 'draining' = 'starting'
  const stopping = new AbortController()
  const metrics = createMetrics({ version: VERSION, nodeVersion, providerKind: dnsProvider.kind })
  const observer = createObserver(log, metrics)

  const openPool = (applicationName: string, maxConnections: number, maxStatementMs = timeoutMs) =>
    createDatabaseClient(config.database.url, { applicationName, maxConnections, maxStatementMs })
  const sql = openPool('allocation-api', config.database.poolSize)
  const healthCheckSql = openPool('allocation-api probe', 1)
  const countSql = openPool('allocation-api count', 1, COUNT_TIMEOUT_MS)
  const zoneLocks = createZoneLocks(config.database.url, {
    waitMs: ZONE_LOCK_WAIT_MS,
    idleTimeoutMs: ZONE_LOCK_IDLE_MS,
    timeoutMs,
  })
  await waitForDatabase(() => applySchema(sql), {
    timeoutMs: MAX_DATABASE_WAIT_MS,
    onRetry: error => observer.onDatabaseWait(error),
  })

  const repository = createAllocationRepository(sql, { reservation, coolOffMs: config.nameCoolOffMs, timeoutMs })
  const poolRegistry = createPoolRegistry(sql, {
    managedDomains,
    timeoutMs,
  })
  const { pools } = poolRegistry
  const covered = await poolRegistry.start()
  if (covered.length > 0) throw new ConfigIssuesError(covered.map(toConfigIssue(config.env)))

  const { provider, info } = await dnsProvider.start({
    listZones: () => [...pools().managed, ...pools().draining],
    sql,
    onError: error => observer.onError('dns provider error', error),
  })
  const recordTemplate = { names: config.dns.recordNames, ttl: config.dns.recordTtlSeconds }
  const reconciler = createReconciler({
    provider,
    sql,
    zoneLocks,
    pools,
    recordTemplate,
    statementTimeoutMs: timeoutMs,
    providerTimeoutMs: PROVIDER_TIMEOUT_MS,
    commitWaitMs: config.dns.commitWaitMs,
    driftIntervalMs: config.dns.driftIntervalMs,
    now: () => performance.now(),
    random: Math.random,
    observer,
  })

  const credentials = createCredentialService({
    config,
    objectStorageCa: config.objectStorageCa,
    deadlineMs: CREDENTIAL_CHECK_TIMEOUT_MS,
    now: () => performance.now(),
    wallClock: Date.now,
    onOutcome: observer.onCredentialCheck,
  })

  const idempotency = createIdempotency(sql, { timeoutMs, keyTtlMs: config.idempotencyTtlMs })
  const allocations = createAllocationService({
    repository,
    reader: createAllocationReader(sql, { timeoutMs }),
    countByState: createAllocationReader(countSql, { timeoutMs: COUNT_TIMEOUT_MS }).countByState,
    idempotency,
    waitUntilApplied: reconciler.waitUntilApplied,
    pools,
    acceptsLoopback,
    recordTemplate,
    bucketPrefix: objectStorage.platformPrefix,
    statementTimeoutMs: timeoutMs,
    now: () => performance.now(),
    onSwept: observer.onSweep,
  })

  const { isRequired, resolvers } = config.domainProof
  const domainProof = createDomainProof({
    sql,
    isRequired,
    lookUpTxt: createTxtResolver({ servers: resolvers, timeoutMs: TXT_LOOKUP_TIMEOUT_MS }),
    timeoutMs,
  })
  const limitChallenges = createRateLimiter({ perMinute: CHALLENGES_PER_MINUTE, maxCallers: MAX_CHALLENGE_CLIENTS })
  const provisioner = createTerraform({ ...config.deployments, env: config.env, graceMs: TERRAFORM_GRACE_MS })
  const specRules = (): SpecRules => ({
    storageProvider: objectStorage.provider,
    knownProviders: config.deployments.knownProviders,
    toBucketName: fqdn => toBucketName(objectStorage.platformPrefix, fqdn),
    pools: pools(),
  })
  const deployments = new DeploymentService({
    sql,
    domainProof,
    idempotency,
    allocations,
    validateKeys: credentials.validateKeys,
    parseSpec: body => parseDeploymentSpec(body, specRules()),
    parseChange: (body, deployment) => parseDeploymentChange(body, deployment, specRules()),
    provisioner,
    storage: objectStorage,
    maxConcurrentRuns: config.deployments.concurrency,
    statementTimeoutMs: timeoutMs,
    leaseMs: RUN_LEASE_MS,
    reservationTtlMs: reservation.ttlMs,
    nameCoolOffMs: config.nameCoolOffMs,
    now: () => performance.now(),
    clock: () => new Date(),
    newId: randomUUID,
    isUnavailable: isDatabaseUnavailable,
    observer: {
      onRunEnded: observer.onRunEnded,
      onError: (deployment, error) => observer.onError('deployment failed unexpectedly', error, { deployment }),
    },
  })

  metrics.addGauges(
    {
      countAllocations: allocations.count,
      countDeployments: () => deployments.countByStatus(),
      activeDeployments: () => deployments.activeCount,
      zoneLag: reconciler.listZoneLag,
      isCircuitOpen: reconciler.isCircuitOpen,
      drainingPools: () => pools().draining,
    },
    error => observer.onError('metrics source unavailable', error),
  )

  const app: AppDependencies = {
    allocations,
    acceptsLoopback,
    reconciler,
    deployments,
    buckets: createBucketClaims(sql, { timeoutMs }),
    domains: {
      createChallenge: domainProof.createChallenge,
      limitChallenges: address => limitChallenges(toRateLimitKey(address), performance.now()),
    },
    credentials,
    streams: createEventStreams({ stopping: stopping.signal }),
    providers: { objectStorage: objectStorage.provider, token: [...config.credentials.tokenUrls.keys()] },
    health: {
      isDatabaseUp: createHealthCheck(healthCheckSql, HEALTH_CHECK_TIMEOUT_MS),
      phase: () => phase,
      pools,
    },
    metrics,
    browsers: config.browsers,
    reservedLabels,
    openApi: openApiDocument(),
    observer,
    isUnavailable: isDatabaseUnavailable,
  }
  const listeners: HttpServer[] = []
  const listenOn = async (port: number, variable: string, options: AppOptions): Promise<number> => {
    const listener = await listen(createApp(app, options), port).catch((error: NodeJS.ErrnoException) => {
      throw new Error(`${variable}: cannot listen on port ${port} (${error.code ?? error.name})`)
    })
    listeners.push(listener)
    return listener.port
  }
  const port = await listenOn(config.port, 'PORT', {
    listener: 'in-cluster',
    tokens: null,
    exposeLists: !config.operatorOnlyList,
  })
  const operatorPort =
    config.operator &&
    (await listenOn(config.operator.port, 'PDM_OPERATOR_PORT', {
      listener: 'operator',
      tokens: config.operator.tokens,
      exposeLists: true,
    }))

  const jobs = [
    runPeriodically(allocations.sweep, {
      intervalMs: config.sweeperIntervalMs,
      onError: error => observer.onError('sweep failed', error),
    }),
    runPeriodically(poolRegistry.refresh, {
      intervalMs: POOL_REFRESH_MS,
      onError: error => observer.onError('pool refresh failed', error),
    }),
    runPeriodically(() => deployments.tick(), {
      intervalMs: LEASE_RENEWAL_MS,
      onError: error => observer.onError('deployment lease renewal failed', error),
    }),
    runPeriodically(reconciler.syncDueZones, {
      intervalMs: SYNC_INTERVAL_MS,
      onError: error => observer.onError('search for due zones failed', error),
    }),
  ]
  phase = 'ready'
  // Everything else works without it, so the start neither waits nor fails.
  void provisioner.preflight().then(
    missing => {
      if (missing !== null) observer.onDeploymentsUnavailable(missing)
    },
    error => observer.onError('deployment preflight failed', error),
  )

  return {
    address: { port, operatorPort, dns: { kind: dnsProvider.kind, ...info }, managedDomains },
    async stop() {
      phase = 'draining'
      // Readiness is off, and load balancers need time to notice.
      await sleep(config.drainMs)
      stopping.abort()
      // Runs need the database until they end, and the reconciler for their names.
      await Promise.all([deployments.stop(), ...listeners.map(listener => listener.close(REQUEST_GRACE_MS))])
      // A request that ended in the meantime may have started another run.
      await deployments.stop()
      await Promise.all([...jobs.map(job => job.stop()), reconciler.stop()])
      await provider.close()
      await Promise.all([zoneLocks.close(), ...[sql, healthCheckSql, countSql].map(pool => pool.end({ timeout: 1 }))])
    },
  }
}

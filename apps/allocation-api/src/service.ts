import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { objectStorageRegions, type ServiceSettings } from '@pool/contract'
import { createDatabaseClient, type DatabaseClientOptions } from '@pool/runtime/database/client'
import { countConnections } from '@pool/runtime/database/connections'
import { createWriteCheck, createWriteProbe, DURABILITIES } from '@pool/runtime/database/durability'
import { isDatabaseReadOnly, isDatabaseUnavailable, NotWrittenError } from '@pool/runtime/database/errors'
import { createHealthCheck } from '@pool/runtime/database/health-check'
import { prepareDatabase } from '@pool/runtime/database/prepare-database'
import { createSchemaCheck } from '@pool/runtime/database/schema-check'
import { createServerClock } from '@pool/runtime/database/server-clock'
import { createSessions } from '@pool/runtime/database/sessions'
import { waitForDatabase } from '@pool/runtime/database/wait-for-database'
import { untilAborted } from '@pool/runtime/database/with-timeout'
import { createWriter } from '@pool/runtime/database/writer'
import { type ConfigIssue, ConfigIssuesError, type Env } from '@pool/runtime/service/env'
import { type App, type HttpServer, listen } from '@pool/runtime/service/http-server'
import { toListenError } from '@pool/runtime/service/listen-error'
import { createMetricsRegistry } from '@pool/runtime/service/metrics-registry'
import { runPeriodically } from '@pool/runtime/service/run-periodically'
import { createNameReader } from './allocation/name-details.ts'
import { createNameSearch } from './allocation/name-search.ts'
import { type CoveredPool, createPoolRegistry } from './allocation/pool-registry.ts'
import { createAllocationReader } from './allocation/reader.ts'
import { createAllocationRepository } from './allocation/repository.ts'
import { createAllocationService } from './allocation/service.ts'
import { toPoolSizes } from './config/config.ts'
import { createCredentialService, toRateLimitKey } from './credentials/service.ts'
import { createRetention } from './database/retention.ts'
import { readSchema, toExportVersion } from './database/schema.ts'
import { createBucketClaims } from './deployments/bucket-claims.ts'
import { parseDeploymentChange, parseDeploymentSpec, type SpecRules } from './deployments/domain/spec.ts'
import { createDomainProof } from './deployments/domain-proof.ts'
import { createDeploymentService } from './deployments/service.ts'
import { createTerraform } from './deployments/terraform/terraform.ts'
import { createTxtResolver } from './deployments/txt-resolver.ts'
import { reportLimitations } from './doctor/startup.ts'
import { type AppDependencies, type AppOptions, createApp } from './http/app.ts'
import { createClientAddress } from './http/client-address.ts'
import { createStartingApp } from './http/starting-app.ts'
import { createStreamLimiter } from './http/streams.ts'
import { createIdempotency } from './idempotency/idempotency.ts'
import { deleteInBatches } from './lib/delete-in-batches.ts'
import { readFreeBytes } from './lib/free-space.ts'
import { createRateLimiter } from './lib/rate-limiter.ts'
import { toBucketName } from './naming/naming.ts'
import { reservedLabels } from './naming/reserved-labels.ts'
import { traceStatements } from './observability/domain/tracer.ts'
import type { Log } from './observability/log.ts'
import { createMetrics } from './observability/metrics.ts'
import { createObserver } from './observability/observer.ts'
import { createChangeReader } from './operator/changes.ts'
import { SAMPLE_INTERVAL_S } from './operator/domain/series.ts'
import { createSamples, type ReplicaSample } from './operator/samples.ts'
import { createOperatorSessions } from './operator/sessions.ts'
import { createWitness, noWitness } from './operator/witness.ts'
import { FAILURE_CAUSES } from './reconciler/domain/status.ts'
import { createReconciler } from './reconciler/reconciler.ts'
import { createZoneLocks } from './reconciler/zone-lock.ts'
import { createZoneWritesRepository } from './reconciler/zone-writes.ts'
import { findConfigWarnings, type ServiceConfig } from './service-config.ts'
import { createTransfer } from './transfer/transfer.ts'

export interface Service {
  /** Where it listens, for the log. */
  readonly address: Readonly<Record<string, unknown>>
  /** Stops gracefully. Resolves when every connection is closed. */
  stop(): Promise<void>
}

const VERSION = '1.0.0'
/** The console's build: beside the bundle of the service, or in the app of the console for the sources. */
const CONSOLE_FOLDER = join(
  import.meta.dirname,
  import.meta.filename.endsWith('.ts') ? '../../console/dist' : 'console',
)
const IDEMPOTENCY_TTL_MS = 24 * 3_600_000
const URL_VARIABLE = 'PDM_DATABASE_URL'
/** Below the contract's 2 s, so that there is time for the response. */
const HEALTH_CHECK_TIMEOUT_MS = 1_500
/** Far below the 5 s in which the service is ready after the database accepts writes. */
const WRITE_CHECK_INTERVAL_MS = 1_000
/** Counting every row takes time in proportion to their number. No request waits for it. */
const COUNT_TIMEOUT_MS = 60_000
/** How long a replica stays ready after a migration that requires a newer build. */
const SCHEMA_CHECK_INTERVAL_MS = 5_000
/** How long a process knows nothing of a pool that another replica has added. */
const POOL_REFRESH_MS = 5_000
/** An export or import whose client sends and reads nothing ends after this time. */
const TRANSFER_IDLE_MS = 90_000
/** Retention times are a day or longer, so nothing has to be deleted at once. */
const RETENTION_INTERVAL_MS = 600_000
const WAITING_IDLE_S = 30
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
/** Of one request to the lease witness. */
const WITNESS_TIMEOUT_MS = 5_000
/** Of one client address, in one process. */
const CHALLENGES_PER_MINUTE = 60
const MAX_CHALLENGE_CLIENTS = 10_000

const sumValues = (counts: Readonly<Partial<Record<string, number>>>): number =>
  Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0)

/** Resolves after `ms`, or when the signal aborts. */
const waitFor = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, undefined, { signal }).catch(() => {})

const toConfigIssue =
  (env: Env) =>
  ({ pool, name }: CoveredPool): ConfigIssue => ({
    variable: env.DNSPROVIDER_MANAGED_DOMAINS?.trim() ? 'DNSPROVIDER_MANAGED_DOMAINS' : 'DNSPROVIDER_DOMAIN',
    detail: `lists ${pool}, but ${name} is granted, and its holder would control that pool; release the name first`,
  })

const toProviderIssue =
  (kind: string) =>
  ({ zone, providerKind }: { zone: string; providerKind: string }): ConfigIssue => ({
    variable: 'DNSPROVIDER_KIND',
    detail: `is ${kind}, but ${zone} was published with ${providerKind}; set it to ${providerKind}, or set PDM_DNS_PROVIDER_MOVE=true to publish every name again with ${kind}`,
  })

const toListeners = ({ operator, operatorOnlyList }: ServiceConfig) => ({
  inCluster: { listener: 'in-cluster', tokens: null, exposeLists: !operatorOnlyList } satisfies AppOptions,
  operator: operator && ({ listener: 'operator', tokens: operator.tokens, exposeLists: true } satisfies AppOptions),
})

/**
 * Composes the service and starts it: listeners, database, DNS, allocation, deployments, background jobs. The listeners
 * respond to probes while the service waits for the database. `stop` ends everything in reverse order.
 */
export const startService = async (config: ServiceConfig, log: Log, nodeVersion: string): Promise<Service> => {
  const { managedDomains, reservation, objectStorage, dnsProvider } = config
  const { timeoutMs } = config.database
  // The built-in DNS server answers on this machine only.
  const acceptsLoopback = dnsProvider.kind === 'local'
  let phase: 'starting' | 'ready' | 'draining' = 'starting'
  const stopping = new AbortController()
  const metrics = createMetrics(createMetricsRegistry(), {
    version: VERSION,
    nodeVersion,
    providerKind: dnsProvider.kind,
  })
  const { tracing: settings } = config
  // The import costs start time and memory.
  const tracing = settings && (await import('./observability/tracing.ts')).startTracing(settings, VERSION)
  const tracer = tracing?.tracer ?? null
  const observer = createObserver(log, metrics, { now: () => performance.now(), isDatabaseUnavailable })

  const clientAddress = createClientAddress(config.trustedProxies)
  const consoleFolder = config.consoleFolder ?? CONSOLE_FOLDER
  const { inCluster, operator } = toListeners(config)
  const listenOn = async (port: number, variable: string, app: App): Promise<HttpServer> => {
    const listening = { malformedRequestCode: 'invalid-format', address: config.listenAddress }
    return listen(app, port, listening).catch((error: NodeJS.ErrnoException) => {
      throw toListenError(error, { variable, port, addressVariable: 'PDM_LISTEN_ADDRESS' })
    })
  }
  const toStartingApp = (options: AppOptions) =>
    createStartingApp({ managedDomains, clientAddress, metrics, observer, consoleFolder }, options)
  const inClusterServer = await listenOn(config.port, 'PORT', toStartingApp(inCluster))
  const operatorServer =
    config.operator && operator && (await listenOn(config.operator.port, 'PDM_OPERATOR_PORT', toStartingApp(operator)))
  const ports = { port: inClusterServer.port, operatorPort: operatorServer?.port ?? null }
  log.info(ports, 'listening')
  for (const { variable, detail } of findConfigWarnings(config.env, config)) observer.onConfigWarning(variable, detail)

  const sessions = createSessions(() => performance.now())
  const openPool = (
    applicationName: string,
    maxConnections: number,
    { maxStatementMs = timeoutMs, ...options }: Partial<DatabaseClientOptions> = {},
  ) =>
    createDatabaseClient(config.database.url, { applicationName, maxConnections, maxStatementMs, sessions, ...options })
  const sizes = toPoolSizes(config.database.poolSize)
  const writeSql = openPool('allocation-api write', sizes.write)
  const readSql = openPool('allocation-api read', sizes.read)
  const slowSql = openPool('allocation-api wait', sizes.waiting, {
    pipelines: false,
    idleTimeoutS: WAITING_IDLE_S,
  })
  const sql = openPool('allocation-api', sizes.background, { pipelines: false })
  const healthCheckSql = openPool('allocation-api probe', sizes.probe)
  const countSql = openPool('allocation-api count', sizes.count, { maxStatementMs: COUNT_TIMEOUT_MS })
  const lockLimits = { waitMs: ZONE_LOCK_WAIT_MS, idleTimeoutMs: ZONE_LOCK_IDLE_MS, timeoutMs }
  const zoneLocks = createZoneLocks(config.database.url, lockLimits, sessions)
  const writer = createWriter({
    fast: writeSql,
    slow: slowSql,
    clock: createServerClock(readSql, { timeoutMs }),
    timeoutMs,
  })
  const repository = traceStatements(
    tracer,
    'allocation',
    createAllocationRepository(writer, { reservation, coolOffMs: config.nameCoolOffMs }),
  )
  const poolRegistry = createPoolRegistry(sql, {
    managedDomains,
    timeoutMs,
  })
  const { pools } = poolRegistry
  const writeCheck = createWriteCheck({
    probe: createWriteProbe(healthCheckSql, 'write_probes', Math.random),
    sessions,
    onWeak: observer.onWeakDurability,
  })
  const acceptsWrites = createHealthCheck(writeCheck.check, {
    timeoutMs: HEALTH_CHECK_TIMEOUT_MS,
    keepMs: WRITE_CHECK_INTERVAL_MS,
    now: () => performance.now(),
  })
  let covered: readonly CoveredPool[] = []
  const schema = await readSchema()
  const schemaCheck = createSchemaCheck(sql, schema, observer.onSchemaMisfit)
  const acceptsRequests = async () => schemaCheck.fits() && (await acceptsWrites())
  const clients = [sql, writeSql, readSql, slowSql, healthCheckSql, countSql]
  let remedy = ''
  const startDatabase = async () => {
    remedy = await prepareDatabase({
      url: config.database.url,
      urlVariable: URL_VARIABLE,
      clients,
      probe: healthCheckSql,
      openPool: (name, maxConnections, options) => openPool(`allocation-api ${name}`, maxConnections, options),
      applicationName: 'allocation-api settings',
      timeoutMs,
      schema,
      onMigration: { onApplied: observer.onMigrated, onLocked: observer.onMigrationLocked },
    })
    covered = await poolRegistry.start()
    await writeCheck.check()
  }
  await waitForDatabase(startDatabase, {
    usesTls: config.database.usesTls,
    urlVariable: URL_VARIABLE,
    onWait: ({ reason, waitedMs }) => observer.onDatabaseWait(reason, waitedMs),
  })
  if (remedy !== '') observer.onMissingSessionSettings(remedy)
  if (covered.length > 0) throw new ConfigIssuesError(covered.map(toConfigIssue(config.env)))

  const zoneWrites = createZoneWritesRepository(sql, { timeoutMs })
  const { managed, draining } = pools()
  const otherProviders = await zoneWrites.listOtherProviders(managed, dnsProvider.kind)
  if (otherProviders.length > 0) {
    if (!config.dns.movesProvider) throw new ConfigIssuesError(otherProviders.map(toProviderIssue(dnsProvider.kind)))
    const names = await zoneWrites.moveTo(dnsProvider.kind, [...managed, ...draining])
    observer.onProviderMove(
      otherProviders.map(({ zone }) => zone),
      names,
    )
  }

  const { provider, info } = await dnsProvider.start({
    listZones: () => [...pools().managed, ...pools().draining],
    sql,
    onError: error => observer.onError('dns provider error', error),
  })
  const recordTemplate = { names: config.dns.recordNames, ttl: config.dns.recordTtlSeconds }
  const reconciler = createReconciler({
    provider,
    providerKind: dnsProvider.kind,
    writesZones: config.dns.writesZones,
    sql,
    withLock: zoneLocks.withLock,
    pools,
    recordTemplate,
    statementTimeoutMs: timeoutMs,
    providerTimeoutMs: PROVIDER_TIMEOUT_MS,
    commitWaitMs: config.dns.commitWaitMs,
    driftIntervalMs: config.dns.driftIntervalMs,
    now: () => performance.now(),
    random: Math.random,
    observer,
    tracer,
  })

  const credentials = createCredentialService({
    config,
    objectStorageCa: config.objectStorageCa,
    deadlineMs: CREDENTIAL_CHECK_TIMEOUT_MS,
    now: () => performance.now(),
    wallClock: Date.now,
    onOutcome: observer.onCredentialCheck,
  })

  const idempotency = createIdempotency(readSql, { timeoutMs, keyTtlMs: IDEMPOTENCY_TTL_MS })
  const { countByState } = createAllocationReader(countSql, { timeoutMs: COUNT_TIMEOUT_MS })
  const allocations = createAllocationService({
    repository,
    reader: traceStatements(tracer, 'reader', createAllocationReader(readSql, { timeoutMs })),
    countByState,
    idempotency,
    waitUntilApplied: reconciler.waitUntilApplied,
    pools,
    acceptsLoopback,
    recordTemplate,
    bucketPrefix: objectStorage.platformPrefix,
    statementTimeoutMs: timeoutMs,
    now: () => performance.now(),
    onSwept: observer.onSwept,
  })

  const deleteOldRows = createRetention(sql, {
    ...config.retention,
    timeoutMs,
    now: () => performance.now(),
    sleep: waitFor,
    onDeleted: observer.onOldRowsDeleted,
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
  const deployments = createDeploymentService({
    sql,
    readSql,
    writer,
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

  const operatorSessions = createOperatorSessions(sql, { timeoutMs, tokens: config.operator?.tokens ?? [] })
  const limitSessions = createRateLimiter({
    perMinute: config.credentials.attemptsPerMinute,
    maxCallers: MAX_CHALLENGE_CLIENTS,
  })
  const samples = createSamples(sql, { replica: { id: randomUUID(), version: VERSION, nodeVersion }, timeoutMs })
  const readSettings = (): ServiceSettings => ({
    version: VERSION,
    managedDomains: [...pools().managed],
    drainingDomains: [...pools().draining],
    dnsProvider: dnsProvider.kind,
    writesZones: config.dns.writesZones,
    acceptsLoopback,
    recordNames: [...recordTemplate.names],
    recordTtlSeconds: recordTemplate.ttl,
    reservationTtlSeconds: reservation.ttlMs / 1_000,
    coolOffSeconds: config.nameCoolOffMs / 1_000,
    bucketPrefix: objectStorage.platformPrefix,
    objectStorage: {
      provider: objectStorage.provider,
      domain: objectStorage.domain,
      regions: [...objectStorageRegions],
    },
    tokenProviders: [...config.credentials.tokenUrls.keys()],
    deploymentProviders: [...config.deployments.knownProviders],
    requiresDomainProof: config.domainProof.isRequired,
    hasWitness: config.witness !== null,
  })

  metrics.addGauges(
    {
      countAllocations: allocations.count,
      countDeployments: () => deployments.countByStatus(),
      activeDeployments: deployments.activeCount,
      zoneStates: reconciler.listZoneStates,
      failureCauses: FAILURE_CAUSES,
      isCircuitOpen: reconciler.isCircuitOpen,
      drainingPools: () => pools().draining,
      durability: async () => ((await acceptsWrites()) ? writeCheck.durability() : null),
      durabilities: DURABILITIES,
      isReady: async () => phase === 'ready' && (await acceptsRequests()),
      acceptsWrites,
      countConnections: () => countConnections(healthCheckSql, HEALTH_CHECK_TIMEOUT_MS),
      freeBytes: () => readFreeBytes(config.deployments.dataDir).catch(() => null),
      managedPools: () => managed,
    },
    error => observer.onError('metrics source unavailable', error),
  )

  const readName = createNameReader(readSql, { timeoutMs })
  const app: AppDependencies = {
    allocations,
    acceptsLoopback,
    reconciler,
    deployments,
    buckets: createBucketClaims(sql, { timeoutMs }),
    domains: {
      createChallenge: domainProof.createChallenge,
      check: (domain, key) => deployments.checkDomain(domain, key),
      limitChallenges: address => limitChallenges(toRateLimitKey(address), performance.now()),
    },
    credentials,
    transfer: createTransfer({
      connect: () => openPool('allocation-api transfer', 1, { maxStatementMs: COUNT_TIMEOUT_MS, expires: false }),
      schemaVersion: toExportVersion(schema),
      idleTimeoutMs: TRANSFER_IDLE_MS,
      pools,
      recordTemplate,
    }),
    sessions: {
      ...operatorSessions,
      limitAttempts: address => limitSessions(toRateLimitKey(address), performance.now()),
    },
    names: {
      search: createNameSearch(readSql, { timeoutMs, listPools: () => pools().known }),
      read: readName,
      reconciler,
      pools,
    },
    planning: { read: readName, reconciler, coolOffMs: config.nameCoolOffMs },
    operatorView: {
      settings: readSettings,
      pools,
      reconciler,
      readOverview: samples.readOverview,
      readChanges: createChangeReader(readSql, { timeoutMs, now: () => performance.now() }),
      witness: config.witness ? createWitness({ ...config.witness, timeoutMs: WITNESS_TIMEOUT_MS }) : noWitness,
      sleep: waitFor,
    },
    consoleFolder,
    streams: {
      logs: createStreamLimiter({ stopping: stopping.signal }),
      lists: createStreamLimiter(),
      changes: createStreamLimiter({ stopping: stopping.signal }),
    },
    providers: { objectStorage: objectStorage.provider, token: [...config.credentials.tokenUrls.keys()] },
    health: {
      isDatabaseUp: createHealthCheck(() => healthCheckSql`select 1`, {
        timeoutMs: HEALTH_CHECK_TIMEOUT_MS,
        keepMs: 0,
        now: () => performance.now(),
      }),
      acceptsWrites: acceptsRequests,
      phase: () => phase,
      pools,
    },
    metrics,
    browsers: config.browsers,
    clientAddress,
    reservedLabels,
    observer,
    tracer,
    isUnavailable: isDatabaseUnavailable,
    isReadOnly: isDatabaseReadOnly,
    isNotWritten: error => error instanceof NotWrittenError,
  }
  inClusterServer.serve(createApp(app, inCluster))
  if (operator) operatorServer?.serve(createApp(app, operator))

  const sweep = async (signal: AbortSignal) => {
    await allocations.sweep(signal)
    observer.onSweepEnded()
  }
  const syncDueZones = async () => {
    await reconciler.syncDueZones()
    observer.onDatabaseReached()
  }
  const readSample = async (): Promise<ReplicaSample> => {
    const zones = await reconciler.listZoneStates()
    return {
      ...metrics.totals(),
      eventLoopMs: performance.eventLoopUtilization().active,
      isReady: phase === 'ready' && (await acceptsRequests()),
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
  const deleteOldOperatorRows = async (signal: AbortSignal) => {
    const times = { now: () => performance.now(), sleep: waitFor }
    await deleteInBatches({ ...times, deleteBatch: samples.deleteOld }, signal)
    await deleteInBatches({ ...times, deleteBatch: operatorSessions.deleteEnded }, signal)
  }
  const jobs = [
    runPeriodically(storeSamples, {
      intervalMs: SAMPLE_INTERVAL_S * 1_000,
      onError: error => observer.onError('storing a sample failed', error),
    }),
    runPeriodically(deleteOldOperatorRows, {
      intervalMs: RETENTION_INTERVAL_MS,
      onError: error => observer.onError('deletion of old rows failed', error),
    }),
    runPeriodically(sweep, {
      intervalMs: config.sweeperIntervalMs,
      onError: error => observer.onError('sweep failed', error),
    }),
    runPeriodically(deleteOldRows, {
      intervalMs: RETENTION_INTERVAL_MS,
      onError: error => observer.onError('deletion of old rows failed', error),
    }),
    runPeriodically(poolRegistry.refresh, {
      intervalMs: POOL_REFRESH_MS,
      onError: error => observer.onError('pool refresh failed', error),
    }),
    runPeriodically(schemaCheck.refresh, {
      intervalMs: SCHEMA_CHECK_INTERVAL_MS,
      onError: error => observer.onError('schema check failed', error),
    }),
    runPeriodically(() => deployments.tick(), {
      intervalMs: LEASE_RENEWAL_MS,
      onError: error => observer.onError('deployment lease renewal failed', error),
    }),
    runPeriodically(syncDueZones, {
      intervalMs: SYNC_INTERVAL_MS,
      onError: error => observer.onError('search for due zones failed', error),
    }),
    runPeriodically(reconciler.checkMarkers, {
      intervalMs: SYNC_INTERVAL_MS,
      onError: error => observer.onError('zone sync failed', error),
    }),
  ]
  phase = 'ready'
  const startChecks = new AbortController()
  // Everything else works, so the start neither waits nor fails.
  void reportLimitations({ config, provider, provisioner, observer, signal: startChecks.signal })

  return {
    address: {
      ...ports,
      dns: { kind: dnsProvider.kind, ...info },
      managedDomains,
    },
    async stop() {
      phase = 'draining'
      startChecks.abort()
      // Readiness is off, and load balancers need time to notice.
      await sleep(config.drainMs)
      stopping.abort()
      // Runs need the database until they end, and the reconciler for their names.
      await Promise.all([
        deployments.stop(),
        inClusterServer.close(REQUEST_GRACE_MS),
        operatorServer?.close(REQUEST_GRACE_MS),
      ])
      // A request that ended in the meantime may have started another run.
      await deployments.stop()
      await Promise.all([...jobs.map(job => job.stop()), reconciler.stop()])
      await provider.close()
      await Promise.all([zoneLocks.close(), tracing?.stop(), ...clients.map(client => client.end({ timeout: 1 }))])
    },
  }
}

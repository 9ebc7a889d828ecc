import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabaseClient } from '@pool/database/client'
import { isDatabaseUnavailable } from '@pool/database/errors'
import { waitForDatabase } from '@pool/database/wait-for-database'
import { createAllocationService } from './allocation/service.ts'
import { type Config, readConfig } from './config/config.ts'
import { EnvReader } from './config/env.ts'
import { readCaFile } from './credentials/ca-file.ts'
import { createCredentialService } from './credentials/service.ts'
import { applySchema, createProbe } from './database/migrate.ts'
import { parseSpec } from './deployments/domain/spec.ts'
import { createDeploymentService } from './deployments/service.ts'
import { createTerraform } from './deployments/terraform/terraform.ts'
import { type ChosenProvider, readProvider } from './dns/registry.ts'
import { type AppDependencies, createApp } from './http/app.ts'
import { openApiDocument } from './http/openapi.ts'
import { type Listening, listen } from './http/server.ts'
import { createEventStreams } from './http/sse.ts'
import { runPeriodically } from './lib/run-periodically.ts'
import { toBucketName } from './naming/bucket-name.ts'
import { reservedLabels } from './naming/reserved-labels.ts'
import { describeError } from './observability/domain/redact.ts'
import { createLog, type Logger, requestLine } from './observability/log.ts'
import { createMetrics } from './observability/metrics.ts'
import { converge } from './reconciler/converge-pool.ts'
import { createReconciler } from './reconciler/index.ts'
import { createZoneLocks } from './reconciler/zone-lock.ts'

const VERSION = '1.0.0'
/** How long a database may stay away at start before the process gives up. */
const START_PATIENCE_MS = 30_000
/** Under the contract's 2 s, with room for the answer. */
const PROBE_TIMEOUT_MS = 1_500
/** Counting every row takes as long as there are many; nobody waits for it. */
const COUNT_TIMEOUT_MS = 60_000
/** One call of a DNS provider. */
const PROVIDER_TIMEOUT_MS = 10_000
/** The contract's 8 s over one check of credentials, with room for the answer. */
const VALIDATION_DEADLINE_MS = 7_900
/** How long to queue for a zone that another replica is writing, before looking again whether there is anything to do. */
const CLAIM_WAIT_MS = 10_000

/** How long a writer that hangs between two signs of life keeps others waiting; one call of a provider fits in well. */
const CLAIM_HOLD_MS = 30_000
/** How often each replica looks for what a crash, an outage or a pause has left due. */
const CATCH_UP_MS = 1_000
/** For how long nobody takes over from a process that works on a deployment and says nothing. */
const RUN_LEASE_MS = 30_000
/** How often a replica renews its runs, and looks for those that others have left. */
const TEND_MS = 2_000
/** From the SIGINT to the SIGKILL of what makes infrastructure. Below what a stop may take. */
const TERRAFORM_GRACE_MS = 7_000
/** Together below the 20 s within which a stop is promised. */
const REQUEST_GRACE_MS = 8_000
const STOP_DEADLINE_MS = 19_000

const exitWith = (code: number, line: string): never => {
  process.stderr.write(`${line}\n`)
  process.exit(code)
}

interface Configured {
  readonly config: Config
  readonly dns: ChosenProvider
  /** PEM of the authorities that the object storage's certificate may come from, besides the system's. */
  readonly objectStorageCa: string | null
}

const configure = (): Configured => {
  const [service, dns] = [readConfig(process.env), readProvider(process.env)]
  // Read even when something else is wrong, so that every fault is told at once.
  const variable = 'OBJECT_STORAGE_CA_FILE'
  const authorities = readCaFile(variable, new EnvReader(process.env).text(variable) ?? null)
  if ('config' in service && 'provider' in dns && 'ca' in authorities) {
    return { config: service.config, dns: dns.provider, objectStorageCa: authorities.ca }
  }
  const faults = [service, dns, authorities].flatMap(result => ('faults' in result ? result.faults : []))
  return exitWith(2, `configuration: ${faults.map(fault => `${fault.variable} ${fault.detail}`).join('; ')}`)
}

const start = async ({ config, dns, objectStorageCa }: Configured, log: Logger): Promise<void> => {
  let phase: 'starting' | 'ready' | 'draining' = 'starting'
  const { managedDomains, reservation } = config
  const { timeoutMs } = config.database
  const open = (applicationName: string, connections: number, slowestMs = timeoutMs) =>
    createDatabaseClient(config.database.url, {
      applicationName,
      maxConnections: connections,
      maxStatementMs: slowestMs,
    })
  const sql = open('allocation-api', config.database.poolSize)
  const claims = createZoneLocks(config.database.url, { waitMs: CLAIM_WAIT_MS, holdMs: CLAIM_HOLD_MS, timeoutMs })
  const probe = open('allocation-api probe', 1)
  const countSql = open('allocation-api count', 1, COUNT_TIMEOUT_MS)
  await waitForDatabase(() => applySchema(sql), {
    timeoutMs: START_PATIENCE_MS,
    onRetry: error => log.warn({ error: describeError(error) }, 'database not reachable yet'),
  })

  const tell = (what: string) => (error: unknown) => log.error({ error: describeError(error) }, what)
  const { provider, about } = await dns.start({ managedDomains, sql, onError: tell('dns provider') })

  const metrics = createMetrics({
    countAllocations: () => allocation.count(),
    countDeployments: () => deployments.count(),
    deploymentsHere: () => deployments.running(),
    zoneLag: () => convergence.lag(),
    isProviderHeldBack: () => convergence.isHeldBack(),
    version: VERSION,
    nodeVersion: process.version,
    providerKind: dns.kind,
    onSourceError: tell('metrics source'),
  })
  const convergence = createReconciler({
    provider,
    sql,
    claims,
    statementTimeoutMs: timeoutMs,
    callDeadlineMs: PROVIDER_TIMEOUT_MS,
    commitWaitMs: config.dns.commitWaitMs,
    driftIntervalMs: config.dns.driftIntervalMs,
    now: () => performance.now(),
    random: Math.random,
    onCall: metrics.dnsCall,
    onCompared: (zone, outcome) => {
      metrics.dnsCompared(zone, outcome)
      if (outcome.kind === 'unavailable') log.warn({ zone, reason: outcome.reason }, 'comparison')
      else if (outcome.reopened > 0) log.warn({ zone, names: outcome.reopened }, 'drift')
    },
    onDefect: tell('dns provider threw'),
    onError: (zone, error) => log.error({ zone, error: describeError(error) }, 'convergence'),
  })

  const { validateKeys, validateToken } = createCredentialService({
    config,
    objectStorageCa,
    deadlineMs: VALIDATION_DEADLINE_MS,
    now: () => performance.now(),
    wallClock: Date.now,
    onOutcome: (kind, outcome) => {
      metrics.credentialsValidated(kind, outcome.kind)
      // The message is our own text, of our own hosts.
      if (outcome.kind === 'unavailable') log.warn({ kind, reason: outcome.message }, 'credentials not checked')
    },
  })

  const { objectStorage } = config
  const allocation = createAllocationService({
    sql,
    countSql,
    managedDomains,
    settle: convergence.settle,
    template: { names: config.dns.recordNames, ttl: config.dns.recordTtlSeconds },
    platformPrefix: objectStorage.platformPrefix,
    statementTimeoutMs: timeoutMs,
    countTimeoutMs: COUNT_TIMEOUT_MS,
    idempotencyTtlMs: config.idempotencyTtlMs,
    reservation,
    now: () => performance.now(),
    onSwept: metrics.swept,
  })

  const deployments = createDeploymentService({
    sql,
    once: allocation.once,
    reader: allocation.reader,
    allocation: allocation.verbs,
    validateKeys,
    orderOf: body =>
      parseSpec(body, {
        storageProvider: objectStorage.provider,
        bucketOf: fqdn => toBucketName(objectStorage.platformPrefix, fqdn),
        managedDomains,
      }),
    infrastructure: createTerraform({ ...config.deployments, env: process.env, graceMs: TERRAFORM_GRACE_MS }),
    storage: objectStorage,
    atOnce: config.deployments.atOnce,
    statementTimeoutMs: timeoutMs,
    leaseMs: RUN_LEASE_MS,
    reservationTtlMs: reservation.ttlMs,
    now: () => performance.now(),
    date: () => new Date(),
    newId: randomUUID,
    isUnavailable: isDatabaseUnavailable,
    onEnd: (deployment, outcome, seconds) => {
      metrics.deploymentEnded(outcome, seconds)
      log.info({ deployment, outcome, seconds }, 'deployment')
    },
    onError: (deployment, error) => log.error({ deployment, error: describeError(error) }, 'deployments'),
  })
  const stopping = new AbortController()
  const tellRequest = requestLine(log)

  const dependencies: AppDependencies = {
    verbs: {
      ...allocation.verbs,
      converge: converge({ preview: convergence.preview, repair: convergence.repair, managedDomains }),
      validateKeys,
      validateToken,
    },
    deployments: deployments.verbs,
    streams: createEventStreams({ stopping: stopping.signal }),
    providers: { objectStorage: config.objectStorage.provider, token: [...config.credentials.tokenUrls.keys()] },
    health: { databaseAnswers: createProbe(probe, PROBE_TIMEOUT_MS), phase: () => phase, managedDomains },
    metrics,
    reservedLabels,
    openApi: openApiDocument(),
    onAnswered: answered => {
      metrics.answered(answered)
      tellRequest(answered)
    },
    classify: error => (isDatabaseUnavailable(error) ? 'unavailable' : 'defect'),
    onError: (error, requestId) => log.error({ requestId, error: describeError(error) }, 'request failed'),
    onBrokenOff: (error, requestId) => log.warn({ requestId, error: describeError(error) }, 'answer broken off'),
  }

  const servers: Listening[] = []
  const openDoor = async (port: number, variable: string, options: Parameters<typeof createApp>[1]) => {
    const server = await listen(createApp(dependencies, options), port).catch((error: NodeJS.ErrnoException) => {
      throw new Error(`${variable}: cannot listen on port ${port} (${error.code ?? error.name})`)
    })
    servers.push(server)
    return server.port
  }
  const port = await openDoor(config.port, 'PORT', {
    listener: 'in-cluster',
    tokens: null,
    listing: !config.operatorOnlyList,
  })
  const operatorPort =
    config.operator &&
    (await openDoor(config.operator.port, 'PDM_OPERATOR_PORT', {
      listener: 'operator',
      tokens: config.operator.tokens,
      listing: true,
    }))

  const jobs = [
    runPeriodically(allocation.sweep, { everyMs: config.sweeperIntervalMs, onError: tell('sweeper') }),
    runPeriodically(deployments.tend, { everyMs: TEND_MS, onError: tell('deployments') }),
    runPeriodically(convergence.catchUp, { everyMs: CATCH_UP_MS, onError: tell('convergence') }),
  ]
  phase = 'ready'
  log.info({ port, operatorPort, dns: { kind: dns.kind, ...about }, managedDomains }, 'ready')

  /** Readiness off, time for the news to spread, requests under way, background work, connections: in this order. */
  const stop = async (reason: string): Promise<void> => {
    if (phase === 'draining') return
    phase = 'draining'
    log.info({ reason }, 'stopping')
    setTimeout(() => exitWith(1, `stop: not finished within ${STOP_DEADLINE_MS / 1_000} s`), STOP_DEADLINE_MS).unref()
    await sleep(config.drainMs)
    stopping.abort()
    // Runs need all the rest until they have ended: the database, and convergence for their names.
    await Promise.all([deployments.stop(), ...servers.map(server => server.close(REQUEST_GRACE_MS))])
    // Of a request that was answered meanwhile.
    await deployments.stop()
    await Promise.all([...jobs.map(job => job.stop()), convergence.stop()])
    await provider.close()
    await Promise.all([claims.close(), ...[sql, probe, countSql].map(pool => pool.end({ timeout: 1 }))])
    log.info('stopped')
    log.flush(() => process.exit(0))
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
  // A parent that started this process with a channel, and is gone, cannot stop it any more.
  if (process.channel) process.on('disconnect', () => void stop('parent gone'))
}

const configured = configure()
const log = createLog(configured.config.logLevel)
process.on('unhandledRejection', error => log.error({ error: describeError(error) }, 'unhandled rejection'))
await start(configured, log).catch((error: unknown) => {
  const { name, code, message } = describeError(error)
  exitWith(1, `start: ${message ?? code ?? name}`)
})

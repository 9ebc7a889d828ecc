import { setTimeout as sleep } from 'node:timers/promises'
import { check } from './allocation/check.ts'
import { commit } from './allocation/commit.ts'
import { converge } from './allocation/converge.ts'
import { get } from './allocation/get.ts'
import { createHistoryReader } from './allocation/history.ts'
import { list, readHistory } from './allocation/list.ts'
import { createOnce, forgetKeys } from './allocation/once.ts'
import { createReader } from './allocation/reader.ts'
import { release } from './allocation/release.ts'
import { renew } from './allocation/renew.ts'
import { reserve } from './allocation/reserve.ts'
import { reservedLabels } from './allocation/reserved-labels.ts'
import { createStore } from './allocation/store.ts'
import { sweep } from './allocation/sweeper.ts'
import { type AppDependencies, createApp } from './app.ts'
import { type Config, readConfig } from './config.ts'
import { assembleDns } from './convergence/assembly.ts'
import { createClaims } from './convergence/claim.ts'
import { connect, isDatabaseUnavailable } from './database/connect.ts'
import { untilReachable } from './database/reachable.ts'
import { applySchema, createProbe } from './database/schema.ts'
import { type ChosenProvider, readProvider } from './dns/registry.ts'
import { openApiDocument } from './http/openapi.ts'
import { createLog, type Logger } from './observability/log.ts'
import { createMetrics } from './observability/metrics.ts'
import { describeError } from './observability/redact.ts'
import { periodically } from './periodic.ts'
import { type Listening, listen } from './server.ts'

const VERSION = '1.0.0'
/** How long a database may stay away at start before the process gives up. */
const START_PATIENCE_MS = 30_000
/** Under the contract's 2 s, with room for the answer. */
const PROBE_TIMEOUT_MS = 1_500
/** One call of a DNS provider. */
const PROVIDER_TIMEOUT_MS = 10_000
/** How long to queue for a zone that another replica is writing, before looking again whether there is anything to do. */
const CLAIM_WAIT_MS = 10_000

/** How long a writer that hangs between two signs of life keeps others waiting; one call of a provider fits in well. */
const CLAIM_HOLD_MS = 30_000
/** How often each replica looks for what a crash, an outage or a pause has left due. */
const CATCH_UP_MS = 1_000
/** Together below the 20 s within which a stop is promised. */
const REQUEST_GRACE_MS = 8_000
const STOP_DEADLINE_MS = 19_000

const exitWith = (code: number, line: string): never => {
  process.stderr.write(`${line}\n`)
  process.exit(code)
}

const configure = (): { config: Config; dns: ChosenProvider } => {
  const [service, dns] = [readConfig(process.env), readProvider(process.env)]
  if ('config' in service && 'provider' in dns) return { config: service.config, dns: dns.provider }
  const faults = [service, dns].flatMap(result => ('faults' in result ? result.faults : []))
  return exitWith(2, `configuration: ${faults.map(fault => `${fault.variable} ${fault.detail}`).join('; ')}`)
}

const start = async (config: Config, dns: ChosenProvider, log: Logger): Promise<void> => {
  let phase: 'starting' | 'ready' | 'draining' = 'starting'
  const { managedDomains, reservation } = config
  const { timeoutMs } = config.database
  const open = (applicationName: string, connections: number) =>
    connect(config.database.url, { applicationName, connections, slowestMs: timeoutMs })
  const sql = open('allocation-api', config.database.poolSize)
  const claims = createClaims(config.database.url, { waitMs: CLAIM_WAIT_MS, holdMs: CLAIM_HOLD_MS, timeoutMs })
  const probe = open('allocation-api probe', 1)
  await untilReachable(() => applySchema(sql), {
    patienceMs: START_PATIENCE_MS,
    onRetry: error => log.warn({ error: describeError(error) }, 'database not reachable yet'),
  })

  const tell = (what: string) => (error: unknown) => log.error({ error: describeError(error) }, what)
  const { provider, about } = await dns.start({ managedDomains, sql, onError: tell('dns provider') })

  const reader = createReader(sql, { timeoutMs })
  const history = createHistoryReader(sql, { timeoutMs })
  const store = createStore(sql, { timeoutMs })
  const once = createOnce(sql, { timeoutMs, keyTtlMs: config.idempotencyTtlMs })
  const metrics = createMetrics({
    countAllocations: reader.count,
    zoneLag: () => convergence.lag(),
    isProviderHeldBack: () => convergence.isHeldBack(),
    version: VERSION,
    nodeVersion: process.version,
    providerKind: dns.kind,
    onSourceError: tell('metrics source'),
  })
  const convergence = assembleDns({
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

  const dependencies: AppDependencies = {
    verbs: {
      check: check({ reader, managedDomains }),
      get: get({ reader, managedDomains }),
      reserve: reserve({ store, reader, once, managedDomains, ttlMs: reservation.ttlMs }),
      commit: commit({
        store,
        once,
        settle: convergence.settle,
        managedDomains,
        template: { names: config.dns.recordNames, ttl: config.dns.recordTtlSeconds },
      }),
      renew: renew({ store, managedDomains, ...reservation }),
      release: release({ store, once, settle: convergence.settle, managedDomains }),
      list: list({ reader, managedDomains }),
      readHistory: readHistory({ history, managedDomains }),
      converge: converge({ preview: convergence.preview, repair: convergence.repair, managedDomains }),
    },
    health: { databaseAnswers: createProbe(probe, PROBE_TIMEOUT_MS), phase: () => phase, managedDomains },
    metrics,
    reservedLabels,
    openApi: openApiDocument(),
    onAnswered: answered => {
      metrics.answered(answered)
      log.info(answered, 'request')
    },
    classify: error => (isDatabaseUnavailable(error) ? 'unavailable' : 'defect'),
    onError: (error, requestId) => log.error({ requestId, error: describeError(error) }, 'request failed'),
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
    door: 'in-cluster',
    tokens: null,
    listing: !config.operatorOnlyList,
  })
  const operatorPort =
    config.operator &&
    (await openDoor(config.operator.port, 'PDM_OPERATOR_PORT', {
      door: 'operator',
      tokens: config.operator.tokens,
      listing: true,
    }))

  const jobs = [
    periodically(
      sweep({
        deleteExpired: store.deleteExpired,
        forgetKeys: limit => forgetKeys(sql, limit, timeoutMs),
        onDeleted: metrics.swept,
      }),
      { everyMs: config.sweeperIntervalMs, onError: tell('sweeper') },
    ),
    periodically(convergence.catchUp, { everyMs: CATCH_UP_MS, onError: tell('convergence') }),
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
    await Promise.all(servers.map(server => server.close(REQUEST_GRACE_MS)))
    await Promise.all([...jobs.map(job => job.stop()), convergence.stop()])
    await provider.close()
    await Promise.all([claims.close(), ...[sql, probe].map(pool => pool.end({ timeout: 1 }))])
    log.info('stopped')
    log.flush(() => process.exit(0))
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
  // A parent that started this process with a channel, and is gone, cannot stop it any more.
  if (process.channel) process.on('disconnect', () => void stop('parent gone'))
}

const { config, dns } = configure()
const log = createLog(config.logLevel)
process.on('unhandledRejection', error => log.error({ error: describeError(error) }, 'unhandled rejection'))
await start(config, dns, log).catch((error: unknown) => {
  const { name, code, message } = describeError(error)
  exitWith(1, `start: ${message ?? code ?? name}`)
})

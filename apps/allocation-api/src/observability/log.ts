import { redacted } from '@pool/contract'
import { type DestinationStream, type Logger, pino } from 'pino'
import type { LogLevel } from '../config/config.ts'
import { createOutage, type ErrorEvent, type Observer, PROBE_ROUTES, type RequestLogEntry } from './domain/observer.ts'
import { describeError, redact } from './domain/redact.ts'
import type { Metrics } from './metrics.ts'

export interface LogDestination extends DestinationStream {
  /** Calls `callback` after this turn of the event loop, or when the process exits. */
  readonly afterTurn: (callback: () => void) => void
}

export type Log = Logger &
  Pick<LogDestination, 'afterTurn'> & {
    /** One line per request, at level debug for probes. */
    readonly request: (entry: RequestLogEntry) => void
  }

export interface LogOptions {
  readonly destination: LogDestination
  /** The Unix time in milliseconds. */
  readonly now: () => number
}

const SERVICE = 'allocation-api'

/**
 * Standard output. The lines of one turn of the event loop are written with one system call: a call per line is a measurable
 * part of a request. `onExit` calls `flush` when the process exits, so its last line is written;
 * SIGKILL loses the lines of the turn in which it arrives.
 */
export const createStdout = (onExit: (flush: () => void) => void): LogDestination => {
  const stdout = pino.destination({ fd: 1, sync: true })
  let lines = ''
  let callbacks: (() => void)[] = []
  let isScheduled = false
  const schedule = () => {
    if (!isScheduled) setImmediate(flush)
    isScheduled = true
  }
  const flush = () => {
    const due = callbacks
    callbacks = []
    // Their lines are written below.
    for (const callback of due) callback()
    isScheduled = false
    if (callbacks.length > 0) schedule()
    if (lines === '') return
    stdout.write(lines)
    lines = ''
  }
  onExit(flush)
  return {
    write(line) {
      schedule()
      lines += line
    },
    afterTurn(callback) {
      schedule()
      callbacks.push(callback)
    },
  }
}

/** RFC 3339, formatted once per millisecond. */
const createTimestamp = (now: () => number): (() => string) => {
  let time = Number.NaN
  let text = ''
  return () => {
    const current = now()
    if (current !== time) {
      time = current
      text = new Date(current).toISOString()
    }
    return text
  }
}

const toField = (name: string, value: string | null | undefined): string =>
  value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`

/**
 * The fields of the line in the form of the other lines; the seconds have the resolution of a microsecond. Only `method`
 * and `cause` can need an escape: the others are validated, or constants of this service.
 */
const toFields = (entry: RequestLogEntry): string => {
  const { requestId, listener, address, deployment, method, route, status, outcome, cause, seconds } = entry
  return `"requestId":"${requestId}","listener":"${listener}"${toField('address', address)}${toField('deployment', deployment)}${toField('method', method)},"route":"${route}","status":${status},"outcome":"${outcome}"${toField('cause', cause)},"seconds":${Math.round(seconds * 1e6) / 1e6}`
}

/**
 * JSON lines on standard output. Callers choose each field they log, and none is a secret. The redacted paths are a second
 * line of defence.
 *
 * The lines of requests have fixed fields, which hold nothing that was sent, so they are neither redacted nor formatted by
 * the library: that is slower (measured).
 */
export const createLog = (level: LogLevel, { destination, now }: LogOptions): Log => {
  const toTimestamp = createTimestamp(now)
  const logger = pino(
    {
      level,
      base: { service: SERVICE },
      timestamp: () => `,"time":"${toTimestamp()}"`,
      formatters: { level: label => ({ level: label }) },
      redact: {
        paths: [
          'reservationToken',
          'token',
          'accessKey',
          'secretKey',
          'authorization',
          'password',
          'url',
          '*.reservationToken',
          '*.token',
          '*.accessKey',
          '*.secretKey',
          '*.authorization',
          '*.password',
          '*.url',
        ],
        censor: redacted,
      },
    },
    destination,
  )
  const isEnabled = { debug: logger.isLevelEnabled('debug'), info: logger.isLevelEnabled('info') }
  return Object.assign(logger, {
    afterTurn: destination.afterTurn,
    request(entry: RequestLogEntry): void {
      const label = PROBE_ROUTES.has(entry.route) ? 'debug' : 'info'
      if (!isEnabled[label]) return
      const head = `{"level":"${label}","time":"${toTimestamp()}","service":"${SERVICE}"`
      destination.write(`${head},${toFields(entry)},"msg":"request"}\n`)
    },
  })
}

export interface ObserverOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly isDatabaseUnavailable: (error: unknown) => boolean
}

/** Events of statements that repeat until they succeed. An outage of the database would log them several times a second. */
const DATABASE_EVENTS: ReadonlySet<ErrorEvent> = new Set<ErrorEvent>([
  'zone sync failed',
  'search for due zones failed',
  'schema check failed',
  'sweep failed',
  'deletion of old rows failed',
  'pool refresh failed',
  'deployment lease renewal failed',
  'metrics source unavailable',
  'storing a sample failed',
])

/** Clients whose short keys are not logged again. */
const MAX_WARNED_CLIENTS = 1_000

/** Logs and counts what the parts of the service report. */
export const createObserver = (
  log: Log,
  metrics: Metrics,
  { now, isDatabaseUnavailable }: ObserverOptions,
): Observer => {
  const outage = createOutage(now)
  /** The oldest first. */
  const warnedClients = new Set<string>()
  return {
    onRequest(entry) {
      // Its response is sent at the end of this turn, and need not wait for this.
      log.afterTurn(() => {
        metrics.countRequest(entry)
        log.request(entry)
      })
    },
    onShortKey(address) {
      const client = address ?? 'unknown'
      if (warnedClients.has(client)) return
      const [oldest] = warnedClients
      if (warnedClients.size >= MAX_WARNED_CLIENTS && oldest !== undefined) warnedClients.delete(oldest)
      warnedClients.add(client)
      log.warn({ address }, 'short Idempotency-Key')
    },
    onRequestFailed(error, requestId) {
      log.error({ requestId, error: describeError(error) }, 'request failed')
    },
    onResponseAborted(error, requestId) {
      log.warn({ requestId, error: describeError(error) }, 'response aborted')
    },
    onConfigWarning(variable, detail) {
      log.warn({ variable, detail }, 'questionable configuration')
    },
    onDatabaseWait(reason, waitedMs) {
      log.warn({ reason, waitedSeconds: Math.round(waitedMs / 1_000) }, 'waiting for database')
    },
    onWeakDurability(durability) {
      log.warn({ durability }, 'acknowledged writes can be lost')
    },
    onMigrated({ version, name }) {
      log.info({ version, name }, 'migration applied')
    },
    onMigrationLocked({ version, name }) {
      log.warn({ version, name }, 'migration waits for a lock of another transaction')
    },
    onSchemaMisfit(reason) {
      if (reason === null) log.info('the database fits this build again')
      else log.error({ reason }, 'the database does not fit this build')
    },
    onMissingSessionSettings(remedy) {
      log.warn({ remedy }, 'database sessions lack settings that a connection pooler cannot set; execute the remedy')
    },
    onProviderCall(operation, outcome, seconds) {
      metrics.countProviderCall(operation, outcome, seconds)
    },
    onCircuitOpened(reason, zones) {
      log.warn({ reason: redact(reason), zones }, 'dns provider circuit opened')
    },
    onCircuitClosed(openSeconds) {
      log.info({ openSeconds }, 'dns provider circuit closed')
    },
    onSync(zone, outcome) {
      metrics.countSync(zone, outcome)
    },
    onDriftCheck(zone, result) {
      metrics.countDriftCheck(zone, result)
      if (result.kind === 'unavailable') log.warn({ zone, reason: result.reason }, 'drift check failed')
      else if (result.driftedCount > 0) log.warn({ zone, names: result.driftedCount }, 'drift detected')
    },
    onZoneStopped(zone, cause) {
      log.error({ zone, cause }, 'zone stopped')
    },
    onUnknownNames(zone, subdomains) {
      const advice = `adopt or remove their records: poolctl zones orphans list ${zone}`
      log.warn({ zone, names: subdomains.length, first: subdomains.slice(0, 10), advice }, 'unknown names are kept')
    },
    onProviderMove(zones, names) {
      log.warn({ zones, names }, 'zones move to another dns provider')
    },
    onMarkerRejected(zone, reason) {
      log.warn({ zone, reason }, 'zone marker rejected')
    },
    onCredentialCheck(kind, result) {
      metrics.countCredentialCheck(kind, result.kind)
      // The message is our own text about a host from the configuration.
      if (result.kind === 'unavailable') log.warn({ kind, reason: result.message }, 'credential check unavailable')
    },
    onSwept(count) {
      metrics.countSwept(count)
    },
    onSweepEnded() {
      metrics.countSweep()
    },
    onDatabaseReached() {
      const ended = outage.onSuccess()
      if (ended) log.info(ended, 'database available again')
    },
    onOldRowsDeleted(counts) {
      log.info(counts, 'old rows deleted')
    },
    onZonesUnusable(zones, reason, advice) {
      log.warn({ zones, reason, advice }, 'zones unusable')
    },
    onObjectStorageUnreachable(reason) {
      log.warn({ reason }, 'object storage unreachable')
    },
    onDeploymentsUnavailable(reason) {
      log.warn({ reason }, 'deployments unavailable')
    },
    onTerraformExposed(reason) {
      log.warn({ reason }, 'terraform not isolated')
    },
    onModuleLimited(limits) {
      log.info({ limits }, 'deployment module is limited')
    },
    onRunEnded(deployment, outcome, seconds) {
      metrics.countRun(outcome, seconds)
      log.info({ deployment, outcome, seconds }, 'deployment run ended')
    },
    onError(event, error, context) {
      if (DATABASE_EVENTS.has(event) && isDatabaseUnavailable(error)) {
        // The statement is not the cause, so neither its stack nor its context helps.
        const { stack: _, ...description } = describeError(error)
        if (outage.onFailure()) log.error({ error: description, event }, 'database unavailable')
        return
      }
      log.error({ ...context, error: describeError(error) }, event)
    },
  }
}

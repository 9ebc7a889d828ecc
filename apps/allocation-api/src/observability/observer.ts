import { createOutage, type ErrorEvent, type Observer } from './domain/observer.ts'
import { describeError, redact } from './domain/redact.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

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

/** Logs and counts what the parts of the service report. */
export const createObserver = (
  log: Log,
  metrics: Metrics,
  { now, isDatabaseUnavailable }: ObserverOptions,
): Observer => {
  const outage = createOutage(now)
  return {
    onRequest(entry) {
      // Its response is sent at the end of this turn, and need not wait for this.
      log.afterTurn(() => {
        metrics.countRequest(entry)
        log.request(entry)
      })
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

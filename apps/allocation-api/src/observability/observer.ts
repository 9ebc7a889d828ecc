import type { Observer } from './domain/observer.ts'
import { describeError } from './domain/redact.ts'
import { createRequestLog, type Logger } from './log.ts'
import type { Metrics } from './metrics.ts'

/** Logs and counts what the parts of the service report. */
export const createObserver = (log: Logger, metrics: Metrics): Observer => {
  const logRequest = createRequestLog(log)
  return {
    onRequest(entry) {
      metrics.countRequest(entry)
      logRequest(entry)
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
    onSweep(count) {
      metrics.countSwept(count)
    },
    onOldRowsDeleted(counts) {
      log.info(counts, 'old rows deleted')
    },
    onDeploymentsUnavailable(reason) {
      log.warn({ reason }, 'deployments unavailable')
    },
    onRunEnded(deployment, outcome, seconds) {
      metrics.countRun(outcome, seconds)
      log.info({ deployment, outcome, seconds }, 'deployment run ended')
    },
    onError(event, error, context) {
      log.error({ ...context, error: describeError(error) }, event)
    },
  }
}

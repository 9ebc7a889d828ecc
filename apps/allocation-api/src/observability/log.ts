import { redacted } from '@pool/contract'
import { type Logger, pino } from 'pino'
import type { LogLevel } from '../config/config.ts'
import { PROBE_ROUTES, type RequestLogEntry } from './domain/request-log.ts'

export type { Logger }

/**
 * JSON lines on standard output. Callers choose each field they log, and none is a secret. The redacted paths are a second
 * line of defence.
 */
export const createLog = (level: LogLevel): Logger =>
  pino({
    level,
    base: { service: 'allocation-api' },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
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
  })

/**
 * Logs one line per request, at level debug for probes. Its fields are fixed by their type and hold nothing that was sent,
 * so they are not redacted: redaction would cost a tenth of a check.
 */
export const createRequestLog = (log: Logger): ((entry: RequestLogEntry) => void) => {
  const plainLog = log.child({}, { redact: [] })
  return entry => {
    if (PROBE_ROUTES.has(entry.route)) plainLog.debug(entry, 'request')
    else plainLog.info(entry, 'request')
  }
}

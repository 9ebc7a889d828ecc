import { redacted } from '@pool/contract'
import { type DestinationStream, type Logger, pino } from 'pino'
import type { LogLevel } from '../config/config.ts'
import { PROBE_ROUTES, type RequestLogEntry } from './domain/request-log.ts'

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

import { redacted } from '@pool/contract'
import { type Logger, pino } from 'pino'
import type { LogLevel } from '../config/config.ts'
import type { Answered } from './domain/request-log.ts'

export type { Logger }

/**
 * JSON lines on standard output. What is logged is chosen field by field and holds no secret; the paths here are the
 * second net, for a field that should not have been passed.
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
 * The line of a request that was answered. What it may hold is fixed by its type, none of it is what was sent, and it is
 * the one line that every request costs: the second net would be a tenth of a check.
 */
export const requestLine = (log: Logger): ((answered: Answered) => void) => {
  const bare = log.child({}, { redact: [] })
  return answered => bare.info(answered, 'request')
}

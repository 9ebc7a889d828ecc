import { redacted } from '@pool/contract'
import { type Logger, pino } from 'pino'
import type { LogLevel } from '../config.ts'

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

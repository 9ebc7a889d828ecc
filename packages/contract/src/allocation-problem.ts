import type * as z from 'zod'
import { commonErrorCodes, faultsOf, problemOf } from './problem.ts'

/** Every error code of the allocation API. Closed: a code that is not here cannot be answered. */
export const errorCodes = [
  ...commonErrorCodes,
  'invalid-format',
  'invalid-state',
  'invalid-idempotency-key',
  'invalid-fqdn',
  'invalid-lb-ip',
  'missing-lb-ip',
  'missing-token',
  'unsupported-pool',
  'reserved',
  'idempotency-key-reused',
  'token-mismatch',
  'conflict',
  'already-active',
  'reservation-expired',
  'database-unavailable',
  'dns-unavailable',
] as const

export type ErrorCode = (typeof errorCodes)[number]

export const problem = problemOf(errorCodes).meta({ id: 'Problem' })
export type Problem = z.infer<typeof problem>

export const { fault, faultOf } = faultsOf(errorCodes, 'invalid-format')

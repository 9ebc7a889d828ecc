import { z } from 'zod'

/** Every error code on the wire. Closed: a code that is not here cannot be answered. */
export const errorCodes = [
  'invalid-json',
  'invalid-format',
  'invalid-state',
  'invalid-limit',
  'invalid-cursor',
  'invalid-idempotency-key',
  'invalid-fqdn',
  'invalid-lb-ip',
  'missing-lb-ip',
  'missing-token',
  'unsupported-pool',
  'reserved',
  'idempotency-key-reused',
  'unauthorized',
  'token-mismatch',
  'not-found',
  'method-not-allowed',
  'conflict',
  'already-active',
  'reservation-expired',
  'body-too-large',
  'internal-error',
  'database-unavailable',
] as const

export type ErrorCode = (typeof errorCodes)[number]

/** The one shape of every error body. `detail` is one sentence that a person can act on. */
export const problem = z
  .object({
    error: z.enum(errorCodes),
    detail: z.string().optional(),
    requestId: z.string().optional().meta({ description: 'Only with `internal-error`: find it in the log.' }),
  })
  .meta({ id: 'Problem' })

export type Problem = z.infer<typeof problem>

/** A fault found by a schema: what the error body will say. */
export interface Fault {
  readonly code: ErrorCode
  readonly detail: string
}

/**
 * A schema's message carries its code, so that one schema says both what is right and how a wrong value is answered:
 * `z.string(fault('missing-token', '…'))`. `faultOf` reads it back.
 */
export const fault = (code: ErrorCode, detail: string): string => `${code}: ${detail}`

/** The first fault in the order of the schema's fields, which is the order in which the contract decides. */
export const faultOf = (error: z.core.$ZodError): Fault => {
  const message = error.issues[0]?.message ?? ''
  const separator = message.indexOf(': ')
  const code = errorCodes.find(known => known === message.slice(0, separator))
  return code
    ? { code, detail: message.slice(separator + 2) }
    : { code: 'invalid-format', detail: 'The request does not have the documented shape.' }
}

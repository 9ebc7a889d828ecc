import { type LeaseErrorCode, type LeaseProblem, leaseErrors, NEVER_WRITTEN } from '@pool/contract/lease-problem'
import type { Context } from 'hono'
import type { RequestError } from '../lease/request.ts'
import type { SlotUnavailable } from '../lease-service.ts'
import { log, type WitnessLogLevel } from '../log.ts'
import type { WitnessHttpEnv } from './types.ts'

/** From `min` seconds on, at random, so that clients whose waits end at the same time do not all retry in the same second. */
const RETRY_AFTER = { min: 1, spread: 5 } as const
/** Only a person can repair a record. */
const RETRY_AFTER_REPAIR = { min: 60, spread: 60 } as const

const pickRetryAfter = (code: LeaseErrorCode): string => {
  const { min, spread } = code === 'invalid-lease-record' ? RETRY_AFTER_REPAIR : RETRY_AFTER
  return String(min + Math.floor(Math.random() * spread))
}

export const errorResponse = (c: Context<WitnessHttpEnv>, { code, detail }: RequestError) => {
  c.set('outcome', code)
  const [status, text] = leaseErrors[code]
  if (status === 503) c.header('Retry-After', pickRetryAfter(code))
  const body: LeaseProblem = { error: code, detail: detail ?? text }
  if (code === 'internal-error') body.requestId = c.get('requestId')
  return c.json(body, status)
}

/** The token does not permit the request (RFC 6750 section 3.1). */
export const forbiddenResponse = (c: Context<WitnessHttpEnv>) => {
  c.header('WWW-Authenticate', 'Bearer error="insufficient_scope"')
  return errorResponse(c, { code: 'forbidden' })
}

export const neverWrittenResponse = (c: Context<WitnessHttpEnv>) =>
  errorResponse(c, { code: 'not-found', detail: NEVER_WRITTEN })

/** Writes a line about a request, without its credentials. */
export const logRequest = (
  c: Context<WitnessHttpEnv>,
  level: WitnessLogLevel,
  fields: Readonly<Record<string, unknown>>,
): void => log(c.get('settings'), level, fields, c.get('secrets'))

/** Logs why a dependency failed. The client gets a 503 without that text. */
export const logUnavailable = (
  c: Context<WitnessHttpEnv>,
  msg: 'object-unavailable' | 'copy-unavailable',
  reason: string,
  slot = c.get('slot'),
): void => logRequest(c, 'error', { msg, requestId: c.get('requestId'), slot, reason })

/** Logs an outcome that has the error text of a dependency. */
export const logSlotUnavailable = (
  c: Context<WitnessHttpEnv>,
  outcome: { readonly kind: string } | SlotUnavailable,
  slot?: string,
): void => {
  if (outcome.kind !== 'rejected' && 'reason' in outcome && outcome.reason !== undefined)
    logUnavailable(c, 'object-unavailable', outcome.reason, slot)
}

/** Logs a bug. */
export const logUnexpected = (c: Context<WitnessHttpEnv>, error: unknown, slot = c.get('slot')): void => {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const fields = { requestId: c.get('requestId'), slot, error: { name, message, stack } }
  logRequest(c, 'error', { msg: 'unhandled-error', ...fields })
}

export const unavailableResponse = (c: Context<WitnessHttpEnv>, outcome: SlotUnavailable) => {
  if (outcome.kind === 'invalid-lease-record') {
    const detail = `The record in Workers KV at ${outcome.key} is not a lease. Repair it, or delete it if no fencing token of it is in use.`
    return errorResponse(c, { code: outcome.kind, detail })
  }
  logSlotUnavailable(c, outcome)
  return errorResponse(c, { code: outcome.kind })
}

import * as z from 'zod'
import { commonErrorCodes, createProblemSchema, createRules } from './problem.ts'

/** Every error code of the lease witness. The body of a 412 is not an error but the current lease. */
export const leaseErrorCodes = [
  ...commonErrorCodes,
  'forbidden',
  'too-many-requests',
  'invalid-request',
  'invalid-slot',
  'invalid-until',
  'invalid-prefix',
  'missing-if-match',
  'invalid-if-match',
  'invalid-if-none-match',
  'missing-x-holder',
  'invalid-holder',
  'holder-mismatch',
  'invalid-ttl',
  'invalid-op',
  'invalid-leases',
  'invalid-generation',
  'invalid-lease-record',
  'overloaded',
  'lease-unavailable',
  'copy-unavailable',
  'draining',
  'not-draining',
] as const

export type LeaseErrorCode = (typeof leaseErrorCodes)[number]
export const leaseErrorCode = z.enum(leaseErrorCodes).meta({ id: 'LeaseErrorCode' })

export const leaseProblem = createProblemSchema(leaseErrorCode).meta({ id: 'LeaseProblem' })
export type LeaseProblem = z.infer<typeof leaseProblem>

export const { rule: leaseRule, firstViolation: firstLeaseViolation } = createRules(leaseErrorCodes, 'invalid-request')

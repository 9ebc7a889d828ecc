import type * as z from 'zod'
import { commonErrorCodes, faultsOf, problemOf } from './problem.ts'

/** Every error code of the lease witness. A 412 is no error body: it carries the lease as it stands. */
export const leaseErrorCodes = [
  ...commonErrorCodes,
  'invalid-request',
  'invalid-slot',
  'invalid-prefix',
  'missing-if-match',
  'invalid-if-match',
  'invalid-if-none-match',
  'missing-x-holder',
  'invalid-holder',
  'holder-mismatch',
  'invalid-ttl',
  'invalid-op',
  'invalid-lease-record',
  'overloaded',
  'lease-unavailable',
  'copy-unavailable',
] as const

export type LeaseErrorCode = (typeof leaseErrorCodes)[number]

export const leaseProblem = problemOf(leaseErrorCodes).meta({ id: 'LeaseProblem' })
export type LeaseProblem = z.infer<typeof leaseProblem>

export const { fault: leaseFault, faultOf: leaseFaultOf } = faultsOf(leaseErrorCodes, 'invalid-request')

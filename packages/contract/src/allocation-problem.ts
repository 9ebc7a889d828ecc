import * as z from 'zod'
import { commonErrorCodes, faultsOf, problemOf } from './problem.ts'

/** Every error code of the allocation API. Closed: a code that is not here cannot be answered. */
export const errorCodes = [
  ...commonErrorCodes,
  'invalid-format',
  'invalid-state',
  'invalid-idempotency-key',
  'invalid-fqdn',
  'invalid-lb-ip',
  'invalid-deployment',
  'missing-lb-ip',
  'missing-token',
  'unsupported-pool',
  'reserved',
  'idempotency-key-reused',
  'token-mismatch',
  'conflict',
  'subdomain-conflict',
  'bucket-conflict',
  'fqdn-conflict',
  'already-active',
  'reservation-expired',
  'database-unavailable',
  'dns-unavailable',
  'provisioning-unavailable',
  'missing-region',
  'invalid-region',
  'invalid-access-key',
  'invalid-secret-key',
  'invalid-token',
  'unsupported-provider',
  'too-many-attempts',
  'object-storage-unavailable',
  'provider-unavailable',
] as const

export type ErrorCode = (typeof errorCodes)[number]

export const problem = problemOf(errorCodes).meta({ id: 'Problem' })
export type Problem = z.infer<typeof problem>

/** What is wrong with one field of a request. */
export const fieldFault = z
  .object({
    field: z.string().meta({ description: 'Empty when it is the body as a whole.' }),
    detail: z.string(),
  })
  .meta({ id: 'FieldFault' })
export type FieldFault = Readonly<z.infer<typeof fieldFault>>

/** What is said of a request with many fields, so that a form can show all that is wrong at once. */
export const deploymentProblem = problem
  .extend({
    field: z
      .string()
      .optional()
      .meta({ description: 'With `invalid-deployment`: the first faulty field, of which `detail` tells.' }),
    faults: z
      .array(fieldFault)
      .min(1)
      .optional()
      .meta({ description: 'With `invalid-deployment`: every faulty field, once, in the order of the request.' }),
  })
  .meta({ id: 'DeploymentProblem' })
export type DeploymentProblem = z.infer<typeof deploymentProblem>

export const { fault, faultOf } = faultsOf(errorCodes, 'invalid-format')

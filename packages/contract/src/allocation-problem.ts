import * as z from 'zod'
import { commonErrorCodes, createProblemSchema, createRules } from './problem.ts'

/** Every error code of the allocation API. */
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
  'pool-draining',
  'reserved',
  'idempotency-key-reused',
  'forbidden',
  'token-mismatch',
  'conflict',
  'cooling-off',
  'subdomain-conflict',
  'bucket-conflict',
  'fqdn-conflict',
  'fqdn-remains',
  'domain-not-proven',
  'in-progress',
  'destroy-incomplete',
  'still-up',
  'plan-failed',
  'lock-not-recorded',
  'already-active',
  'not-active',
  'reservation-expired',
  'database-unavailable',
  'database-read-only',
  'dns-unavailable',
  'dns-writes-off',
  'not-stopped',
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
  'too-many-readers',
  'invalid-import',
  'not-empty',
  'lease-changed',
  'witness-unavailable',
] as const

export type ErrorCode = (typeof errorCodes)[number]
const errorCode = z.enum(errorCodes).meta({ id: 'ErrorCode' })

export const problem = createProblemSchema(errorCode).meta({ id: 'Problem' })
export type Problem = z.infer<typeof problem>

/** What is wrong with one field of a request. It is an item of the field `faults`. */
export const fieldFault = z
  .object({
    field: z.string().meta({ description: 'Empty if the body as a whole is invalid.' }),
    detail: z.string(),
  })
  .meta({ id: 'FieldFault' })
export type FieldFault = Readonly<z.infer<typeof fieldFault>>

/** The error body of a request with many fields, so that a form can show every invalid field. */
export const deploymentProblem = problem
  .extend({
    field: z
      .string()
      .optional()
      .meta({ description: 'With `invalid-deployment`: the first invalid field, which `detail` describes.' }),
    faults: z
      .array(fieldFault)
      .min(1)
      .optional()
      .meta({ description: 'With `invalid-deployment`: every invalid field, once, in the order of the request.' }),
  })
  .meta({ id: 'DeploymentProblem' })
export type DeploymentProblem = z.infer<typeof deploymentProblem>

export const { rule, violation, firstViolation } = createRules(errorCodes, 'invalid-format')

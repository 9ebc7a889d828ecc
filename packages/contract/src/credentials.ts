import * as z from 'zod'
import { type ErrorCode, problem, rule, violation } from './allocation-problem.ts'
import { trim } from './common.ts'
import { canonicalName } from './fields.ts'
import {
  ACCESS_KEY,
  accessKeyError,
  objectStorageRegions,
  SECRET_KEY,
  secretKeyError,
  TOKEN,
  tokenError,
} from './object-storage-credentials.ts'

const regionMissing = rule('missing-region', `region is required: one of ${objectStorageRegions.join(', ')}.`)
const regionInvalid = rule('invalid-region', `region must be one of ${objectStorageRegions.join(', ')}, in lower case.`)

/** Case-sensitive, as in the scope of an AWS signature. */
export const objectStorageRegion = z
  .preprocess(
    value => (typeof value === 'string' ? value.trim() || undefined : (value ?? undefined)),
    z.enum(objectStorageRegions, {
      error: issue => (issue.input === undefined ? regionMissing : regionInvalid).error(issue),
    }),
  )
  .meta({ description: 'Case-sensitive.', example: 'fsn1' })

/** A secret, trimmed because copying from a console adds white space. No error quotes it. */
const secret = (code: ErrorCode, pattern: RegExp, findError: (text: string) => string | null) =>
  z
    .string(rule(code, findError('') ?? ''))
    .regex(pattern, { ...rule(code, value => findError(String(value).trim()) ?? ''), abort: true })
    .overwrite(trim)
    .check(({ value, issues }) => {
      const detail = findError(value)
      if (detail !== null) issues.push(violation(code, detail))
    })

const accessKey = secret('invalid-access-key', ACCESS_KEY, accessKeyError).meta({
  description: '16 to 128 visible ASCII characters.',
})
const secretKey = secret('invalid-secret-key', SECRET_KEY, secretKeyError).meta({
  description: '32 to 256 visible ASCII characters.',
})
const token = secret('invalid-token', TOKEN, tokenError).meta({ description: '1 to 4096 visible ASCII characters.' })

const createProviderSchema = (providers: readonly string[]) => {
  const unsupported = rule('unsupported-provider', `provider must be one of ${providers.join(', ')}.`)
  return z
    .string(unsupported)
    .regex(/\S/, { ...unsupported, abort: true })
    .overwrite(canonicalName)
    .refine(name => providers.includes(name), unsupported)
}

/**
 * Keys to check with the object storage. The order of the fields is the order of validation. If `provider` is present, it
 * must be the configured one, so that keys are never sent to another provider.
 */
export const validateKeysRequest = (provider: string) =>
  z.object(
    {
      region: objectStorageRegion,
      accessKey,
      secretKey,
      provider: z
        .preprocess(
          value => (value === null || value === '' ? undefined : value),
          createProviderSchema([provider]).optional(),
        )
        .meta({ nullable: true, description: 'The configured provider. Empty or absent: the same.' }),
      sovereignFQDN: z.string().optional().catch(undefined).meta({
        description: 'Of a deployment to be created: the response has its bucket.',
      }),
    },
    rule('missing-region', 'The body must be a JSON object with region, accessKey and secretKey.'),
  )

/** A token to check with one of `providers`. */
export const validateTokenRequest = (providers: readonly string[]) =>
  z.object(
    { provider: createProviderSchema(providers), token },
    rule('unsupported-provider', 'The body must be a JSON object with provider and token.'),
  )

export const validationResult = z
  .object({
    valid: z.boolean(),
    message: z.string().meta({ description: 'For people; it never quotes the provider.' }),
    bucket: z
      .object({ name: z.string(), found: z.enum(['absent', 'owned', 'foreign']) })
      .optional()
      .meta({
        description:
          'With `sovereignFQDN`, if the keys are valid. `owned`: it exists, so that a create needs `adoptBucket: true`. `foreign`: it exists, and the keys do not own it.',
      }),
  })
  .meta({ id: 'ValidationResult' })
export type ValidationResult = z.infer<typeof validationResult>

/** An error in both shapes, for clients that read only `valid` and `message`. */
export const validationProblem = problem
  .extend({ valid: z.literal(false), message: z.string().meta({ description: 'The same as `detail`.' }) })
  .meta({ id: 'ValidationProblem' })
export type ValidationProblem = z.infer<typeof validationProblem>

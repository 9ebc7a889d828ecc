import * as z from 'zod'
import { type ErrorCode, fault, problem } from './allocation-problem.ts'
import { canonicalName } from './names.ts'
import { accessKeyFault, objectStorageRegions, secretKeyFault, tokenFault } from './storage-keys.ts'
import { trimmed } from './text.ts'

const regionMissing = fault('missing-region', `region is required: one of ${objectStorageRegions.join(', ')}.`)
const regionInvalid = fault(
  'invalid-region',
  `region must be one of ${objectStorageRegions.join(', ')}, in small letters.`,
)

/** Case-sensitive, as it is in a signature's scope. */
export const objectStorageRegion = z
  .preprocess(
    value => (typeof value === 'string' ? value.trim() || undefined : (value ?? undefined)),
    z.enum(objectStorageRegions, { error: ({ input }) => (input === undefined ? regionMissing : regionInvalid) }),
  )
  .meta({ description: 'Case-sensitive.', example: 'fsn1' })

/** A secret, without the white space that copying from a console leaves around it. No fault quotes it. */
const secret = (code: ErrorCode, faultIn: (text: string) => string | null) =>
  z
    .string({ error: fault(code, faultIn('') ?? '') })
    .overwrite(trimmed)
    .check(({ value, issues }) => {
      const detail = faultIn(value)
      if (detail !== null) issues.push({ code: 'custom', input: undefined, message: fault(code, detail) })
    })

const accessKey = secret('invalid-access-key', accessKeyFault).meta({
  description: '16 to 128 visible ASCII characters.',
})
const secretKey = secret('invalid-secret-key', secretKeyFault).meta({
  description: '32 to 256 visible ASCII characters.',
})
const token = secret('invalid-token', tokenFault).meta({ description: '1 to 4096 visible ASCII characters.' })

const providerOf = (providers: readonly string[]) => {
  const error = fault('unsupported-provider', `provider must be one of those known here: ${providers.join(', ')}.`)
  return z
    .string(error)
    .overwrite(canonicalName)
    .refine(name => providers.includes(name), { error })
}

/**
 * Keys to be checked at the object storage; the order of the fields is the order in which faults are decided. A
 * `provider` that is named must be the one that would be asked: keys of one are never sent to another.
 */
export const validateKeysRequest = (provider: string) =>
  z.object(
    {
      region: objectStorageRegion,
      accessKey,
      secretKey,
      provider: z.preprocess(
        value => (value === null || value === '' ? undefined : value),
        providerOf([provider]).optional(),
      ),
    },
    fault('missing-region', 'The body must be a JSON object with region, accessKey and secretKey.'),
  )

/** A token to be checked at one of `providers`. */
export const validateTokenRequest = (providers: readonly string[]) =>
  z.object(
    { provider: providerOf(providers), token },
    fault('unsupported-provider', 'The body must be a JSON object with provider and token.'),
  )

export const validationResult = z
  .object({
    valid: z.boolean(),
    message: z.string().meta({ description: 'For a person; never the words of the provider.' }),
  })
  .meta({ id: 'ValidationResult' })
export type ValidationResult = z.infer<typeof validationResult>

/** An error in both shapes, so that a client that knows only `valid` and `message` is told the same. */
export const validationProblem = problem
  .extend({ valid: z.literal(false), message: z.string().meta({ description: 'The same as `detail`.' }) })
  .meta({ id: 'ValidationProblem' })
export type ValidationProblem = z.infer<typeof validationProblem>

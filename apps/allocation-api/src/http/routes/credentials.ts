import {
  type ValidationProblem,
  type ValidationResult,
  validateKeysRequest,
  validateTokenRequest,
} from '@pool/contract'
import type { Context } from 'hono'
import type { CredentialService, ValidationOutcome } from '../../credentials/service.ts'
import { type ErrorOutcome, type Handlers, type HttpEnv, parseBody, sendError } from '../request.ts'

export interface KnownProviders {
  /** The provider of the object storage. */
  readonly objectStorage: string
  /** The providers whose tokens can be checked. */
  readonly token: readonly string[]
}

/** Sends an error in both shapes that clients of these two operations read. */
const sendValidationError = (c: Context<HttpEnv>, error: ErrorOutcome) =>
  sendError(c, error, (detail): Pick<ValidationProblem, 'valid' | 'message'> => ({ valid: false, message: detail }))

const sendOutcome = (
  c: Context<HttpEnv>,
  outcome: ValidationOutcome,
  unavailableCode: 'object-storage-unavailable' | 'provider-unavailable',
  bucket?: ValidationResult['bucket'],
) => {
  if (outcome.kind === 'too-many-attempts') {
    const detail = `Too many credential checks from your address; retry in ${outcome.retryAfterSeconds} s.`
    return sendValidationError(c, { ...outcome, detail })
  }
  if (outcome.kind === 'unavailable') return sendValidationError(c, { kind: unavailableCode, detail: outcome.message })
  c.env.outcome = outcome.kind
  const body: ValidationResult = {
    valid: outcome.kind === 'accepted',
    message: outcome.message,
    ...(bucket && { bucket }),
  }
  return c.json(body, 200)
}

/** Checks of credentials. Only the provider receives the credentials of a request. */
export const credentialHandlers = (
  credentials: CredentialService,
  providers: KnownProviders,
): Pick<Handlers, 'validateObjectStorageKeys' | 'validateToken'> => {
  const keysRequest = validateKeysRequest(providers.objectStorage)
  const tokenRequest = validateTokenRequest(providers.token)
  return {
    validateObjectStorageKeys: async c => {
      const body = await parseBody(c, keysRequest)
      if (!body.ok) return sendValidationError(c, body.error)
      const { sovereignFQDN, ...keys } = body.value
      const outcome = await credentials.validateKeys(keys, c.env.address, c.req.raw.signal)
      const isAsked = outcome.kind === 'accepted' && sovereignFQDN !== undefined
      const bucket = isAsked ? await credentials.findBucketOf(keys, sovereignFQDN) : undefined
      return sendOutcome(c, outcome, 'object-storage-unavailable', bucket)
    },
    validateToken: async c => {
      const body = await parseBody(c, tokenRequest)
      if (!body.ok) return sendValidationError(c, body.error)
      const outcome = await credentials.validateToken(body.value, c.env.address, c.req.raw.signal)
      return sendOutcome(c, outcome, 'provider-unavailable')
    },
  }
}

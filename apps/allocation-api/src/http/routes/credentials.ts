import {
  type ValidationProblem,
  type ValidationResult,
  validateKeysRequest,
  validateTokenRequest,
} from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { z } from 'zod'
import type { CredentialService, ValidationOutcome } from '../../credentials/service.ts'
import { problem, type Refused } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { callerOf, type Parsed, parse, readRequiredJson } from '../validate.ts'

export type CredentialVerbs = CredentialService

export interface KnownProviders {
  /** The one whose object storage is asked. */
  readonly objectStorage: string
  /** Those whose tokens can be checked. */
  readonly token: readonly string[]
}

/** An error in both shapes that clients of these two calls read. */
const refuse = (c: Context<HttpEnv>, refused: Refused) =>
  problem(c, refused, (detail): Pick<ValidationProblem, 'valid' | 'message'> => ({ valid: false, message: detail }))

const readBody = async <Schema extends z.ZodType>(
  c: Context<HttpEnv>,
  schema: Schema,
): Promise<Parsed<z.infer<Schema>>> => {
  const json = await readRequiredJson(c)
  return json.ok ? parse(schema, json.value) : json
}

const answer = (
  c: Context<HttpEnv>,
  outcome: ValidationOutcome,
  unavailable: 'object-storage-unavailable' | 'provider-unavailable',
) => {
  if (outcome.kind === 'too-many-attempts') {
    return refuse(c, {
      ...outcome,
      detail: `Credentials were checked too often from your address; try again in ${outcome.retryAfterSeconds} s.`,
    })
  }
  if (outcome.kind === 'unavailable') return refuse(c, { kind: unavailable, detail: outcome.message })
  c.set('outcome', outcome.kind)
  const body: ValidationResult = { valid: outcome.kind === 'accepted', message: outcome.message }
  return c.json(body, 200)
}

/** The checks of credentials. Nothing of a body goes anywhere but to the provider that it is meant for. */
export const credentialRoutes = (verbs: CredentialVerbs, known: KnownProviders) => {
  const [keys, token] = [validateKeysRequest(known.objectStorage), validateTokenRequest(known.token)]
  return new Hono<HttpEnv>()
    .post('/object-storage/validate', async c => {
      const request = await readBody(c, keys)
      if (!request.ok) return refuse(c, request.refused)
      const outcome = await verbs.validateKeys(request.value, callerOf(c).address, c.req.raw.signal)
      return answer(c, outcome, 'object-storage-unavailable')
    })
    .post('/validate', async c => {
      const request = await readBody(c, token)
      if (!request.ok) return refuse(c, request.refused)
      const outcome = await verbs.validateToken(request.value, callerOf(c).address, c.req.raw.signal)
      return answer(c, outcome, 'provider-unavailable')
    })
}

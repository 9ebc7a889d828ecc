import type { ConfigIssue, Env } from '@pool/node-service/env'
import { describeUnknownVariable, findUnknownVariables } from '@pool/node-service/unknown-variables'
import type { Config } from './config.ts'
import { knownVariables } from './variables.ts'

/** 128 bits in hexadecimal digits. Terraform's module of the witness requires as many characters. */
const MIN_TOKEN_LENGTH = 32

/** What is valid in the environment, but probably a mistake. No detail quotes a value. */
export const findConfigWarnings = (env: Env, { operator }: Pick<Config, 'operator'>): readonly ConfigIssue[] => {
  const unknown = findUnknownVariables(env, knownVariables).map(found => ({
    variable: found.variable,
    detail: describeUnknownVariable(found),
  }))
  const hasShortToken = operator?.tokens.some(token => token.length < MIN_TOKEN_LENGTH) ?? false
  const detail = `has a token of fewer than ${MIN_TOKEN_LENGTH} characters, which can be guessed; replace it by the output of: openssl rand -hex 32`
  return hasShortToken ? [...unknown, { variable: 'PDM_OPERATOR_TOKENS', detail }] : unknown
}

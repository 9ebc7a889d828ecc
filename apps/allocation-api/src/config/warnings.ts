import type { ConfigIssue, Env } from '@pool/runtime/service/env'
import { findUnknownVariables } from '@pool/runtime/service/unknown-variables'
import type { Config } from './config.ts'
import { knownVariables } from './variables.ts'

/** 128 bits in hexadecimal digits. Terraform's module of the witness requires as many characters. */
const MIN_TOKEN_LENGTH = 32

/** What is valid in the environment, but probably a mistake. No detail quotes a value. */
export const findConfigWarnings = (
  env: Env,
  { operator, trustedProxies }: Pick<Config, 'operator' | 'trustedProxies'>,
): readonly ConfigIssue[] => {
  const hasShortToken = operator?.tokens.some(token => token.length < MIN_TOKEN_LENGTH) ?? false
  const shortToken = `has a token of fewer than ${MIN_TOKEN_LENGTH} characters, which can be guessed; replace it by the output of: openssl rand -hex 32`
  const everyPeer =
    'contains every address, so any client can claim to be any other; list the networks of your proxies only'
  return [
    ...findUnknownVariables(env, knownVariables),
    ...(hasShortToken ? [{ variable: 'PDM_OPERATOR_TOKENS', detail: shortToken }] : []),
    ...(trustedProxies.some(({ prefix }) => prefix === 0)
      ? [{ variable: 'PDM_TRUSTED_PROXIES', detail: everyPeer }]
      : []),
  ]
}

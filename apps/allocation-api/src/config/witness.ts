import { findOwnSegment } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import type { EnvReader } from '@pool/runtime/service/env'

/** The lease witness that operators see. */
export interface WitnessSettings {
  /** Without a slash at the end. */
  readonly url: string
  readonly token: string
}

const URL_VARIABLE = 'PDM_WITNESS_URL'
const TOKEN_VARIABLE = 'PDM_WITNESS_TOKEN'

/** Null: neither variable is set, or they are invalid. The issues quote no value. */
export const readWitness = (env: EnvReader): WitnessSettings | null => {
  const text = env.text(URL_VARIABLE) ?? ''
  const token = env.text(TOKEN_VARIABLE) ?? ''
  if (text === '' && token === '') return null
  const url = URL.parse(text)
  const isValid = url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash
  if (!isValid) {
    env.addIssue(
      URL_VARIABLE,
      'must be an http or https URL without a user and a query, such as https://witness.example',
    )
  }
  const own = url && findOwnSegment(url.pathname, leaseOperations)
  if (own) env.addIssue(URL_VARIABLE, `must have no /${own} in its path: the service adds it`)
  // The syntax of a bearer token (RFC 6750 section 2.1).
  if (!/^[A-Za-z0-9\-._~+/]+=*$/.test(token)) {
    env.addIssue(TOKEN_VARIABLE, `must be the bearer token for ${URL_VARIABLE}`)
  }
  return isValid ? { url: url.href.replace(/\/+$/, ''), token } : null
}

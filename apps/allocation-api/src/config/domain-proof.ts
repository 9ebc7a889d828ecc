import type { EnvReader } from '@pool/runtime/service/env'
import { isIpv4, isIpv6 } from './ip-address.ts'

export interface DomainProofSettings {
  /** Whether a deployment in mode `byo` needs a TXT record that proves the control of its domain. */
  readonly isRequired: boolean
  /** Addresses of the resolvers, with ports if they are not 53; empty: those of the operating system. */
  readonly resolvers: readonly string[]
}

/** An IPv4 address, or an IPv6 address; with a port also `192.0.2.1:5353` and `[2001:db8::1]:5353`. */
const isResolver = (text: string): boolean => {
  const [, bracketed, plain, port] = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::(\d{1,5}))?$/.exec(text) ?? []
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) return false
  if (plain !== undefined) return isIpv4(plain)
  return isIpv6(bracketed ?? text)
}

export const readDomainProof = (env: EnvReader): DomainProofSettings => {
  const resolvers = env.list('PDM_BYO_RESOLVERS') ?? []
  for (const resolver of resolvers) {
    if (!isResolver(resolver)) {
      env.addIssue(
        'PDM_BYO_RESOLVERS',
        `"${resolver}" is not an IP address, with a port as in 192.0.2.1:5353 or [2001:db8::1]:5353`,
      )
    }
  }
  return { isRequired: env.oneOf('PDM_BYO_PROOF', ['required', 'off'], 'off') === 'required', resolvers }
}

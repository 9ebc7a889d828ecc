import {
  type AddressOptions,
  createUpdateRequest,
  firstViolation,
  splitTarget,
  type TargetChange,
} from '@pool/contract'

export type ParsedTarget =
  | { readonly kind: 'target'; readonly change: TargetChange }
  | { readonly kind: 'invalid'; readonly detail: string }

const IPV4 = /^[\d.]+$/

/**
 * The target in a text such as `203.0.113.10, 2001:db8::10`, `console 203.0.113.11` among them, a host name, or name servers with
 * `DS 12345 13 2 0A…`: as the service shows it. It replaces the current one: addresses that are not in the text are removed.
 */
export const parseTarget = (text: string, options: AddressOptions): ParsedTarget => {
  const parts = text.split(',').flatMap(part => part.trim() || [])
  const fields: Record<string, unknown> = {}
  const names: string[] = []
  const ds: object[] = []
  for (const part of parts) {
    const [word = '', ...rest] = part.split(/\s+/)
    if (word === 'console') fields.consoleLoadBalancerIP = rest.join(' ')
    else if (word === 'DS') {
      const [keyTag, algorithm, digestType] = rest.map(Number)
      ds.push({ keyTag, algorithm, digestType, digest: rest.slice(3).join('') })
    } else if (part.includes(':')) fields.loadBalancerIPv6 = part
    else if (IPV4.test(part)) fields.loadBalancerIP = part
    else names.push(part)
  }
  if (names.length === 1 && ds.length === 0) fields.loadBalancerHostname = names[0]
  else if (names.length > 0) fields.nameservers = names
  if (ds.length > 0) fields.ds = ds
  const isAddresses = names.length === 0 && ds.length === 0
  const removed = isAddresses ? { loadBalancerIP: null, loadBalancerIPv6: null, consoleLoadBalancerIP: null } : {}
  const request = { subdomain: 'name', ...removed, ...fields }
  const result = createUpdateRequest(options, true).safeParse(request)
  return result.success
    ? { kind: 'target', change: splitTarget(result.data).target }
    : { kind: 'invalid', detail: firstViolation(result.error).detail }
}

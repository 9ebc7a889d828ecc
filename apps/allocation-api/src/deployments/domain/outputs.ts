import { type DeploymentResult, loadBalancerIP } from '@pool/contract'
import { sanitizeJson, sanitizeText } from '../../lib/sanitize-text.ts'

export type Read =
  | { readonly kind: 'read'; readonly result: DeploymentResult }
  | { readonly kind: 'fault'; readonly reason: string }

/** What the module says of the infrastructure that it made, as a result; or what is wrong with it. */
export const resultOf = (sovereignFQDN: string, outputs: Readonly<Record<string, unknown>>): Read => {
  const { load_balancer_ip, control_plane_ip, details } = outputs
  const address = loadBalancerIP.safeParse(load_balancer_ip)
  if (!address.success) {
    return {
      kind: 'fault',
      reason: 'The infrastructure is up, but its module has no output load_balancer_ip that is a unicast IPv4 address.',
    }
  }
  return {
    kind: 'read',
    result: {
      sovereignFQDN,
      loadBalancerIP: address.data,
      ...(typeof control_plane_ip === 'string' ? { controlPlaneIP: sanitizeText(control_plane_ip) } : {}),
      ...(details ? { details: sanitizeJson(details) } : {}),
    },
  }
}

import { type DeploymentResult, loadBalancerIP } from '@pool/contract'
import { sanitizeJson, sanitizeText } from '../../lib/sanitize-text.ts'
import type { AccessKeyPair, DeploymentSpec, RunState } from './types.ts'

/** How a new or orphaned deployment continues. */
export type ResumeDecision =
  | { readonly kind: 'apply' }
  /** The infrastructure is up; only the name remains to be committed. */
  | { readonly kind: 'commit'; readonly result: DeploymentResult }
  | { readonly kind: 'fail'; readonly reason: string }

/** A deployment that crashes every process must not crash them indefinitely. Releases at shutdown count too. */
const MAX_RUNS = 20

export const CANCELLED = 'Cancelled.'

/**
 * Credentials exist only in the memory of the process that accepted the request. After a crash, a deployment can resume
 * if it needs no credentials, or if its infrastructure is already up.
 */
export const decideResume = (
  { spec, result, isCancelled, pendingError, generation }: RunState,
  credentials: AccessKeyPair | null,
): ResumeDecision => {
  // Its name may have been released already, and reserved by another client.
  if (pendingError !== null) return { kind: 'fail', reason: pendingError }
  if (isCancelled) return { kind: 'fail', reason: CANCELLED }
  if (result) return { kind: 'commit', result }
  if (generation > MAX_RUNS) {
    const reason = `Gave up after ${MAX_RUNS} runs: every process running this deployment exited before it finished.`
    return { kind: 'fail', reason }
  }
  if (!spec.storage || credentials) return { kind: 'apply' }
  return {
    kind: 'fail',
    reason:
      'The process running this deployment exited, and the object storage credentials were only in its memory. Create it again; Terraform resumes from the saved state.',
  }
}

/** The object storage that the service is configured with. */
export interface StorageProvider {
  /** As written in `providers`, and in the name of the cluster's secret. */
  readonly provider: string
  readonly domain: string
}

/** The input variables of a deployment module. Without object storage, region, bucket and credentials are empty. */
export const toModuleVariables = (id: string, spec: DeploymentSpec, { provider, domain }: StorageProvider) => ({
  deployment_id: id,
  org_name: spec.orgName,
  org_email: spec.orgEmail,
  sovereign_fqdn: spec.sovereignFQDN,
  region: spec.region,
  ssh_public_key: spec.sshPublicKey,
  provider_names: JSON.stringify(spec.providers),
  object_storage_provider: provider,
  object_storage_domain: domain,
  object_storage_region: spec.storage?.region ?? '',
  object_storage_bucket: spec.storage?.bucket ?? '',
})

export const toModuleSecrets = (credentials: AccessKeyPair | null) => ({
  object_storage_access_key: credentials?.accessKey ?? '',
  object_storage_secret_key: credentials?.secretKey ?? '',
})

export type OutputsResult =
  | { readonly kind: 'valid'; readonly result: DeploymentResult }
  | { readonly kind: 'invalid'; readonly reason: string }

/** Validates the outputs of a deployment module. */
export const parseModuleOutputs = (
  sovereignFQDN: string,
  outputs: Readonly<Record<string, unknown>>,
): OutputsResult => {
  const { load_balancer_ip, control_plane_ip, details } = outputs
  const address = loadBalancerIP.safeParse(load_balancer_ip)
  if (!address.success) {
    return {
      kind: 'invalid',
      reason: 'The infrastructure is up, but its module has no output load_balancer_ip with a unicast IPv4 address.',
    }
  }
  return {
    kind: 'valid',
    result: {
      sovereignFQDN,
      loadBalancerIP: address.data,
      ...(typeof control_plane_ip === 'string' ? { controlPlaneIP: sanitizeText(control_plane_ip) } : {}),
      ...(details ? { details: sanitizeJson(details) } : {}),
    },
  }
}

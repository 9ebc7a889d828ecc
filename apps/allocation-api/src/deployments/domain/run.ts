import { type DeploymentResult, loadBalancerIP } from '@pool/contract'
import { sanitizeJson, sanitizeText } from '../../lib/text.ts'
import type { Operation } from './lifecycle.ts'
import type { AccessKeyPair, DeploymentSpec, RunState } from './types.ts'

/** How a new or orphaned run continues. */
export type ResumeDecision =
  | { readonly kind: 'apply' | 'destroy' }
  /** The infrastructure is up; only the name remains to be committed. */
  | { readonly kind: 'commit'; readonly result: DeploymentResult }
  /** The infrastructure is gone; only the name remains to be withdrawn. */
  | { readonly kind: 'withdraw' }
  | { readonly kind: 'fail'; readonly reason: string }

/** A deployment that crashes every process must not crash them indefinitely. Releases at shutdown count too. */
const MAX_RUNS = 20

export const CANCELLED = 'Cancelled.'

/** What a client does after an operation that did not finish. */
export const toRetryAdvice = (operation: Operation): string =>
  operation === 'destroy'
    ? 'Destroy the deployment again.'
    : 'Apply the deployment again; Terraform resumes from the saved state.'

/** The step of the operation that was finished last decides, whether the run was cancelled or not. */
const decideFinalStep = ({
  operation,
  isApplied,
  result,
  hasInfrastructure,
  isCancelled,
}: RunState): ResumeDecision | null => {
  if (operation === 'destroy') return hasInfrastructure ? null : { kind: 'withdraw' }
  return isApplied && result && !isCancelled ? { kind: 'commit', result } : null
}

/**
 * Credentials exist only in the memory of the process that accepted the request. After a crash, a run can resume if it
 * needs no credentials, or if Terraform has finished already.
 */
export const decideResume = (state: RunState, credentials: AccessKeyPair | null): ResumeDecision => {
  const { spec, operation, isCancelled, pendingError, attempt } = state
  // Its name may have been released already, and reserved by another client.
  if (pendingError !== null) return { kind: 'fail', reason: pendingError }
  const final = decideFinalStep(state)
  if (final) return final
  if (isCancelled) return { kind: 'fail', reason: CANCELLED }
  if (attempt > MAX_RUNS) {
    const reason = `Gave up after ${MAX_RUNS} runs: every process running this deployment exited before it finished.`
    return { kind: 'fail', reason }
  }
  if (!spec.storage || credentials) return { kind: operation === 'destroy' ? 'destroy' : 'apply' }
  return {
    kind: 'fail',
    reason: `The process running this deployment exited, and the object storage credentials were only in its memory. ${toRetryAdvice(operation)}`,
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

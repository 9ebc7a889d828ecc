import type { DeploymentSpec, ObjectStorageCredentials } from './types.ts'

export interface StorageProvider {
  /** As it stands in `providers`, and in the name of the cluster's secret. */
  readonly provider: string
  readonly domain: string
}

/** The interface of a deployment module: what it is told. Without object storage region, bucket and keys are empty. */
export const variablesOf = (id: string, order: DeploymentSpec, { provider, domain }: StorageProvider) => ({
  deployment_id: id,
  org_name: order.orgName,
  org_email: order.orgEmail,
  sovereign_fqdn: order.sovereignFQDN,
  region: order.region,
  ssh_public_key: order.sshPublicKey,
  provider_names: JSON.stringify(order.providers),
  object_storage_provider: provider,
  object_storage_domain: domain,
  object_storage_region: order.storage?.region ?? '',
  object_storage_bucket: order.storage?.bucket ?? '',
})

export const secretsOf = (keys: ObjectStorageCredentials | null) => ({
  object_storage_access_key: keys?.accessKey ?? '',
  object_storage_secret_key: keys?.secretKey ?? '',
})

import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { GatewaySite } from '@pool/test-kit/terraform/gateway-site.ts'
import { minio } from '@pool/test-kit/terraform/minio.ts'
import { startProvider } from '@pool/test-kit/terraform/provider.ts'
import { onTestFinished } from 'vitest'
import type { TerraformOptions } from '../../../src/deployments/terraform/terraform.ts'
import { type Site, variables } from './terraform.ts'

const bucketModule = fileURLToPath(new URL('../../../../../infra/object-storage-bucket', import.meta.url))

export const BUCKET = 'catalyst-acme-pool-test'

/** The variables of a deployment with object storage, beside its secrets. */
export const storageVariables = {
  ...variables,
  object_storage_region: 'fsn1',
  object_storage_bucket: BUCKET,
  object_storage_domain: 'storage.test',
}

/** A module with the bucket module of this repository, followed by `more`. */
export const renderBucketModule = ({ options }: Site, more = ''): string => `
variable "object_storage_region" { type = string }
variable "object_storage_bucket" { type = string }
variable "object_storage_domain" { type = string }
module "bucket" {
  source                    = "${relative(options.moduleDir ?? '', bucketModule)}"
  object_storage_region     = var.object_storage_region
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
  object_storage_bucket     = var.object_storage_bucket
  object_storage_domain     = var.object_storage_domain
}
${more}`

/** Options with which Terraform uses a provider in this process, until the test ends. */
export const withMinio = async (
  options: TerraformOptions,
  ...[connect, version]: Parameters<typeof minio>
): Promise<TerraformOptions> => {
  const { reattach, stop } = await startProvider(minio(connect, version))
  onTestFinished(stop)
  const env = { ...options.env, TF_REATTACH_PROVIDERS: reattach }
  return { ...options, env, passthrough: [...options.passthrough, 'TF_REATTACH_PROVIDERS'] }
}

/** Options with which Terraform uses the provider of the site: a double, or with REAL_PROVIDERS=1 the real one. */
export const withGatewayProvider = async (options: TerraformOptions, site: GatewaySite): Promise<TerraformOptions> =>
  site.realEnvironment
    ? { ...options, env: { ...options.env, ...site.realEnvironment } }
    : withMinio(options, connection => site.connect(connection))

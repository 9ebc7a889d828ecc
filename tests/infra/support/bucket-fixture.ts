import { join } from 'node:path'
import type { GatewaySite } from '@pool/test-kit/terraform/gateway-site.ts'
import { ObjectStorage } from '@pool/test-kit/terraform/memory-store.ts'
import { type BucketVersion, minio } from '@pool/test-kit/terraform/minio.ts'
import { selectProviderVersion } from '@pool/test-kit/terraform/real-providers.ts'
import { createModuleFixture, type ModuleFixture, SECRET_MARK, type Variables } from './module-fixture.ts'

/** Keys of minimum length that contain the mark. */
export const accessKey = `${SECRET_MARK}-ACCES`
export const secretKey = `${SECRET_MARK}-SECRET`.padEnd(32, '\\"$%{')

export const bucketName = 'catalyst-acme-pool-test'

export const inputs: Variables = {
  object_storage_region: 'fsn1',
  object_storage_access_key: accessKey,
  object_storage_secret_key: secretKey,
  object_storage_bucket: bucketName,
  object_storage_domain: 'storage.test',
}

/** A root module that calls the bucket module as in the README, followed by `more`. */
export const renderRootModule = (more = ''): string => `
${Object.keys(inputs)
  .map(name => `variable "${name}" {\n  type = string\n  sensitive = ${name !== 'object_storage_domain'}\n}`)
  .join('\n')}
module "bucket" {
  source = "./infra/object-storage-bucket"
${Object.keys(inputs)
  .map(name => `  ${name} = var.${name}`)
  .join('\n')}
}
${more}`

/** Beside an import block: OpenTofu looks for the provider of an imported resource in the root module. */
export const bucketProvider = `terraform {
  required_providers {
    minio = { source = "aminueza/minio" }
  }
}
`

export interface BucketFixture extends ModuleFixture {
  readonly storage: ObjectStorage
}

interface Options {
  readonly rootModule?: string
  readonly variables?: Variables
  /** Other folders of the repository that the root module uses. */
  readonly folders?: readonly string[]
  /** Default: storage in memory. */
  readonly site?: GatewaySite
  /** The version of the provider. Default: one that the module permits. */
  readonly version?: BucketVersion
  change?(moduleDirectory: string): void
}

/** The bucket module with its own object storage, which has a user with the keys. */
export async function createBucketFixture({
  rootModule,
  variables = inputs,
  folders = [],
  site,
  version,
  change,
}: Options = {}): Promise<BucketFixture> {
  const storage = new ObjectStorage()
  storage.users.set(accessKey, secretKey)
  const fixture = await createModuleFixture({
    folders: ['infra/object-storage-bucket', 'infra/object-storage-inputs', ...folders],
    rootModule,
    variables,
    ...(site?.realEnvironment
      ? { environment: site.realEnvironment }
      : { provider: () => minio(connection => (site ?? storage).connect(connection), version) }),
    change(directory) {
      if (site?.realEnvironment) selectProviderVersion(join(directory, 'versions.tf'))
      change?.(directory)
    },
  })
  return { ...fixture, storage }
}

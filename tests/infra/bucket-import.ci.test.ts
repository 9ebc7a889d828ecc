import { expect, test } from 'vitest'
import { bucketName, bucketProvider, createBucketFixture, inputs, renderRootModule } from './support/bucket-fixture.ts'
import { collapseWhitespace } from './support/module-fixture.ts'
import { changedPaths } from './support/plan.ts'
import { withTerraform } from './support/with-terraform.ts'

const to = 'module.bucket.minio_s3_bucket.backups'

/** Terraform 1.6 supports import blocks only in the root module and without for_each. */
const alwaysImported = renderRootModule(`${bucketProvider}import {\n  to = ${to}\n  id = "${bucketName}"\n}\n`)

/** Since Terraform 1.7, for_each makes the import depend on a variable. */
const importedOnDemand = renderRootModule(`${bucketProvider}
variable "bucket_survived" {
  type    = bool
  default = false
}
import {
  for_each = toset(var.bucket_survived ? ["${bucketName}"] : [])
  to       = ${to}
  id       = each.key
}
`)

withTerraform('a bucket that survived a reinstall', () => {
  test('makes an apply without an import fail and is not changed', async () => {
    const { storage, terraform } = await createBucketFixture({ rootModule: renderRootModule() })
    storage.put(bucketName, { objects: ['archive'] })
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain('bucket already exists!')
    expect(storage.buckets.get(bucketName)?.objects).toEqual(new Set(['archive']))
  })

  test.each([
    ['an import block', alwaysImported, inputs],
    ['an import block that a variable enables', importedOnDemand, { ...inputs, bucket_survived: true }],
  ])('is imported by %s, which can stay', async (_, root, variables) => {
    const { storage, plan, apply, terraform } = await createBucketFixture({ rootModule: root, variables })
    storage.put(bucketName, { objects: ['archive'] })
    const first = await plan()
    expect(first.resource_changes.map(({ address, change }) => [address, change.actions])).toEqual([[to, ['no-op']]])
    expect(changedPaths(first)).toEqual([])
    expect(collapseWhitespace(await apply())).toContain('1 imported, 0 added, 0 changed, 0 destroyed')
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
    expect(storage.buckets.get(bucketName)?.objects).toEqual(new Set(['archive']))
    const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
    expect(destroyed.code).toBe(1)
  })

  test('must exist: an import block fails the first apply', async () => {
    const { storage, terraform, set, apply } = await createBucketFixture({ rootModule: alwaysImported })
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain('could not read minio bucket')
    expect(storage.buckets.size).toBe(0)
    const other = await createBucketFixture({ rootModule: importedOnDemand })
    await other.apply()
    expect([...other.storage.buckets.keys()]).toEqual([bucketName])
    set(inputs)
    storage.put(bucketName)
    await apply()
  })

  test.each([
    ['that locks its objects', { locking: true }, 'object_locking'],
    ['that everyone can read', { policy: '{"Statement":[{"Action":["s3:GetObject"]}]}' }, 'acl'],
  ])('%s: the plan shows the difference', async (_, made, attribute) => {
    const { storage, plan } = await createBucketFixture({ rootModule: alwaysImported })
    storage.put(bucketName, made)
    expect(changedPaths(await plan())).toContain(`${to}.${attribute}`)
  })
})

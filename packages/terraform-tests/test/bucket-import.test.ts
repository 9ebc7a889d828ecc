import { expect, test } from 'vitest'
import { bucketName, bucketStage, inputs, using } from './fixtures/bucket-stage.ts'
import { changedPaths } from './fixtures/plan.ts'
import { flat } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'

const to = 'module.bucket.minio_s3_bucket.backups'

/** Terraform 1.6 knows this much: no for_each, and in the root module only. */
const always = using(`import {\n  to = ${to}\n  id = "${bucketName}"\n}\n`)

/** From 1.7 on a variable can decide. */
const switched = using(`
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
  test('stops an apply that does not know it, and nothing is touched', async () => {
    const { storage, terraform } = await bucketStage({ root: using() })
    storage.put(bucketName, { objects: ['archive'] })
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(flat(output)).toContain('bucket already exists!')
    expect(storage.buckets.get(bucketName)?.objects).toEqual(new Set(['archive']))
  })

  test.each([
    ['an import block', always, inputs],
    ['an import block that a variable switches on', switched, { ...inputs, bucket_survived: true }],
  ])('is adopted by %s, which may stay', async (_, root, variables) => {
    const { storage, plan, apply, terraform } = await bucketStage({ root, variables })
    storage.put(bucketName, { objects: ['archive'] })
    const first = await plan()
    expect(first.resource_changes.map(({ address, change }) => [address, change.actions])).toEqual([[to, ['update']]])
    // The real provider leaves this one open at an import, too: the change is in the state alone.
    expect(changedPaths(first)).toEqual([`${to}.force_destroy`])
    expect(flat(await apply())).toContain('1 imported, 0 added, 1 changed, 0 destroyed')
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
    expect(storage.buckets.get(bucketName)?.objects).toEqual(new Set(['archive']))
    const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
    expect(destroyed.code).toBe(1)
  })

  test('cannot be adopted where there is none: a block for the first apply is refused', async () => {
    const { storage, terraform, set, apply } = await bucketStage({ root: always })
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(flat(output)).toContain(`could not read bucket ${bucketName}`)
    expect(storage.buckets.size).toBe(0)
    const other = await bucketStage({ root: switched })
    await other.apply()
    expect([...other.storage.buckets.keys()]).toEqual([bucketName])
    set(inputs)
    storage.put(bucketName)
    await apply()
  })

  test.each([
    ['locks its objects', { locking: true }, 'object_locking'],
    ['is public', { policy: '{"Statement":[]}' }, 'acl'],
  ])('and %s: the plan shows it', async (_, made, attribute) => {
    const { storage, plan } = await bucketStage({ root: always })
    storage.put(bucketName, made)
    expect(changedPaths(await plan())).toContain(`${to}.${attribute}`)
  })
})

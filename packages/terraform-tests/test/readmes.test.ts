import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { accessKey, bucketStage, secretKey } from './fixtures/bucket-stage.ts'
import { declared, examples, listed, versions } from './fixtures/readme.ts'
import { repository, type Stage } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'

const modules = readdirSync(join(repository, 'infra'), { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name)

test.each(modules)('the tables of %s have every input and every output', module => {
  expect(declared(module, 'variables.tf', 'variable')).not.toEqual([])
  expect(listed(module, 'input')).toEqual(declared(module, 'variables.tf', 'variable'))
  expect(listed(module, 'output')).toEqual(declared(module, 'outputs.tf', 'output'))
})

test('the modules ask for the versions that their pages name', () => {
  expect(modules.map(module => [module, versions(module)])).toEqual([
    ['first-boot-secret', ['>= 1.6.0']],
    ['lease-witness', ['>= 1.6.0', '~> 5.14']],
    ['local-deployment', ['>= 1.6.0']],
    ['object-storage-bucket', ['>= 1.6.0', '~> 3.5']],
    ['object-storage-inputs', ['>= 1.6.0']],
  ])
  expect(examples('lease-witness')[0]).toContain('version = "~> 5.14"')
})

const [bucket = '', imported = '', switched = ''] = examples('object-storage-bucket')
const [secret = ''] = examples('first-boot-secret')
const name = 'catalyst-acme-pool-example'

/** The keys from the environment. */
const applied = async (root: string): Promise<Stage & { buckets: ReadonlyMap<string, unknown> }> => {
  const on = await bucketStage({ root, variables: {}, folders: ['infra/first-boot-secret'] })
  Object.assign(on.environment, {
    TF_VAR_object_storage_access_key: accessKey,
    TF_VAR_object_storage_secret_key: secretKey,
  })
  if (root.includes('import {')) on.storage.put(name)
  if (root.includes('bucket_survived')) on.environment.TF_VAR_bucket_survived = 'true'
  await on.apply()
  return { ...on, buckets: on.storage.buckets }
}

withTerraform('the READMEs of object storage', () => {
  test('have examples that apply, the one with the other, and give out no key', async () => {
    const { buckets, terraform } = await applied(bucket + secret)
    expect([...buckets.keys()]).toEqual([name])
    expect((await terraform('output', '-no-color')).output).toContain('"https://fsn1.your-objectstorage.com"')
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test.each([
    ['always', imported],
    ['on demand', switched],
  ])('have imports that adopt what is there: %s', async (_, block) => {
    const { buckets, terraform } = await applied(bucket + block)
    expect([...buckets.keys()]).toEqual([name])
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})

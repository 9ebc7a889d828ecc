import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { accessKey, createBucketFixture, secretKey } from './support/bucket-fixture.ts'
import { type ModuleFixture, repository } from './support/module-fixture.ts'
import { readBlockNames, readHclBlocks, readTableNames, readVersionConstraints } from './support/readme.ts'
import { withTerraform } from './support/terraform.ts'

const modules = globSync('*/variables.tf', { cwd: join(repository, 'infra') })
  .map(dirname)
  .toSorted()

test.each(modules)('the README of %s lists every input and every output', module => {
  expect(readBlockNames(module, 'variables.tf', 'variable')).not.toEqual([])
  expect(readTableNames(module, 'input')).toEqual(readBlockNames(module, 'variables.tf', 'variable'))
  expect(readTableNames(module, 'output')).toEqual(readBlockNames(module, 'outputs.tf', 'output'))
})

test('the modules require the documented versions', () => {
  expect(modules.map(module => [module, readVersionConstraints(module)])).toEqual([
    ['first-boot-secret', ['>= 1.6.0']],
    ['lease-witness', ['>= 1.6.0', '~> 5.19']],
    ['local-deployment', ['>= 1.6.0']],
    ['local-deployment-with-bucket', ['>= 1.6.0']],
    ['object-storage-bucket', ['>= 1.6.0', '>= 3.6.4, < 3.11.2']],
    ['object-storage-inputs', ['>= 1.6.0']],
  ])
  expect(readHclBlocks('lease-witness')[0]).toContain('version = "~> 5.19"')
})

const [bucket = '', alwaysImported = '', importedOnDemand = ''] = readHclBlocks('object-storage-bucket')
const [secret = ''] = readHclBlocks('first-boot-secret')
const name = 'catalyst-acme-pool-example'

/** Applies an example with keys from the environment. */
const applyExample = async (root: string): Promise<ModuleFixture & { buckets: ReadonlyMap<string, unknown> }> => {
  const fixture = await createBucketFixture({ rootModule: root, variables: {}, folders: ['infra/first-boot-secret'] })
  Object.assign(fixture.environment, {
    TF_VAR_object_storage_access_key: accessKey,
    TF_VAR_object_storage_secret_key: secretKey,
  })
  if (root.includes('import {')) fixture.storage.put(name)
  if (root.includes('bucket_survived')) fixture.environment.TF_VAR_bucket_survived = 'true'
  await fixture.apply()
  return { ...fixture, buckets: fixture.storage.buckets }
}

withTerraform('the READMEs of object storage', () => {
  test('have examples that can be applied in one configuration without showing a key', async () => {
    const { buckets, terraform } = await applyExample(bucket + secret)
    expect([...buckets.keys()]).toEqual([name])
    expect((await terraform('output', '-no-color')).output).toContain('"https://fsn1.your-objectstorage.com"')
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test.each([
    ['unconditional', alwaysImported],
    ['conditional', importedOnDemand],
  ])('have working import blocks: %s', async (_, block) => {
    const { buckets, terraform } = await applyExample(bucket + block)
    expect([...buckets.keys()]).toEqual([name])
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})

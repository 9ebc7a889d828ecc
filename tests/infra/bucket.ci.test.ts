import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  accessKey,
  bucketName,
  createBucketFixture,
  inputs,
  renderRootModule,
  secretKey,
} from './support/bucket-fixture.ts'
import { collapseWhitespace, readState, SECRET_MARK } from './support/module-fixture.ts'
import { withTerraform } from './support/with-terraform.ts'

// The fixture searches the output of every command for the mark, which both keys contain.
withTerraform('the bucket', () => {
  test('has a valid module', async () => {
    const { terraform } = await createBucketFixture()
    const valid = await terraform('validate', '-no-color')
    expect(valid.code, valid.output).toBe(0)
    expect(valid.output).not.toContain('Warning')
  })

  test('is created over TLS, private and without object lock; the next plan is empty', async () => {
    const { storage, directory, environment, apply, outputs, terraform } = await createBucketFixture()
    // The real provider uses these variables as defaults.
    Object.assign(environment, { MINIO_ENABLE_HTTPS: 'false', MINIO_INSECURE: 'true', MINIO_ENDPOINT: 'other.test' })
    await apply()
    expect(new Set(storage.connections.map(connection => JSON.stringify(connection)))).toEqual(
      new Set([
        JSON.stringify({
          server: 'fsn1.storage.test',
          region: 'fsn1',
          tls: true,
          user: accessKey,
          password: secretKey,
        }),
      ]),
    )
    expect(Object.fromEntries(storage.buckets)).toEqual({
      [bucketName]: { region: 'fsn1', locking: false, policy: '', objects: new Set() },
    })
    expect(await outputs()).toEqual({ endpoint: 'https://fsn1.storage.test', region: 'fsn1', bucket: bucketName })
    // The state does not contain the configuration of the provider, so it has no key.
    expect(readState(directory)).not.toContain(SECRET_MARK)
    await terraform('show')
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
  })

  test('keeps its objects in a destroy, and sets every argument that an environment variable could override', async () => {
    const { plan } = await createBucketFixture()
    const { configuration, resource_changes } = await plan()
    expect(resource_changes.map(({ change }) => change.after.force_destroy)).toEqual([false])
    const { minio } = configuration.provider_config
    expect(minio?.expressions.minio_ssl).toEqual({ constant_value: true })
    expect(minio?.expressions.minio_insecure).toEqual({ constant_value: false })
    expect(Object.keys(minio?.expressions ?? {}).toSorted()).toEqual([
      'minio_insecure',
      'minio_password',
      'minio_region',
      'minio_server',
      'minio_ssl',
      'minio_user',
    ])
    expect(minio?.version_constraint).toBe('>= 3.6.4, < 3.11.2')
  })

  test('is neither destroyed nor replaced, nor forgotten when its module is removed', async () => {
    const { storage, root, set, apply, terraform } = await createBucketFixture({ rootModule: renderRootModule() })
    await apply()
    const protection = /module\.bucket\.minio_s3_bucket\.backups has (?:lifecycle\.)?prevent_destroy set/
    for (const [command, variables] of [
      [['destroy', '-auto-approve'], inputs],
      [['apply', '-auto-approve', '-replace=module.bucket.minio_s3_bucket.backups'], inputs],
      [['apply', '-auto-approve'], { ...inputs, object_storage_bucket: 'catalyst-other-pool-test' }],
    ] as const) {
      set(variables)
      const { code, output } = await terraform(...command, '-no-color')
      expect(code, output).toBe(1)
      expect(collapseWhitespace(output)).toMatch(protection)
    }
    writeFileSync(join(root, 'main.tf'), 'resource "terraform_data" "other" {}\n')
    set({})
    const without = await terraform('apply', '-auto-approve', '-no-color')
    expect(without.code, without.output).toBe(1)
    expect(collapseWhitespace(without.output)).toContain('its original provider configuration')
    expect([...storage.buckets.keys()]).toEqual([bucketName])
  })

  test('is created again after a manual deletion', async () => {
    const { storage, apply } = await createBucketFixture()
    await apply()
    storage.buckets.clear()
    await apply()
    expect([...storage.buckets.keys()]).toEqual([bucketName])
  })
})

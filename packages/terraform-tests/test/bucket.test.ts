import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { accessKey, bucketName, bucketStage, inputs, secretKey, using } from './fixtures/bucket-stage.ts'
import { flat, mark, stateOf } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'

// The stage searches whatever any command says for the mark that both keys have.
withTerraform('the bucket', () => {
  test('is valid HCL, and the module passes its own tests', async () => {
    const { terraform } = await bucketStage()
    const valid = await terraform('validate', '-no-color')
    expect(valid.code, valid.output).toBe(0)
    expect(valid.output).not.toContain('Warning')
    const { code, output } = await terraform('test', '-no-color')
    expect(code, output).toBe(0)
    expect(output).toContain('tests/bucket.tftest.hcl... pass')
    expect(output).toContain(' 0 failed')
  })

  test('is made over TLS, private, without locks, and then there is nothing left to do', async () => {
    const { storage, directory, environment, apply, outputs, terraform } = await bucketStage()
    // What the real provider would take for a default.
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
    // Keys are the provider's configuration, which no state holds.
    expect(stateOf(directory)).not.toContain(mark)
    await terraform('show')
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
  })

  test('states every argument that the environment could decide', async () => {
    const { plan } = await bucketStage()
    const { minio } = (await plan()).configuration.provider_config
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
    expect(minio?.version_constraint).toBe('~> 3.5')
  })

  test('is not destroyed, not replaced, and not let go by taking its module away', async () => {
    const { storage, top, set, apply, terraform } = await bucketStage({ root: using() })
    await apply()
    const held = 'module.bucket.minio_s3_bucket.backups has lifecycle.prevent_destroy set'
    for (const [command, variables] of [
      [['destroy', '-auto-approve'], inputs],
      [['apply', '-auto-approve', '-replace=module.bucket.minio_s3_bucket.backups'], inputs],
      [['apply', '-auto-approve'], { ...inputs, object_storage_bucket: 'catalyst-other-pool-test' }],
    ] as const) {
      set(variables)
      const { code, output } = await terraform(...command, '-no-color')
      expect(code, output).toBe(1)
      expect(flat(output)).toContain(held)
    }
    writeFileSync(join(top, 'main.tf'), 'resource "terraform_data" "other" {}\n')
    set({})
    const without = await terraform('apply', '-auto-approve', '-no-color')
    expect(without.code, without.output).toBe(1)
    expect(flat(without.output)).toContain('its original provider configuration')
    expect([...storage.buckets.keys()]).toEqual([bucketName])
  })

  test('is created again after it was deleted by hand', async () => {
    const { storage, apply } = await bucketStage()
    await apply()
    storage.buckets.clear()
    await apply()
    expect([...storage.buckets.keys()]).toEqual([bucketName])
  })
})

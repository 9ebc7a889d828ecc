import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  accessKey,
  bucketName,
  bucketProvider,
  createBucketFixture,
  inputs,
  renderRootModule,
  secretKey,
} from './support/bucket-fixture.ts'
import { changedPaths, collapseWhitespace, readState, SECRET_MARK } from './support/module-fixture.ts'
import { readShellBlocks } from './support/readme.ts'
import { withTerraform } from './support/terraform.ts'

// The fixture searches the output of every command for the mark, which both keys contain.
withTerraform('the bucket', () => {
  test('has a valid module that passes its own tests', async () => {
    const { terraform } = await createBucketFixture()
    const valid = await terraform('validate', '-no-color')
    expect(valid.code, valid.output).toBe(0)
    expect(valid.output).not.toContain('Warning')
    const { code, output } = await terraform('test', '-no-color')
    expect(code, output).toBe(0)
    expect(output).toContain('tests/bucket.tftest.hcl... pass')
    expect(output).toContain(' 0 failed')
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

  test('sets every argument that an environment variable could override', async () => {
    const { plan } = await createBucketFixture()
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

const region = 'object_storage_region'
const access = 'object_storage_access_key'
const secret = 'object_storage_secret_key'
const bucket = 'object_storage_bucket'

// The fixture searches the output of every command for the mark.
withTerraform('inputs of the bucket', () => {
  test('are sensitive, except for the domain', async () => {
    const { plan } = await createBucketFixture()
    const { variables } = (await plan()).configuration.root_module
    expect(Object.keys(inputs).filter(name => variables[name]?.sensitive)).toEqual([region, access, secret, bucket])
  })

  // Each case puts the mark where it must not appear. Terraform rejects the input before the provider sees it.
  test('that are invalid are rejected with a reason that does not quote their line', async () => {
    const { directory, storage, terraform } = await createBucketFixture()
    for (const [variable, value, expectedError] of [
      [region, 'fsn2', 'must be fsn1, nbg1 or hel1'],
      [region, secretKey, 'must be fsn1, nbg1 or hel1'],
      [region, `fsn1.${SECRET_MARK}.test/`, 'must be fsn1, nbg1 or hel1'],
      [access, SECRET_MARK, 'access_key must have at least 16 characters'],
      [access, '<redacted>', 'access_key must have at least 16 characters'],
      [access, `${accessKey}\n`, 'access_key must consist of visible ASCII'],
      [secret, accessKey, 'secret_key must have at least 32 characters'],
      [secret, `${secretKey} `, 'secret_key must consist of visible ASCII'],
      [secret, `${secretKey}é`, 'secret_key must consist of visible ASCII'],
      [bucket, secretKey, 'must consist of lower-case letters'],
      [bucket, 'catalyst-s3alias', 'which S3 reserves'],
      [bucket, 'a'.repeat(64), 'must have 3 to 63 characters'],
    ] as const) {
      // All values are in one line, so an error that quotes a line would contain all of them.
      writeFileSync(join(directory, 'terraform.tfvars.json'), JSON.stringify({ ...inputs, [variable]: value }))
      const { code, output } = await terraform('plan', '-no-color')
      expect(code, output).toBe(1)
      expect(collapseWhitespace(output)).toContain(expectedError)
    }
    // Terraform configures the provider with the valid values even if the bucket name is invalid.
    for (const { server, user, password } of storage.connections) {
      expect([server, user, password]).toEqual(['fsn1.storage.test', accessKey, secretKey])
    }
    expect(storage.buckets.size).toBe(0)
  })

  test('that are invalid in the environment, or null, are rejected', async () => {
    const { environment, set, terraform } = await createBucketFixture()
    set({ ...inputs, [secret]: null })
    expect((await terraform('plan', '-no-color')).code).toBe(1)
    set({ ...inputs, [secret]: undefined })
    environment[`TF_VAR_${secret}`] = SECRET_MARK
    const { code, output } = await terraform('plan', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain('secret_key must have at least 32 characters')
  })

  test('that the server rejects make the apply fail without showing them', async () => {
    const { storage, terraform } = await createBucketFixture()
    storage.users.set(accessKey, 'another')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain(
      `unable to check bucket (${bucketName}): The request signature we calculated does not match`,
    )
    expect(storage.buckets.has(bucketName)).toBe(false)
  })
})

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

/** Everything that the provider does after it has created the bucket can fail, and Terraform then marks it as tainted. */
const failedApply = async (fixture: Awaited<ReturnType<typeof createBucketFixture>>, expectedError: string) => {
  const { directory, storage, terraform } = fixture
  const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
  expect(code, output).toBe(1)
  expect(collapseWhitespace(output)).toContain(expectedError)
  expect([...storage.buckets.keys()]).toEqual([bucketName])
  expect(readState(directory)).toContain('"status": "tainted"')
}

const [repair = ''] = readShellBlocks('object-storage-bucket').filter(block => block.includes('untaint'))

withTerraform('an apply that failed after it had created the bucket', () => {
  test('is repaired by the command in the README: the bucket stays, with its objects', async () => {
    const fixture = await createBucketFixture({ rootModule: renderRootModule() })
    const { storage, terraform } = fixture
    storage.rejectsLookups = true
    await failedApply(fixture, `error checking bucket existence (${bucketName}): Access Denied.`)
    storage.rejectsLookups = false
    storage.buckets.get(bucketName)?.objects.add('archive')

    const refused = await terraform('apply', '-auto-approve', '-no-color')
    expect(refused.code, refused.output).toBe(1)
    expect(collapseWhitespace(refused.output)).toMatch(/instance cannot be destroyed/i)

    const [program, ...args] = repair.trim().split(/\s+/)
    expect(program).toBe('terraform')
    expect((await terraform(...args)).code).toBe(0)
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
    expect(storage.buckets.get(bucketName)?.objects).toEqual(new Set(['archive']))
  })

  test.each([
    [200, '200 OK'],
    [403, 'Access Denied.'],
  ])(
    'is what a version that the module excludes leaves behind, with storage that answers %i',
    async (status, reason) => {
      const fixture = await createBucketFixture({ version: { removesPolicy: true } })
      fixture.storage.policyRemovalStatus = status
      await failedApply(fixture, `unable to remove bucket policy (${bucketName}): ${reason}`)
      expect((await fixture.terraform('plan', '-detailed-exitcode')).code).toBe(1)
    },
  )

  test('does not happen if the storage confirms the removal of a policy with 204', async () => {
    const { apply, terraform } = await createBucketFixture({ version: { removesPolicy: true } })
    await apply()
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})

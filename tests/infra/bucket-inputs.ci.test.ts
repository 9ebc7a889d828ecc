import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { accessKey, bucketName, createBucketFixture, inputs, secretKey } from './support/bucket-fixture.ts'
import { collapseWhitespace, SECRET_MARK } from './support/module-fixture.ts'
import { withTerraform } from './support/with-terraform.ts'

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

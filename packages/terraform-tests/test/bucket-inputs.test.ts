import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { accessKey, bucketName, bucketStage, inputs, secretKey } from './fixtures/bucket-stage.ts'
import { flat, mark } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'

const region = 'object_storage_region'
const access = 'object_storage_access_key'
const secret = 'object_storage_secret_key'
const bucket = 'object_storage_bucket'

// The stage searches whatever any command says for the mark.
withTerraform('inputs of the bucket', () => {
  test('are sensitive, but for the domain', async () => {
    const { plan } = await bucketStage()
    const { variables } = (await plan()).configuration.root_module
    expect(Object.keys(inputs).filter(name => variables[name]?.sensitive)).toEqual([region, access, secret, bucket])
  })

  // Each case puts the mark where it must not appear. Terraform rejects the input before the provider sees it.
  test('that break a rule are refused, each with its reason, and no line that they stand in is quoted', async () => {
    const { directory, storage, terraform } = await bucketStage()
    for (const [variable, value, why] of [
      [region, 'fsn2', 'must be fsn1, nbg1 or hel1'],
      [region, secretKey, 'must be fsn1, nbg1 or hel1'],
      [region, `fsn1.${mark}.test/`, 'must be fsn1, nbg1 or hel1'],
      [access, mark, 'access_key must have at least 16 characters'],
      [access, '<redacted>', 'access_key must have at least 16 characters'],
      [access, `${accessKey}\n`, 'access_key must consist of visible ASCII'],
      [secret, accessKey, 'secret_key must have at least 32 characters'],
      [secret, `${secretKey} `, 'secret_key must consist of visible ASCII'],
      [secret, `${secretKey}é`, 'secret_key must consist of visible ASCII'],
      [bucket, secretKey, 'must consist of lower-case letters'],
      [bucket, 'catalyst.mrap', 'which S3 reserves'],
      [bucket, 'a'.repeat(64), 'must have 3 to 63 characters'],
    ] as const) {
      // One line with every value in it, which an error about one of them would quote whole.
      writeFileSync(join(directory, 'terraform.tfvars.json'), JSON.stringify({ ...inputs, [variable]: value }))
      const { code, output } = await terraform('plan', '-no-color')
      expect(code, output).toBe(1)
      expect(flat(output)).toContain(why)
    }
    // A bad name of a bucket does not keep the provider from being configured, with what is good.
    for (const { server, user, password } of storage.connections) {
      expect([server, user, password]).toEqual(['fsn1.storage.test', accessKey, secretKey])
    }
    expect(storage.buckets.size).toBe(0)
  })

  test('are refused from the environment, too, and when they are null', async () => {
    const { environment, set, terraform } = await bucketStage()
    set({ ...inputs, [secret]: null })
    expect((await terraform('plan', '-no-color')).code).toBe(1)
    set({ ...inputs, [secret]: undefined })
    environment[`TF_VAR_${secret}`] = mark
    const { code, output } = await terraform('plan', '-no-color')
    expect(code, output).toBe(1)
    expect(flat(output)).toContain('secret_key must have at least 32 characters')
  })

  test('that the server refuses fail the apply, and it does not say them', async () => {
    const { storage, terraform } = await bucketStage()
    storage.users.set(accessKey, 'another')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(flat(output)).toContain('SignatureDoesNotMatch')
    expect(storage.buckets.has(bucketName)).toBe(false)
  })
})

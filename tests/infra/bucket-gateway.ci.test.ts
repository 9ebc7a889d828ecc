import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingGateway } from '@pool/test-kit/ceph/gateway.ts'
import { type GatewaySite, startGatewaySite } from '@pool/test-kit/terraform/gateway-site.ts'
import { usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  accessKey,
  bucketName,
  bucketProvider,
  createBucketFixture,
  inputs,
  renderRootModule,
  secretKey,
} from './support/bucket-fixture.ts'
import { collapseWhitespace, readState, replaceInFile } from './support/module-fixture.ts'
import { mustRun, withTerraform } from './support/terraform.ts'

const isSkipped = missingGateway !== undefined && !mustRun
if (isSkipped) process.stderr.write(`The tests of the bucket module on a real gateway are skipped: ${missingGateway}\n`)

const address = 'module.bucket.minio_s3_bucket.backups'
const importBlock = `${bucketProvider}import {\n  to = ${address}\n  id = "${bucketName}"\n}\n`
const storageOutput = 'output "storage" {\n  value = module.bucket\n}\n'

withTerraform(`the bucket, with ${usesRealProviders ? 'the real provider' : 'a double of the provider'}`, () => {
  describe.skipIf(isSkipped)('on a real object gateway', () => {
    let site: GatewaySite
    beforeAll(async () => {
      site = await startGatewaySite({ accessKey, secretKey })
    })
    afterAll(() => site?.stop())
    const withBucket = (name: string) => ({
      ...inputs,
      object_storage_domain: site.domain,
      object_storage_bucket: name,
    })

    test('is private, has no object lock, cannot be destroyed, and can be imported with its objects after the state is lost', async () => {
      const { signed, anonymous } = site.client
      const variables = withBucket(bucketName)
      const { root, apply, outputs, set, terraform } = await createBucketFixture({
        rootModule: renderRootModule() + storageOutput,
        variables,
        site,
      })

      await apply()
      expect(await outputs()).toEqual({
        storage: { endpoint: `https://fsn1.${site.domain}`, region: 'fsn1', bucket: bucketName },
      })
      expect((await signed('/')).text).toContain(`<Name>${bucketName}</Name>`)
      expect(await signed(`/${bucketName}?acl`)).toMatchObject({
        status: 200,
        text: expect.not.stringContaining('AllUsers'),
      })
      expect(await signed(`/${bucketName}?policy`)).toMatchObject({ status: 404 })
      expect(await signed(`/${bucketName}?object-lock`)).toMatchObject({
        status: 404,
        text: expect.stringContaining('ObjectLockConfigurationNotFoundError'),
      })
      expect(await signed(`/${bucketName}/archive`, { method: 'PUT', body: 'archive content' })).toMatchObject({
        status: 200,
      })
      expect((await anonymous(`/${bucketName}`)).status).toBe(403)
      expect((await anonymous(`/${bucketName}/archive`)).status).toBe(403)

      expect(collapseWhitespace(await apply())).toContain('0 added, 0 changed, 0 destroyed')
      const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
      expect(destroyed.code, destroyed.output).toBe(1)
      expect(collapseWhitespace(destroyed.output)).toContain('prevent_destroy set')

      rmSync(join(root, 'terraform.tfstate'))
      const unknown = await terraform('apply', '-auto-approve', '-no-color')
      expect(unknown.code, unknown.output).toBe(1)
      expect(collapseWhitespace(unknown.output)).toContain('bucket already exists!')
      writeFileSync(join(root, 'main.tf'), renderRootModule(importBlock))
      expect(collapseWhitespace(await apply())).toContain('1 imported, 0 added, 0 changed, 0 destroyed')
      expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
      expect(await signed(`/${bucketName}/archive`)).toEqual({ status: 200, text: 'archive content' })

      set({ ...variables, object_storage_secret_key: `${secretKey}x` })
      const wrong = await terraform('plan', '-no-color')
      expect(wrong.code, wrong.output).toBe(1)
      expect(collapseWhitespace(wrong.output)).toContain('The request signature we calculated does not match')
    })

    test('whose creation failed half-way is tainted, and untaint keeps it', async () => {
      const variables = withBucket('catalyst-half')
      const { directory, terraform } = await createBucketFixture({ rootModule: renderRootModule(), variables, site })
      site.rejectLookups(true)
      const failed = await terraform('apply', '-auto-approve', '-no-color').finally(() => site.rejectLookups(false))
      expect(failed.code, failed.output).toBe(1)
      expect(collapseWhitespace(failed.output)).toContain(
        'error checking bucket existence (catalyst-half): Access Denied.',
      )
      expect(readState(directory)).toContain('"status": "tainted"')
      const refused = await terraform('plan', '-no-color')
      expect(refused.code, refused.output).toBe(1)
      expect(collapseWhitespace(refused.output)).toMatch(/instance cannot be destroyed/i)
      expect((await terraform('untaint', address)).code).toBe(0)
      expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
    })

    test('is not destroyed while it has objects, even without prevent_destroy', async () => {
      const { signed } = site.client
      const { apply, terraform } = await createBucketFixture({
        variables: withBucket('catalyst-other'),
        site,
        change: directory => {
          const file = join(directory, 'bucket.tf')
          replaceInFile(file, 'prevent_destroy = true', 'prevent_destroy = false')
        },
      })
      await apply()
      await signed('/catalyst-other/archive', { method: 'PUT', body: 'x' })
      const full = await terraform('destroy', '-auto-approve', '-no-color')
      expect(full.code, full.output).toBe(1)
      expect(collapseWhitespace(full.output)).toContain('unable to remove bucket (catalyst-other)')
      await signed('/catalyst-other/archive', { method: 'DELETE' })
      const empty = await terraform('destroy', '-auto-approve', '-no-color')
      expect(empty.code, empty.output).toBe(0)
      expect((await signed('/')).text).not.toContain('catalyst-other')
    })
  })
})

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Gateway, missingGateway, startGateway } from '@pool/test-ceph'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createS3Client, createS3Store } from '../src/s3-store.ts'
import { mustRun } from '../src/terraform.ts'
import {
  accessKey,
  bucketName,
  createBucketFixture,
  inputs,
  renderRootModule,
  secretKey,
} from './fixtures/bucket-fixture.ts'
import { collapseWhitespace, replaceInFile } from './fixtures/module-fixture.ts'
import { withTerraform } from './fixtures/with-terraform.ts'

const isSkipped = missingGateway !== undefined && !mustRun
if (isSkipped) process.stderr.write(`The tests of the bucket module on a real gateway are skipped: ${missingGateway}\n`)

const withImport = renderRootModule(
  `import {\n  to = module.bucket.minio_s3_bucket.backups\n  id = "${bucketName}"\n}\n`,
)

// Real Terraform and a real server; the provider is a double.
withTerraform('the bucket', () => {
  describe.skipIf(isSkipped)('on a real object gateway', () => {
    let gateway: Gateway
    beforeAll(async () => {
      gateway = await startGateway({ names: ['*.storage.test'] })
      await gateway.addUser({ accessKey, secretKey })
    })
    afterAll(() => gateway?.stop())

    test('is private, has no object lock, cannot be destroyed, and can be imported with its objects after the state is lost', async () => {
      const server = `fsn1.storage.test:${gateway.port}`
      const variables = { ...inputs, object_storage_domain: `storage.test:${gateway.port}` }
      const { signed, anonymous } = createS3Client(
        { server, region: 'fsn1', user: accessKey, password: secretKey, tls: true },
        gateway,
      )
      const { root, apply, outputs, set, terraform } = await createBucketFixture({
        rootModule: `${renderRootModule()}output "storage" {\n  value = module.bucket\n}\n`,
        variables,
        connect: connection => createS3Store(connection, gateway),
      })

      await apply()
      expect(await outputs()).toEqual({
        storage: { endpoint: `https://${server}`, region: 'fsn1', bucket: bucketName },
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
      expect(collapseWhitespace(destroyed.output)).toContain('lifecycle.prevent_destroy set')

      rmSync(join(root, 'terraform.tfstate'))
      const unknown = await terraform('apply', '-auto-approve', '-no-color')
      expect(unknown.code, unknown.output).toBe(1)
      expect(collapseWhitespace(unknown.output)).toContain('bucket already exists!')
      writeFileSync(join(root, 'main.tf'), withImport)
      expect(collapseWhitespace(await apply())).toContain('1 imported, 0 added, 0 changed, 0 destroyed')
      expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
      expect(await signed(`/${bucketName}/archive`)).toEqual({ status: 200, text: 'archive content' })

      set({ ...variables, object_storage_secret_key: `${secretKey}x` })
      const wrong = await terraform('plan', '-no-color')
      expect(wrong.code, wrong.output).toBe(1)
      expect(collapseWhitespace(wrong.output)).toContain('The request signature we calculated does not match')
    })

    test('is not destroyed while it has objects, even without prevent_destroy', async () => {
      const variables = {
        ...inputs,
        object_storage_bucket: 'catalyst-other',
        object_storage_domain: `storage.test:${gateway.port}`,
      }
      const { signed } = createS3Client(
        {
          server: `fsn1.storage.test:${gateway.port}`,
          region: 'fsn1',
          user: accessKey,
          password: secretKey,
          tls: true,
        },
        gateway,
      )
      const { apply, terraform } = await createBucketFixture({
        variables,
        connect: connection => createS3Store(connection, gateway),
        change: directory => {
          const file = join(directory, 'bucket.tf')
          replaceInFile(file, 'prevent_destroy = true', 'prevent_destroy = false')
        },
      })
      await apply()
      await signed('/catalyst-other/archive', { method: 'PUT', body: 'x' })
      const full = await terraform('destroy', '-auto-approve', '-no-color')
      expect(full.code, full.output).toBe(1)
      expect(collapseWhitespace(full.output)).toContain('is not empty')
      await signed('/catalyst-other/archive', { method: 'DELETE' })
      const empty = await terraform('destroy', '-auto-approve', '-no-color')
      expect(empty.code, empty.output).toBe(0)
      expect((await signed('/')).text).not.toContain('catalyst-other')
    })
  })
})

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Gateway, lacksGateway, startGateway } from '@pool/test-ceph'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { s3Calls, s3Store } from '../src/s3-store.ts'
import { mustRun } from '../src/terraform.ts'
import { accessKey, bucketName, bucketStage, inputs, secretKey, using } from './fixtures/bucket-stage.ts'
import { alter, flat } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'

const isSkipped = lacksGateway !== undefined && !mustRun
if (isSkipped) process.stderr.write(`The bucket's module is not applied to a real gateway: ${lacksGateway}\n`)

const adopting = using(`import {\n  to = module.bucket.minio_s3_bucket.backups\n  id = "${bucketName}"\n}\n`)

// The module by the real terraform, the provider by us, the server real.
withTerraform('the bucket', () => {
  describe.skipIf(isSkipped)('on a real object gateway', () => {
    let gateway: Gateway
    beforeAll(async () => {
      gateway = await startGateway({ names: ['*.storage.test'] })
      await gateway.addUser({ accessKey, secretKey })
    }, 60_000)
    afterAll(() => gateway?.stop())

    test('is made private, without locks, once; is not destroyed; survives its state, and is adopted with its archive', async () => {
      const server = `fsn1.storage.test:${gateway.port}`
      const variables = { ...inputs, object_storage_domain: `storage.test:${gateway.port}` }
      const { signed, anonymous } = s3Calls(
        { server, region: 'fsn1', user: accessKey, password: secretKey, tls: true },
        gateway,
      )
      const { top, apply, outputs, set, terraform } = await bucketStage({
        root: `${using()}output "storage" {\n  value = module.bucket\n}\n`,
        variables,
        connect: connection => s3Store(connection, gateway),
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
      expect(await signed(`/${bucketName}/archive`, { method: 'PUT', body: 'of the registry' })).toMatchObject({
        status: 200,
      })
      expect((await anonymous(`/${bucketName}`)).status).toBe(403)
      expect((await anonymous(`/${bucketName}/archive`)).status).toBe(403)

      expect(flat(await apply())).toContain('0 added, 0 changed, 0 destroyed')
      const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
      expect(destroyed.code, destroyed.output).toBe(1)
      expect(flat(destroyed.output)).toContain('lifecycle.prevent_destroy set')

      rmSync(join(top, 'terraform.tfstate'))
      const unknown = await terraform('apply', '-auto-approve', '-no-color')
      expect(unknown.code, unknown.output).toBe(1)
      expect(flat(unknown.output)).toContain('bucket already exists!')
      writeFileSync(join(top, 'main.tf'), adopting)
      expect(flat(await apply())).toContain('1 imported, 0 added, 1 changed, 0 destroyed')
      expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
      expect(await signed(`/${bucketName}/archive`)).toEqual({ status: 200, text: 'of the registry' })

      set({ ...variables, object_storage_secret_key: `${secretKey}x` })
      const wrong = await terraform('plan', '-no-color')
      expect(wrong.code, wrong.output).toBe(1)
      // HEAD, which the provider reads with, has no body that could say why.
      expect(flat(wrong.output)).toContain('403')
    })

    test('of which the module could let go, were it not for prevent_destroy, still stays while it has objects', async () => {
      const variables = {
        ...inputs,
        object_storage_bucket: 'catalyst-other',
        object_storage_domain: `storage.test:${gateway.port}`,
      }
      const { signed } = s3Calls(
        {
          server: `fsn1.storage.test:${gateway.port}`,
          region: 'fsn1',
          user: accessKey,
          password: secretKey,
          tls: true,
        },
        gateway,
      )
      const { apply, terraform } = await bucketStage({
        variables,
        connect: connection => s3Store(connection, gateway),
        change: directory => {
          const file = join(directory, 'bucket.tf')
          alter(file, 'prevent_destroy = true', 'prevent_destroy = false')
        },
      })
      await apply()
      await signed('/catalyst-other/archive', { method: 'PUT', body: 'x' })
      const full = await terraform('destroy', '-auto-approve', '-no-color')
      expect(full.code, full.output).toBe(1)
      expect(flat(full.output)).toContain('bucket is not empty')
      await signed('/catalyst-other/archive', { method: 'DELETE' })
      const empty = await terraform('destroy', '-auto-approve', '-no-color')
      expect(empty.code, empty.output).toBe(0)
      expect((await signed('/')).text).not.toContain('catalyst-other')
    })
  })
})

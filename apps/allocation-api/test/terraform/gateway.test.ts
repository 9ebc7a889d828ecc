import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createS3Client, createS3Store } from '@pool/infra-tests/s3-store'
import { type Gateway, missingGateway, startGateway } from '@pool/test-ceph'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BUCKET, renderBucketModule, storageVariables, withMinio } from './support/bucket-site.ts'
import { inspect, isTerraformMissing, plan, secrets, startApply, startDestroy, useSites } from './support/terraform.ts'

const createTestSite = useSites()
const isGatewayMissing = shouldSkip(missingGateway && `A destroy is not tested on a Ceph gateway: ${missingGateway}`)
const accessKey = secrets.object_storage_access_key
const secretKey = secrets.object_storage_secret_key

/** Real Terraform and a real object gateway; the provider between them is a double. */
describe.skipIf(isTerraformMissing || isGatewayMissing)('the bucket of a deployment on a Ceph gateway', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await startGateway({ names: ['*.storage.test'] })
    await gateway.addUser({ accessKey, secretKey })
  })
  afterAll(() => gateway?.stop())

  test('outlives a destroy with its objects, and is used by a reinstallation, also after the state was lost', async () => {
    const site = createTestSite()
    site.write(renderBucketModule(site, 'resource "terraform_data" "machine" { input = module.bucket.bucket }\n'))
    const options = await withMinio(site.options, connection => createS3Store(connection, gateway))
    const domain = `storage.test:${gateway.port}`
    const request = { bucket: BUCKET, variables: { ...storageVariables, object_storage_domain: domain } }
    const connection = { server: `fsn1.${domain}`, region: 'fsn1', user: accessKey, password: secretKey, tls: true }
    const { signed } = createS3Client(connection, gateway)
    const readArchive = () => signed(`/${BUCKET}/archive`)

    expect(await plan(options, false, request)).toMatchObject({ kind: 'planned' })
    expect((await signed('/')).text).not.toContain(BUCKET)
    expect(await startApply(options, request).result).toMatchObject({ kind: 'applied' })
    await signed(`/${BUCKET}/archive`, { method: 'PUT', body: 'content' })

    const destroy = startDestroy(options, request)
    expect(await destroy.result).toEqual({ kind: 'destroyed' })
    expect(destroy.logged('Destroy complete! Resources: 1 destroyed.')).toBe(true)
    const kept = { kind: 'inspected', isEmpty: true, hasKeptBucket: true, resources: [] }
    expect(await inspect(options, request)).toEqual(kept)
    expect(await readArchive()).toEqual({ status: 200, text: 'content' })

    expect(await startApply(options, { ...request, mayImportBucket: true }).result).toMatchObject({ kind: 'applied' })
    expect(await readArchive()).toEqual({ status: 200, text: 'content' })
    expect(await startDestroy(options, request).result).toEqual({ kind: 'destroyed' })

    rmSync(join(options.dataDir, 'state', 'acme.pool.test.tfstate'))
    const reinstalled = startApply(options, { ...request, mayImportBucket: true })
    expect(await reinstalled.result).toMatchObject({ kind: 'applied' })
    expect(reinstalled.logged(`Importing the existing bucket ${BUCKET}.`)).toBe(true)
    expect(await inspect(options, request)).toMatchObject({ isEmpty: false, hasKeptBucket: true })
    expect(await readArchive()).toEqual({ status: 200, text: 'content' })
  })
})

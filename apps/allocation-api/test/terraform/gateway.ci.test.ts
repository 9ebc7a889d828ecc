import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { missingGateway } from '@pool/test-kit/ceph/gateway.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type GatewaySite, startGatewaySite } from '@pool/test-kit/terraform/gateway-site.ts'
import { usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BUCKET, renderBucketModule, storageVariables, withGatewayProvider } from './support/bucket-site.ts'
import { inspect, isTerraformMissing, plan, secrets, startApply, startDestroy, useSites } from './support/terraform.ts'

const createTestSite = useSites()
const isGatewayMissing = shouldSkip(missingGateway && `A destroy is not tested on a Ceph gateway: ${missingGateway}`)
const accessKey = secrets.object_storage_access_key
const secretKey = secrets.object_storage_secret_key
const machine = 'resource "terraform_data" "machine" { input = module.bucket.bucket }\n'
const provider = usesRealProviders ? 'the real provider' : 'a double of the provider'

/** Real Terraform and a real object gateway. */
describe.skipIf(isTerraformMissing || isGatewayMissing)(`a deployment on a Ceph gateway, with ${provider}`, () => {
  let gateway: GatewaySite
  beforeAll(async () => {
    gateway = await startGatewaySite({ accessKey, secretKey })
  })
  afterAll(() => gateway?.stop())

  const createDeployment = async (bucket: string) => {
    const site = createTestSite()
    site.write(renderBucketModule(site, machine))
    const options = await withGatewayProvider(site.options, gateway)
    const variables = { ...storageVariables, object_storage_bucket: bucket, object_storage_domain: gateway.domain }
    return { options, request: { bucket, variables } }
  }

  test('keeps its bucket with its objects after a destroy, and a reinstallation uses it, also after the state was lost', async () => {
    const { options, request } = await createDeployment(BUCKET)
    const { signed } = gateway.client
    const readArchive = () => signed(`/${BUCKET}/archive`)

    expect(await plan(options, false, request)).toMatchObject({ kind: 'planned' })
    expect((await signed('/')).text).not.toContain(BUCKET)
    expect(await startApply(options, request).result).toMatchObject({ kind: 'applied' })
    const again = startApply(options, request)
    expect(await again.result).toMatchObject({ kind: 'applied' })
    expect(again.logged('Resources: 0 added, 0 changed, 0 destroyed.')).toBe(true)

    // First without, then with an object in the bucket.
    for (const isEmpty of [true, false]) {
      if (!isEmpty) await signed(`/${BUCKET}/archive`, { method: 'PUT', body: 'content' })
      const destroy = startDestroy(options, request)
      expect(await destroy.result).toEqual({ kind: 'destroyed' })
      expect(destroy.logged('Destroy complete! Resources: 1 destroyed.')).toBe(true)
      const kept = { kind: 'inspected', isEmpty: true, hasKeptBucket: true, resources: [] }
      expect(await inspect(options, request)).toEqual(kept)
      expect(await signed(`/${BUCKET}`)).toMatchObject({ status: 200 })
      const reinstalled = startApply(options, { ...request, mayImportBucket: true })
      expect(await reinstalled.result).toMatchObject({ kind: 'applied' })
      expect(reinstalled.logged('Resources: 1 added, 0 changed, 0 destroyed.')).toBe(true)
    }
    expect(await readArchive()).toEqual({ status: 200, text: 'content' })
    expect(await startDestroy(options, request).result).toEqual({ kind: 'destroyed' })

    rmSync(join(options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate'))
    const reinstalled = startApply(options, { ...request, mayImportBucket: true })
    expect(await reinstalled.result).toMatchObject({ kind: 'applied' })
    expect(reinstalled.logged(`Importing the existing bucket ${BUCKET}.`)).toBe(true)
    expect(await inspect(options, request)).toMatchObject({ isEmpty: false, hasKeptBucket: true })
    expect(await readArchive()).toEqual({ status: 200, text: 'content' })
  })

  test('that failed after it had created the bucket succeeds when it is applied again, with the same bucket', async () => {
    const bucket = 'catalyst-half'
    const { options, request } = await createDeployment(bucket)
    const { signed } = gateway.client
    gateway.rejectLookups(true)
    const failed = await startApply(options, request).result.finally(() => gateway.rejectLookups(false))
    expect(failed).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(
        /error checking bucket existence \(catalyst-half\): Access Denied\..* The bucket catalyst-half was created before the failure\. Remove the cause, then apply again: the bucket is kept\.$/,
      ),
    })
    await signed(`/${bucket}/archive`, { method: 'PUT', body: 'content' })

    const again = startApply(options, request)
    expect(await again.result).toMatchObject({ kind: 'applied' })
    expect(again.logged(`Keeping the bucket ${bucket}, although the run that created it failed.`)).toBe(true)
    expect(again.logged('Resources: 1 added, 0 changed, 0 destroyed.')).toBe(true)
    expect(await signed(`/${bucket}/archive`)).toEqual({ status: 200, text: 'content' })
  })

  test('has its state in the backend that the example for Hetzner documents, with a lock', async () => {
    const readme = readFileSync(new URL('../../../../examples/hetzner/README.md', import.meta.url), 'utf8')
    const lines = readme.match(/(?<=^ *)(?:PDM_|AWS_)\w+=.*$/gm) ?? []
    const env: Record<string, string> = Object.fromEntries(
      lines.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1).replaceAll("'", '')]),
    )
    const { s3 } = JSON.parse(env.PDM_TERRAFORM_BACKEND ?? '')
    await gateway.client.signed(`/${s3.bucket}`, { method: 'PUT' })
    s3.endpoints.s3 = `https://127.0.0.1:${gateway.domain.split(':')[1]}`
    const keys = { AWS_ACCESS_KEY_ID: accessKey, AWS_SECRET_ACCESS_KEY: secretKey, SSL_CERT_FILE: gateway.caFile }
    const site = createTestSite()
    site.write(`resource "terraform_data" "machine" {
      provisioner "local-exec" { command = "until [ -e ${site.folder}/go ]; do sleep 0.05; done" }
    }`)
    const options = {
      ...site.options,
      backend: { type: 's3', settings: s3 },
      passthrough: [...site.options.passthrough, ...(env.PDM_TERRAFORM_PASS_ENV ?? '').split(',')],
      env: { ...site.options.env, ...env, ...keys },
      visiblePaths: [...site.options.visiblePaths, gateway.caFile],
    }
    const list = async () => (await gateway.client.signed(`/${s3.bucket}`)).text
    const run = startApply(options)
    const isLocked = async () => (await list()).includes('<Key>acme.pool.test/terraform.tfstate.tflock<')
    // With settings that Ceph does not accept, the run ends first.
    await Promise.race([run.result, until('the state is locked', isLocked)])
    writeFileSync(join(site.folder, 'go'), '')
    expect(await run.result).toMatchObject({ kind: 'applied' })
    expect((await list()).match(/(?<=<Key>)[^<]+/g)).toEqual(['acme.pool.test/terraform.tfstate'])
    expect(await inspect(options)).toMatchObject({ resources: ['module.deployment.terraform_data.machine'] })
    expect(await startDestroy(options).result).toEqual({ kind: 'destroyed' })
  })
})

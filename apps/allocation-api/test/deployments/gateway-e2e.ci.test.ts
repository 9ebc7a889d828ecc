import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Deployment } from '@pool/contract'
import { missingGateway } from '@pool/test-kit/ceph/gateway.ts'
import { deploymentRequest, storageSection } from '@pool/test-kit/deployment-request.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { type GatewaySite, startGatewaySite } from '@pool/test-kit/terraform/gateway-site.ts'
import { HetznerProject, hcloud } from '@pool/test-kit/terraform/hcloud.ts'
import { minio } from '@pool/test-kit/terraform/minio.ts'
import { startProviders } from '@pool/test-kit/terraform/provider.ts'
import { usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withStorageNames } from '../support/credentials.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { followStream, toMessages } from '../support/events.ts'
import { createContractCall } from '../support/service.ts'
import { isTerraformMissing } from '../terraform/support/terraform.ts'

const repository = fileURLToPath(new URL('../../../../', import.meta.url))
const modules = ['object-storage-bucket', 'object-storage-inputs', 'first-boot-secret']
const keys = { accessKey: 'accesskey-0123456789', secretKey: 'secret-key-of-at-least-thirty-two-characters' }
const storage = storageSection(keys)
const isGatewayMissing = shouldSkip(
  missingGateway && `The API is not tested with a module on a Ceph gateway: ${missingGateway}`,
)
const provider = usesRealProviders ? 'the real provider' : 'a double of the provider'

interface Owned {
  readonly id: string
  readonly token: string
  readonly bucket: string
}

/** The API as a process, with Terraform, the example for Hetzner as its module, and a Ceph gateway as the storage. */
describe.skipIf(isTerraformMissing || isGatewayMissing)(`a deployment of examples/hetzner, with ${provider}`, () => {
  let database: TestDatabase
  let gateway: GatewaySite
  let folder: string
  let service: Api
  /** With the built-in module. */
  let builtIn: Api
  const stops: (() => unknown)[] = []

  beforeAll(async () => {
    database = await createTestDatabase({ connections: 14 })
    stops.push(() => database.drop())
    gateway = await startGatewaySite(keys)
    stops.push(() => gateway.stop())
    folder = mkdtempSync(join(tmpdir(), 'gateway-e2e-'))
    stops.push(() => rmSync(folder, { recursive: true, force: true }))
    for (const name of ['examples/hetzner', ...modules.map(module => `infra/${module}`)]) {
      cpSync(join(repository, name), join(folder, name), { recursive: true })
    }
    const storageProvider = gateway.realEnvironment ? [] : [minio(connection => gateway.connect(connection))]
    const { reattach, stop } = await startProviders(hcloud(new HetznerProject()), ...storageProvider)
    stops.push(stop)
    const shared = {
      NODE_OPTIONS: withStorageNames,
      OBJECT_STORAGE_DOMAIN: gateway.domain,
      OBJECT_STORAGE_CA_FILE: gateway.caFile,
      PDM_TERRAFORM_PASS_ENV: 'TF_REATTACH_PROVIDERS',
      TF_REATTACH_PROVIDERS: reattach,
      ...(process.env.INFRA_BINARY && { PDM_TERRAFORM_BINARY: process.env.INFRA_BINARY }),
      ...gateway.realEnvironment,
    }
    const start = async (name: string, more: Record<string, string>): Promise<Api> => {
      const api = await startApi(database.url, { ...shared, PDM_DEPLOYMENTS_DIR: join(folder, name), ...more })
      stops.push(() => api.process.stop())
      return api
    }
    // The first service, and its runs, use the example; a run is resumed only after a crash.
    service = await start('data', { PDM_TERRAFORM_MODULE: join(folder, 'examples/hetzner') })
    builtIn = await start('built-in', {})
  })
  afterAll(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  const create = async (subdomain: string): Promise<Owned> => {
    const call = createContractCall(service.url)
    const { status, body, text } = await call('POST', '/api/v1/deployments', deploymentRequest(subdomain, storage))
    if (status !== 201) throw new Error(text)
    return { id: body.id, token: body.deploymentToken, bucket: `catalyst-${subdomain}-pool-test` }
  }
  const read = async ({ id }: Owned): Promise<Deployment> =>
    (await createContractCall(service.url)('GET', `/api/v1/deployments/${id}`)).body
  const waitUntilFinished = (owned: Owned): Promise<Deployment> =>
    until('finished', async () => {
      const deployment = await read(owned)
      return deployment.finishedAt !== null && deployment
    })
  /** Runs an operation that must succeed, and returns the new lines of the log. */
  const runToEnd = async (operation: 'apply' | 'destroy', owned: Owned): Promise<string> => {
    const { numEvents } = await read(owned)
    const call = createContractCall(service.url)
    const path = `/api/v1/deployments/${owned.id}/${operation}`
    const { status, text } = await call('POST', path, storage, { 'X-Deployment-Token': owned.token })
    expect(status, text).toBe(202)
    const deployment = await waitUntilFinished(owned)
    const url = `${service.url}/api/v1/deployments/${owned.id}/logs`
    const events = await (await followStream(url, { 'Last-Event-ID': String(numEvents) })).ended
    const log = toMessages(events).join('\n')
    expect(deployment.status, `${deployment.error}\n${log}`).toBe(operation === 'apply' ? 'ready' : 'destroyed')
    return log
  }
  const readBucket = ({ bucket }: Owned) => gateway.client.signed(`/${bucket}`)

  test('makes a bucket, is applied again, destroyed and reinstalled, with and without objects in the bucket', async () => {
    const { signed } = gateway.client
    const owned = await create('acme')
    expect(await waitUntilFinished(owned)).toMatchObject({
      status: 'ready',
      result: {
        details: {
          object_storage_endpoint: `https://fsn1.${gateway.domain}`,
          object_storage_bucket: 'catalyst-acme-pool-test',
        },
      },
    })
    expect(await readBucket(owned)).toMatchObject({ status: 200 })
    expect(await runToEnd('apply', owned)).toContain('Resources: 0 added, 0 changed, 0 destroyed.')

    for (const isEmpty of [true, false]) {
      if (!isEmpty) await signed(`/${owned.bucket}/archive`, { method: 'PUT', body: 'content' })
      await runToEnd('destroy', owned)
      expect(await readBucket(owned)).toMatchObject({ status: 200 })
      const reinstalled = await runToEnd('apply', owned)
      expect(reinstalled).toMatch(/Resources: [1-9]\d* added, 0 changed, 0 destroyed\./)
      expect(reinstalled).not.toContain('bucket.minio_s3_bucket.backups: Creating')
    }
    expect(await signed(`/${owned.bucket}/archive`)).toEqual({ status: 200, text: 'content' })

    expect(await runToEnd('apply', owned)).toContain('Resources: 0 added, 0 changed, 0 destroyed.')
  })

  test('whose first apply failed after it had created the bucket says so, and the next apply keeps the bucket', async () => {
    const { signed } = gateway.client
    gateway.rejectLookups(true)
    const owned = await create('half')
    const failed = await waitUntilFinished(owned).finally(() => gateway.rejectLookups(false))
    expect(failed).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(
        /error checking bucket existence \(catalyst-half-pool-test\): Access Denied\..* The bucket catalyst-half-pool-test was created before the failure\. Remove the cause, then apply again: the bucket is kept\.$/,
      ),
    })
    await signed(`/${owned.bucket}/archive`, { method: 'PUT', body: 'content' })
    const log = await runToEnd('apply', owned)
    expect(log).toContain(`Keeping the bucket ${owned.bucket}, although the run that created it failed.`)
    expect(log).not.toMatch(/Destroy|[1-9]\d* destroyed/)
    expect(await signed(`/${owned.bucket}/archive`)).toEqual({ status: 200, text: 'content' })
  })

  test('the built-in module makes the bucket of a deployment that gets object storage, and a later deployment takes it up', async () => {
    const call = createContractCall(builtIn.url)
    const post = (path: string, body: object, token = '') =>
      call('POST', `/api/v1/deployments${path}`, body, { 'X-Deployment-Token': token })
    const isDone = (id: string, status: string) =>
      until(status, async () => {
        const { body } = await call('GET', `/api/v1/deployments/${id}`)
        if (body.status === 'failed') throw new Error(body.error)
        return body.status === status && body
      })
    const { signed } = gateway.client
    const bucket = 'catalyst-archive-pool-test'
    const first = (await post('', deploymentRequest('archive', {}))).body
    await isDone(first.id, 'ready')
    expect((await signed(`/${bucket}`)).status).toBe(404)
    expect((await post(`/${first.id}/apply`, storage, first.deploymentToken)).status).toBe(202)
    await isDone(first.id, 'ready')
    const url = `${builtIn.url}/api/v1/deployments/${first.id}/logs`
    const log = toMessages(await (await followStream(url, {})).ended)
    expect(log.join('\n')).toMatch(/Resources: 1 added, \d changed, 0 destroyed\./)
    expect((await signed(`/${bucket}/archive`, { method: 'PUT', body: 'content' })).status).toBe(200)
    expect((await post(`/${first.id}/destroy`, storage, first.deploymentToken)).status).toBe(202)
    expect(await isDone(first.id, 'destroyed')).toMatchObject({ keptBucket: bucket })
    const removed = await call('DELETE', `/api/v1/deployments/${first.id}`, undefined, {
      'X-Deployment-Token': first.deploymentToken,
    })
    expect(removed.status).toBe(204)

    const again = deploymentRequest('archive', storage)
    expect(await post('', again)).toMatchObject({ status: 409, body: { error: 'bucket-exists' } })
    const others = { accessKey: 'otherkey-0123456789', secretKey: 'another-key-of-at-least-thirty-two-characters' }
    await gateway.addUser(others)
    const foreign = deploymentRequest('archive', { ...storageSection(others), adoptBucket: true })
    expect(await post('', foreign)).toMatchObject({ status: 409, body: { error: 'bucket-conflict' } })
    expect((await builtIn.call('GET', '/api/v1/pool/pool.test/check?sub=archive')).body.available).toBe(true)
    const adopted = await post('', { ...again, adoptBucket: true })
    expect(adopted).toMatchObject({ status: 201 })
    await isDone(adopted.body.id, 'ready')
    expect(await signed(`/${bucket}/archive`)).toEqual({ status: 200, text: 'content' })
  })
})

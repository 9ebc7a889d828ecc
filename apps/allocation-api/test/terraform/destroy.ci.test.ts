import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { ObjectStorage } from '@pool/test-kit/terraform/memory-store.ts'
import type { minio } from '@pool/test-kit/terraform/minio.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform, type TerraformOptions } from '../../src/deployments/terraform/terraform.ts'
import { BUCKET, renderBucketModule, storageVariables, withMinio } from './support/bucket-site.ts'
import { startStateServer } from './support/state-server.ts'
import {
  findProcesses,
  inspect,
  isolatedInProof,
  isTerraformMissing,
  killProcesses,
  plan,
  readFiles,
  type Site,
  secrets,
  startApply,
  startDestroy,
  useSites,
} from './support/terraform.ts'

const createTestSite = useSites(isolatedInProof)
const request = { bucket: BUCKET, variables: storageVariables }

const machines = `
resource "terraform_data" "network" { input = var.deployment_id }
resource "terraform_data" "machine" {
  for_each = toset(["a", "b$\${x} \\"c\\""])
  input    = { network = terraform_data.network.id, bucket = module.bucket.bucket }
}
output "load_balancer_ip" { value = "192.0.2.7" }
`

const applied = { kind: 'applied', outputs: expect.any(Object) }

const createStorage = (): ObjectStorage => {
  const storage = new ObjectStorage()
  storage.users.set(secrets.object_storage_access_key, secrets.object_storage_secret_key)
  return storage
}

/** A site whose module has a bucket, in object storage in memory, and machines. */
const createBucketSite = async (more = machines, version?: Parameters<typeof minio>[1]) => {
  const site = createTestSite()
  site.write(renderBucketModule(site, more))
  const storage = createStorage()
  const options = await withMinio(site.options, connection => storage.connect(connection), version)
  return { site, storage, options }
}

const statePath = ({ options }: Site) => join(options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate')
const mentions = (text: string) => Object.values(secrets).filter(secret => text.includes(secret))
const expectNoSecrets = ({ options }: Site, lines: readonly { readonly message: string }[]) => {
  expect(lines.flatMap(({ message }) => mentions(message))).toEqual([])
  expect(readFiles(options.dataDir).flatMap(({ text }) => mentions(text))).toEqual([])
}

describe.skipIf(isTerraformMissing)('a destroy', () => {
  test('destroys everything but the bucket, which stays in the state with its objects; a new apply uses it', async () => {
    const { site, storage, options } = await createBucketSite()
    expect(await startApply(options, request).result).toEqual(applied)
    storage.buckets.get(BUCKET)?.objects.add('archive')
    expect(await inspect(options, request)).toEqual({
      kind: 'inspected',
      isEmpty: false,
      hasKeptBucket: true,
      resources: [
        'module.deployment.terraform_data.machine["a"]',
        'module.deployment.terraform_data.machine["b$${x} \\"c\\""]',
        'module.deployment.terraform_data.network',
      ],
    })

    const run = startDestroy(options, request)
    expect(await run.result).toEqual({ kind: 'destroyed' })
    expect(run.logged('Destroy complete! Resources: 3 destroyed.')).toBe(true)
    expect(run.lines.filter(({ level }) => level !== 'info')).toEqual([])
    expectNoSecrets(site, run.lines)
    const empty = { kind: 'inspected', isEmpty: true, hasKeptBucket: true, resources: [] }
    expect(await inspect(options, request)).toEqual(empty)
    expect(storage.buckets.get(BUCKET)?.objects).toEqual(new Set(['archive']))

    // Nothing is left to destroy.
    const repeated = startDestroy(options, request)
    expect(await repeated.result).toEqual({ kind: 'destroyed' })
    expect(repeated.lines.filter(({ phase }) => phase === 'destroy')).toEqual([])
    expect(await inspect(options, request)).toEqual(empty)

    const again = startApply(options, { ...request, run: 2 })
    expect(await again.result).toEqual(applied)
    expect(again.logged('Resources: 3 added, 0 changed, 0 destroyed.')).toBe(true)
    expect([...(storage.buckets.get(BUCKET)?.objects ?? [])]).toEqual(['archive'])
    expect(readdirSync(join(options.dataDir, 'work'))).toEqual([])
  })

  test('keeps a bucket that its module does not protect', async () => {
    const { site, storage, options } = await createBucketSite('')
    site.write(`
      variable "object_storage_region" { type = string }
      variable "object_storage_bucket" { type = string }
      variable "object_storage_domain" { type = string }
      terraform {
        required_providers {
          minio = { source = "aminueza/minio" }
        }
      }
      provider "minio" {
        minio_server   = "s3.test"
        minio_user     = var.object_storage_access_key
        minio_password = var.object_storage_secret_key
      }
      resource "minio_s3_bucket" "mine" {
        bucket        = var.object_storage_bucket
        force_destroy  = true
        acl            = "private"
        object_locking = false
      }
      resource "minio_s3_bucket" "logs" {
        bucket         = "\${var.object_storage_bucket}-logs"
        force_destroy  = true
        acl            = "private"
        object_locking = false
      }
      resource "terraform_data" "machine" { input = minio_s3_bucket.mine.arn }`)
    expect(await startApply(options, request).result).toEqual(applied)
    expect(await startDestroy(options, request).result).toEqual({ kind: 'destroyed' })
    expect([...storage.buckets.keys()]).toEqual([BUCKET])
    expect(await inspect(options, request)).toMatchObject({ isEmpty: true, hasKeptBucket: true })
  })

  test('keeps what the bucket depends on, and fails with the reason', async () => {
    const { storage, options, site } = await createBucketSite('')
    const module = renderBucketModule(site, 'resource "terraform_data" "name" { input = var.object_storage_bucket }')
    site.write(module.replace(/= var.object_storage_bucket\n/, '= terraform_data.name.output\n'))
    expect(await startApply(options, request).result).toEqual(applied)
    expect(await startDestroy(options, request).result).toEqual({
      kind: 'failed',
      reason: 'The bucket depends on resources that therefore remain: module.deployment.terraform_data.name.',
    })
    expect([...storage.buckets.keys()]).toEqual([BUCKET])
    expect(await inspect(options, request)).toMatchObject({
      isEmpty: false,
      hasKeptBucket: true,
      resources: ['module.deployment.terraform_data.name'],
    })
  })

  test('of a deployment without a bucket leaves an empty state, and of an empty state succeeds', async () => {
    const site = createTestSite('resource "terraform_data" "machine" { input = 1 }')
    const empty = { kind: 'inspected', isEmpty: true, hasKeptBucket: false, resources: [] }
    expect(await inspect(site.options)).toEqual(empty)
    expect(existsSync(statePath(site))).toBe(false)
    expect(await startDestroy(site.options).result).toEqual({ kind: 'destroyed' })
    expect(await startApply(site.options).result).toEqual(applied)
    expect(await startDestroy(site.options).result).toEqual({ kind: 'destroyed' })
    expect(await inspect(site.options)).toEqual(empty)
  })

  test('that fails has a reason, and the next one finishes', async () => {
    const failing = `resource "terraform_data" "machine" {
      provisioner "local-exec" {
        when        = destroy
        command     = "echo $TF_VAR_object_storage_secret_key; [ -e ../ok ]"
        working_dir = path.module
      }
    }
    resource "terraform_data" "other" { input = 1 }`
    const site = createTestSite(failing)
    await startApply(site.options).result
    const run = startDestroy(site.options)
    expect(await run.result).toEqual({
      kind: 'failed',
      reason: expect.stringContaining('local-exec provisioner error'),
    })
    expectNoSecrets(site, run.lines)
    expect(await inspect(site.options)).toMatchObject({
      isEmpty: false,
      resources: ['module.deployment.terraform_data.machine'],
    })
    writeFileSync(join(site.folder, 'ok'), '')
    expect(await startDestroy(site.options).result).toEqual({ kind: 'destroyed' })
  })

  test('by its signal is stopped, and the next one finishes', async () => {
    const site = createTestSite(slowDestroy)
    await startApply(site.options).result
    const run = startDestroy({ ...site.options, env: { ...site.options.env, TMPDIR: site.folder } })
    await until('the destroy waits', () => run.logged('(local-exec): waiting'))
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    writeFileSync(join(site.folder, 'go'), '')
    expect(await startDestroy(site.options).result).toEqual({ kind: 'destroyed' })
    expect(await inspect(site.options)).toMatchObject({ isEmpty: true })
  })
})

/** Its destroy waits for the file `go` after it has destroyed the first resource. */
const slowDestroy = `
resource "terraform_data" "last" {
  provisioner "local-exec" {
    when        = destroy
    command     = "echo waiting; until [ -e ../go ]; do sleep 0.02; done"
    working_dir = path.module
  }
}
resource "terraform_data" "first" { input = terraform_data.last.id }`

describe.skipIf(isTerraformMissing)('a destroy whose service is killed', () => {
  const startService = (site: Site, options: TerraformOptions, readyLine: string) =>
    startNode({
      entry: fileURLToPath(new URL('support/run-until-killed.ts', import.meta.url)),
      env: {
        TMPDIR: site.folder,
        TEST_OPERATION: 'destroy',
        TEST_OPTIONS: JSON.stringify({ ...options, stopTimeoutMs: 5_000 }),
      },
      isReady: line => String(line.message).includes(readyLine),
    })

  test.each([
    ['during init', 'Initializing'],
    ['during the destroy', '(local-exec): waiting'],
    ['after the destroy', 'Destroy complete'],
  ])('%s: the next one finishes', async (_, line) => {
    const site = createTestSite(slowDestroy)
    await startApply(site.options).result
    if (line === 'Destroy complete') writeFileSync(join(site.folder, 'go'), '')
    const service = startService(site, site.options, line)
    await service.ready
    await service.kill()
    await until('nothing runs', () => findProcesses(site.folder).length === 0)
    writeFileSync(join(site.folder, 'go'), '')
    const terraform = createTerraform(site.options)
    await terraform.cleanUp('m1', 2, () => expect.fail('unexpected log line'))
    expect(await startDestroy(site.options, { run: 2 }).result).toEqual({ kind: 'destroyed' })
    expect(await inspect(site.options)).toEqual({
      kind: 'inspected',
      isEmpty: true,
      hasKeptBucket: false,
      resources: [],
    })
    expect(readdirSync(join(site.options.dataDir, 'work'))).toEqual([])
  })

  test('with all of its processes by SIGKILL: the next one finishes', async () => {
    const site = createTestSite(slowDestroy)
    await startApply(site.options).result
    const service = startService(site, site.options, '(local-exec): waiting')
    await service.ready
    await killProcesses(site.folder)
    writeFileSync(join(site.folder, 'go'), '')
    expect(await startDestroy(site.options, { run: 2 }).result).toEqual({ kind: 'destroyed' })
    expect(await inspect(site.options)).toMatchObject({ isEmpty: true })
  })
})

describe.skipIf(isTerraformMissing)('an apply whose state was lost', () => {
  const loseState = (site: Site) => rmSync(statePath(site))

  test('imports the bucket that exists, with its objects', async () => {
    const { site, storage, options } = await createBucketSite()
    expect(await startApply(options, request).result).toEqual(applied)
    storage.buckets.get(BUCKET)?.objects.add('archive')
    await startDestroy(options, request).result
    loseState(site)
    const run = startApply(options, { ...request, mayImportBucket: true })
    expect(await run.result).toEqual(applied)
    expect(run.logged(`Importing the existing bucket ${BUCKET}.`)).toBe(true)
    expect([...(storage.buckets.get(BUCKET)?.objects ?? [])]).toEqual(['archive'])
    expect(readFileSync(statePath(site), 'utf8')).toContain('minio_s3_bucket')
    expectNoSecrets(site, run.lines)
    // The import is not repeated.
    const next = startApply(options, { ...request, mayImportBucket: true })
    expect(await next.result).toEqual(applied)
    expect(next.logged('Importing')).toBe(false)
  })

  test('creates a bucket that does not exist', async () => {
    const { storage, options } = await createBucketSite()
    const run = startApply(options, { ...request, mayImportBucket: true })
    expect(await run.result).toEqual(applied)
    expect(run.logged('Importing')).toBe(false)
    expect([...storage.buckets.keys()]).toEqual([BUCKET])
  })

  test('leaves a bucket alone that it may not import', async () => {
    const { storage, options } = await createBucketSite()
    storage.put(BUCKET, { objects: ['of someone else'] })
    expect(await startApply(options, request).result).toEqual({
      kind: 'failed',
      reason: expect.stringContaining('bucket already exists!'),
    })
    expect(await inspect(options, request)).toMatchObject({ hasKeptBucket: false })
    expect([...(storage.buckets.get(BUCKET)?.objects ?? [])]).toEqual(['of someone else'])
  })
})

describe.skipIf(isTerraformMissing)('the creation of the bucket', () => {
  test('is reported while the apply is still in progress, and by the next operation', async () => {
    const { site, options } = await createBucketSite(`
      resource "terraform_data" "machine" {
        input = module.bucket.bucket
        provisioner "local-exec" {
          command     = "until [ -e ../go ]; do sleep 0.02; done"
          working_dir = path.module
        }
      }`)
    let reports = 0
    const onBucketCreated = async () => {
      reports += 1
    }
    const run = startApply(options, { ...request, onBucketCreated })
    await until('the bucket is reported', () => reports === 1)
    writeFileSync(join(site.folder, 'go'), '')
    expect(await run.result).toEqual(applied)
    const before = reports
    await startApply(options, { ...request, onBucketCreated, run: 2 }).result
    expect(reports).toBeGreaterThan(before)
  })
})

describe.skipIf(isTerraformMissing)('an apply that failed after it had created the bucket', () => {
  test('says the way out, has no plan, and is completed by the next apply, which destroys nothing', async () => {
    const { storage, options } = await createBucketSite(machines, { removesPolicy: true })
    storage.policyRemovalStatus = 200
    expect(await startApply(options, request).result).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(
        /unable to remove bucket policy \(catalyst-acme-pool-test\): 200 OK.*Remove the cause, then apply again: the bucket is kept\.$/,
      ),
    })
    storage.buckets.get(BUCKET)?.objects.add('archive')
    expect(await inspect(options, request)).toMatchObject({ hasKeptBucket: true })
    expect(await plan(options, false, request)).toEqual({
      kind: 'failed',
      reason: expect.stringContaining('Apply again: that keeps the bucket and completes it.'),
    })

    expect(await startDestroy(options, request).result).toEqual({ kind: 'destroyed' })
    const again = startApply(options, request)
    expect(await again.result).toEqual(applied)
    expect(again.logged('Resources: 3 added, 0 changed, 0 destroyed.')).toBe(true)
    expect(storage.buckets.get(BUCKET)?.objects).toEqual(new Set(['archive']))
    expect(await plan(options, false, request)).toMatchObject({ kind: 'planned' })
  })
})

describe.skipIf(isTerraformMissing)('an archived state', () => {
  test('is kept and never used again', async () => {
    const site = createTestSite('resource "terraform_data" "machine" { input = 1 }')
    await startApply(site.options).result
    const state = readFileSync(statePath(site), 'utf8')
    const terraform = createTerraform(site.options)
    const stateRequest = { id: 'm1', run: 1, stateKey: 'acme.pool.test', bucket: null, knownState: null }
    const where = await terraform.archive(stateRequest)
    expect(where).toMatch(/^The state is in archive\/acme\.pool\.test\/terraform\.tfstate\.\d{8}T[\d.]+Z\.$/)
    expect(await terraform.archive(stateRequest)).toBe(where)
    expect(await inspect(site.options)).toMatchObject({ isEmpty: true })
    const kept = readFiles(join(site.options.dataDir, 'state', 'archive'))
    expect(kept.map(({ text }) => text)).toEqual([state])
  })

  test('of a remote backend stays where it is, and its place is said', async () => {
    const server = await startStateServer()
    const site = createTestSite('resource "terraform_data" "machine" { input = 1 }')
    const options = { ...site.options, backend: server.backend }
    await startApply(options).result
    const state = server.state()
    const stateRequest = { id: 'm1', run: 1, stateKey: 'acme.pool.test', bucket: null, knownState: null }
    expect(await createTerraform(options).archive(stateRequest)).toBe(
      'The state stays in the http backend under the key acme.pool.test; no other deployment uses it.',
    )
    expect(server.state()).toBe(state)
    server.close()
  })
})

import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { ObjectStorage } from '@pool/test-kit/terraform/memory-store.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import { BUCKET, renderBucketModule, storageVariables, withMinio } from './support/bucket-site.ts'
import { startStateServer } from './support/state-server.ts'
import {
  inspect,
  isolatedInProof,
  isTerraformMissing,
  killProcesses,
  plan,
  readFiles,
  secrets,
  startApply,
  startDestroy,
  toRequest,
  useSites,
} from './support/terraform.ts'

const createTestSite = useSites(isolatedInProof)
const request = { bucket: BUCKET, variables: storageVariables }
const mentions = (text: string) => Object.values(secrets).filter(secret => text.includes(secret))

/** Has its secrets in sensitive places, in a place that is marked as not sensitive, and in another form. */
const machine = `
resource "terraform_data" "machine" {
  input = {
    id       = var.deployment_id
    declared = sensitive("declared-as-sensitive")
    leaked   = nonsensitive(var.object_storage_secret_key)
    encoded  = nonsensitive(base64encode("x$\${var.object_storage_access_key}"))
  }
}
output "load_balancer_ip" { value = "192.0.2.7" }
`.replaceAll('$${', '${')

interface PlannedChange {
  readonly address: string
  readonly change: { readonly actions: readonly string[]; readonly before: unknown; readonly after: unknown }
}
const toChanges = (result: Awaited<ReturnType<typeof plan>>): readonly PlannedChange[] =>
  result.kind === 'planned' ? Object(result.json).resource_changes : expect.fail(JSON.stringify(result))
const toActions = (result: Awaited<ReturnType<typeof plan>>) =>
  Object.fromEntries(toChanges(result).map(({ address, change }) => [address, change.actions.join()]))

const createBucketSite = async () => {
  const site = createTestSite()
  site.write(renderBucketModule(site, machine))
  const storage = new ObjectStorage()
  storage.users.set(secrets.object_storage_access_key, secrets.object_storage_secret_key)
  const options = await withMinio(site.options, connection => storage.connect(connection))
  return { site, storage, options }
}

describe.skipIf(isTerraformMissing)('a plan', () => {
  test('of an apply and of a destroy shows the changes without secrets, and changes nothing', async () => {
    const { storage, options } = await createBucketSite()
    const machineAddress = 'module.deployment.terraform_data.machine'
    const bucketAddress = 'module.deployment.module.bucket.minio_s3_bucket.backups'

    const first = await plan(options, false, request)
    expect(toActions(first)).toEqual({ [bucketAddress]: 'create', [machineAddress]: 'create' })
    const { after } = toChanges(first).find(({ address }) => address === machineAddress)?.change ?? {}
    expect(after).toMatchObject({
      input: { id: 'd1', declared: '<redacted>', leaked: '<redacted>', encoded: expect.stringContaining('<redacted>') },
    })
    expect(first).toMatchObject({ text: expect.stringContaining('Plan: 2 to add, 0 to change, 0 to destroy.') })
    expect(storage.buckets.size).toBe(0)
    expect(readFiles(join(options.dataDir, 'state'))).toEqual([])
    expect(toActions(await plan(options, true, request))).toEqual({})

    expect(await startApply(options, request).result).toMatchObject({ kind: 'applied' })
    const statePath = join(options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate')
    const before = { text: readFileSync(statePath, 'utf8'), mtimeMs: statSync(statePath).mtimeMs }
    const unchanged = await plan(options, false, request)
    expect(toActions(unchanged)).toMatchObject({ [bucketAddress]: 'no-op', [machineAddress]: 'no-op' })
    const destroy = await plan(options, true, request)
    expect(toActions(destroy)).toEqual({ [machineAddress]: 'delete' })
    expect(destroy).toMatchObject({ text: expect.stringContaining('0 to add, 0 to change, 1 to destroy.') })
    for (const result of [first, unchanged, destroy]) {
      const text = JSON.stringify(result)
      expect(mentions(text)).toEqual([])
      expect(text).not.toContain('declared-as-sensitive')
      expect(text).not.toContain(Buffer.from(`x${secrets.object_storage_access_key}`).toString('base64').slice(4, 20))
    }
    expect({ text: readFileSync(statePath, 'utf8'), mtimeMs: statSync(statePath).mtimeMs }).toEqual(before)
    expect(existsSync(join(options.dataDir, 'state', 'acme.pool.test', '.terraform.tfstate.lock.info'))).toBe(false)
    expect(readdirSync(join(options.dataDir, 'work'))).toEqual([])

    // The plan of a reinstallation after the state was lost.
    await startDestroy(options, request).result
    expect(await plan(options, true, request)).toEqual({
      kind: 'planned',
      text: 'No changes. Nothing is left to destroy.\n',
      json: { resource_changes: [], resource_drift: [], output_changes: {} },
      planHash: expect.any(String),
    })
    await createTerraform(options).archive(toRequest(request))
    const imported = await plan(options, false, { ...request, mayImportBucket: true })
    expect(toChanges(imported).find(({ address }) => address === bucketAddress)?.change).toMatchObject({
      actions: ['no-op'],
      importing: { id: BUCKET },
    })
  })

  test('that the caller has seen is applied and destroyed as it is; if the changes differ by now, nothing is done', async () => {
    const site = createTestSite()
    const wait = `until [ -e ${site.folder}/go ]; do sleep 0.05; done`
    const render = (password: string, more = '') => `
      resource "terraform_data" "machine" {
        input = { size = "small", password = sensitive("${password}") }
        provisioner "local-exec" { command = "${wait}" }
      }
      ${more}
      output "load_balancer_ip" { value = "192.0.2.7" }`
    const seePlan = async (destroy = false) => {
      const result = await plan(site.options, destroy)
      return result.kind === 'planned' ? result.planHash : expect.fail(JSON.stringify(result))
    }
    const changed = { kind: 'failed', isPlanChanged: true, reason: expect.stringMatching(/^plan-changed: .*nothing/) }
    const hasState = async () => (await inspect(site.options)) as object

    site.write(render('one'))
    const planHash = await seePlan()
    expect(planHash).toMatch(/^[0-9a-f]{64}$/)
    site.write(render('two'))
    expect(await seePlan()).toBe(planHash)
    site.write(render('two', 'resource "terraform_data" "second" {}'))
    expect(await startApply(site.options, { planHash }).result).toEqual(changed)
    expect(await hasState()).toMatchObject({ isEmpty: true })

    site.write(render('two'))
    const run = startApply(site.options, { planHash })
    await until('the machine is being created', () => run.logged('Creating...'))
    expect(readFiles(site.options.dataDir).filter(({ text }) => mentions(text).length > 0 || /^PK/.test(text))).toEqual(
      [],
    )
    writeFileSync(join(site.folder, 'go'), '')
    expect(await run.result).toEqual({
      kind: 'applied',
      outputs: expect.objectContaining({ load_balancer_ip: '192.0.2.7' }),
    })
    expect(await startApply(site.options, { planHash }).result).toEqual(changed)

    const destroyHash = await seePlan(true)
    for (const other of [planHash, await seePlan()]) {
      expect(await startDestroy(site.options, { planHash: other }).result).toEqual(changed)
    }
    expect(await hasState()).toMatchObject({ resources: ['module.deployment.terraform_data.machine'] })
    expect(await startDestroy(site.options, { planHash: destroyHash }).result).toEqual({ kind: 'destroyed' })
    expect(await hasState()).toMatchObject({ isEmpty: true })
    expect(await startDestroy(site.options, { planHash: destroyHash }).result).toEqual(changed)
    expect(await startDestroy(site.options, { planHash: await seePlan(true) }).result).toEqual({ kind: 'destroyed' })
  })

  test('takes no lock, and works while another process holds it', async () => {
    const server = await startStateServer()
    server.lock('of-another-process')
    const site = createTestSite(machine)
    const result = await plan({ ...site.options, backend: server.backend }, false)
    expect(toActions(result)).toEqual({ 'module.deployment.terraform_data.machine': 'create' })
    expect([server.lockId(), server.state()]).toEqual(['of-another-process', null])
    expect(server.methods.filter(method => method !== 'GET')).toEqual([])
    server.close()
  })

  test('that fails has a reason without secrets', async () => {
    const site = createTestSite(`
      resource "terraform_data" "machine" {
        input = 1
        lifecycle {
          precondition {
            condition     = var.deployment_id == ""
            error_message = "No machine for \${nonsensitive(var.object_storage_secret_key)}."
          }
        }
      }`)
    const result = await plan(site.options, false)
    expect(result).toEqual({ kind: 'failed', reason: expect.stringContaining('No machine for <redacted>.') })
    expect(readdirSync(join(site.options.dataDir, 'work'))).toEqual([])
  })

  test('that Terraform does not print as JSON fails with a reason', async () => {
    const site = createTestSite('')
    const binary = join(site.folder, 'terraform')
    writeFileSync(binary, `#!/bin/sh\n[ "$1" = version ] && echo '{"terraform_version":"1.9.0"}'\nexit 0\n`, {
      mode: 0o755,
    })
    expect(await plan({ ...site.options, binary }, false)).toEqual({
      kind: 'failed',
      reason: 'What Terraform printed is no plan: check PDM_TERRAFORM_BINARY.',
    })
  })

  test('whose service and Terraform are killed leaves no secret and no process; its directory is removed later', async () => {
    const site = createTestSite(machine)
    // Ends only when it is killed, after the plan file has been written.
    const binary = join(site.folder, 'terraform')
    const wrapper = `#!/bin/sh
PATH="$REAL_PATH"
terraform "$@" || exit
if [ "$1" = plan ]; then echo > planned; while :; do sleep 0.05; done; fi
`
    writeFileSync(binary, wrapper, { mode: 0o755 })
    const service = startNode({
      entry: fileURLToPath(new URL('support/run-until-killed.ts', import.meta.url)),
      env: {
        TMPDIR: site.folder,
        TEST_OPERATION: 'plan',
        REAL_PATH: process.env.PATH,
        TEST_OPTIONS: JSON.stringify({ ...site.options, binary, passthrough: ['REAL_PATH'] }),
      },
      isReady: line => line.message === 'started',
    })
    await service.ready
    const files = () => (existsSync(site.options.dataDir) ? readFiles(site.options.dataDir) : [])
    await until('the plan file has been written', () => files().some(({ path }) => path.endsWith('/planned')))
    expect(files().map(({ path }) => path.split('/').at(-1))).toContain('main.tf.json')
    expect(files().flatMap(({ text }) => mentions(text))).toEqual([])
    await killProcesses(site.folder)
    expect(files().flatMap(({ text }) => mentions(text))).toEqual([])
    const listWorkdirs = () => readdirSync(join(site.options.dataDir, 'work'))
    const leftBehind = listWorkdirs()
    expect(leftBehind).toHaveLength(1)
    // It may be in use until the longest plan has ended.
    expect(await plan(site.options, false)).toMatchObject({ kind: 'planned' })
    expect(listWorkdirs()).toEqual(leftBehind)
    utimesSync(join(site.options.dataDir, 'work', String(leftBehind[0])), 0, 0)
    expect(await plan(site.options, false)).toMatchObject({ kind: 'planned' })
    expect(listWorkdirs()).toEqual([])
  })
})

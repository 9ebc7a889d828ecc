import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import type { KnownState } from '../../src/deployments/domain/types.ts'
import type { ProvisioningRequest } from '../../src/deployments/provisioner.ts'
import type { TerraformOptions } from '../../src/deployments/terraform/terraform.ts'
import { startStateServer } from './support/state-server.ts'
import {
  inspect,
  isolatedInProof,
  isTerraformMissing,
  killProcesses,
  plan,
  type Site,
  startApply,
  startDestroy,
  useSites,
} from './support/terraform.ts'

const execFileAsync = promisify(execFile)
const createTestSite = useSites(isolatedInProof)

const MACHINE = 'resource "terraform_data" "machine" { input = 1 }'
const TWO_MACHINES = `${MACHINE}
resource "terraform_data" "other" { input = 1 }`

const toStatePath = ({ options }: Site) => join(options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate')

/** What the service records of a state, as one run after the other reports it. */
const recordStates = () => {
  const reported: KnownState[] = []
  const request = (): Partial<ProvisioningRequest> => ({
    knownState: reported.at(-1) ?? null,
    onState: async known => {
      reported.push(known)
    },
  })
  return { reported, request }
}

/** Expects that no operation accepts the state, with this reason, and that none changes anything. */
const expectRejected = async (options: TerraformOptions, request: Partial<ProvisioningRequest>, reason: RegExp) => {
  const failed = { kind: 'failed', reason: expect.stringMatching(reason) }
  expect(await startApply(options, { ...request, run: 2 }).result).toEqual(failed)
  expect(await startDestroy(options, { ...request, run: 3 }).result).toEqual(failed)
  expect(await plan(options, false, request)).toEqual(failed)
  expect(await plan(options, true, request)).toEqual(failed)
  expect(await inspect(options, request)).toEqual(failed)
}

describe.skipIf(isTerraformMissing)('the state of a deployment whose infrastructure is up', () => {
  test('is reported before and after an apply and after a destroy, with a serial that only increases', async () => {
    const site = createTestSite(MACHINE)
    const { reported, request } = recordStates()
    await startApply(site.options, request()).result
    const state = { lineage: expect.any(String), serial: expect.any(Number) }
    const machine = { address: 'module.deployment.terraform_data.machine' }
    expect(reported).toEqual([state, { ...state, unfinished: [machine] }, state])
    await startDestroy(site.options, request()).result
    expect(new Set(reported.map(({ lineage }) => lineage)).size).toBe(1)
    const serials = reported.map(({ serial }) => serial)
    expect(serials).toEqual(serials.toSorted((a, b) => a - b))
    const stored = JSON.parse(readFileSync(toStatePath(site), 'utf8'))
    expect(reported.at(-1)).toEqual({ lineage: stored.lineage, serial: stored.serial })
  })

  test('is not taken for empty if its directory was emptied', async () => {
    const site = createTestSite(MACHINE)
    const { reported, request } = recordStates()
    await startApply(site.options, request()).result
    const state = readFileSync(toStatePath(site))
    rmSync(site.options.dataDir, { recursive: true })
    const before = reported.length
    await expectRejected(
      site.options,
      request(),
      /^The state of this deployment is missing: .*Nothing was changed.*retry/,
    )
    expect(reported).toHaveLength(before)

    mkdirSync(dirname(toStatePath(site)), { recursive: true })
    writeFileSync(toStatePath(site), state)
    expect(await startDestroy(site.options, { ...request(), run: 4 }).result).toEqual({ kind: 'destroyed' })
  })

  test('is not taken for empty if the backend was changed, and is found again after a change back', async () => {
    const site = createTestSite(MACHINE)
    const server = await startStateServer()
    const { request } = recordStates()
    await startApply(site.options, request()).result
    const elsewhere = { ...site.options, backend: server.backend }
    await expectRejected(elsewhere, request(), /^The state of this deployment is missing/)
    const moved = { ...site.options, backend: { type: 'local', settings: { path: join(site.folder, '{deployment}') } } }
    await expectRejected(moved, request(), /^The state of this deployment is missing/)
    expect(server.state()).toBe(null)
    expect(await inspect(site.options, request())).toMatchObject({ isEmpty: false })
    expect(await startDestroy(site.options, { ...request(), run: 4 }).result).toEqual({ kind: 'destroyed' })
    server.close()
  })

  test('is accepted at another place after it was moved there as the operations guide says', async () => {
    const site = createTestSite(MACHINE)
    const { request } = recordStates()
    await startApply(site.options, request()).result
    const copy = { ...site.options, dataDir: join(site.folder, 'copy') }
    cpSync(join(site.options.dataDir, 'state'), join(copy.dataDir, 'state'), { recursive: true })
    expect(await inspect(copy, request())).toMatchObject({ isEmpty: false })

    const server = await startStateServer()
    const folder = mkdtempSync(join(site.folder, 'move-'))
    const { address } = server.backend.settings
    const terraform = (...args: string[]) => execFileAsync('terraform', args, { cwd: folder })
    const useBackend = (backend: object) =>
      writeFileSync(join(folder, 'main.tf.json'), JSON.stringify({ terraform: { backend } }))
    useBackend({ local: { path: toStatePath(site) } })
    await terraform('init')
    writeFileSync(join(folder, 'pulled'), (await terraform('state', 'pull')).stdout)
    useBackend({ http: { address: String(address).replace('{deployment}', 'acme.pool.test') } })
    await terraform('init', '-reconfigure')
    const moved = { ...site.options, backend: server.backend }
    await terraform('state', 'push', 'pulled')
    // Terraform has given it a new lineage.
    await expectRejected(moved, request(), /^The backend has another state/)
    await terraform('state', 'push', '-force', 'pulled')
    expect(await startDestroy(moved, { ...request(), run: 2 }).result).toEqual({ kind: 'destroyed' })
    server.close()
  })

  test('is not replaced by an older version of it', async () => {
    const site = createTestSite(MACHINE)
    const { request } = recordStates()
    await startApply(site.options, request()).result
    const older = readFileSync(toStatePath(site))
    site.write(TWO_MACHINES)
    await startApply(site.options, { ...request(), run: 2 }).result
    writeFileSync(toStatePath(site), older)
    await expectRejected(site.options, request(), /^The state is older than .*serial \d+, but \d+ was written.*Restore/)
    expect(readFileSync(toStatePath(site))).toEqual(older)
  })

  test('is not replaced by that of another deployment', async () => {
    const [site, other] = [createTestSite(MACHINE), createTestSite(MACHINE)]
    const { request } = recordStates()
    await startApply(site.options, request()).result
    await startApply(other.options).result
    cpSync(toStatePath(other), toStatePath(site))
    await expectRejected(site.options, request(), /^The backend has another state .*Terraform lineage/)
  })

  test('may be newer than the last report, because a killed run reports nothing', async () => {
    const site = createTestSite(MACHINE)
    const { reported, request } = recordStates()
    await startApply(site.options, request()).result
    const [first = null] = reported
    expect(await inspect(site.options, { knownState: first })).toMatchObject({ kind: 'inspected' })
    expect(await startDestroy(site.options, { knownState: first, run: 2 }).result).toEqual({ kind: 'destroyed' })
  })
})

/** It waits for the file `go` after it has created the first resource. */
const SLOW = `${MACHINE}
resource "terraform_data" "last" {
  input = terraform_data.machine.id
  provisioner "local-exec" {
    command     = "echo waiting; until [ -e ../go ]; do sleep 0.02; done"
    working_dir = path.module
  }
}`

describe.skipIf(isTerraformMissing)('the first apply', () => {
  test('has written a state before it creates anything, so that the state of a killed one is not missed', async () => {
    const site = createTestSite(SLOW)
    const { reported, request } = recordStates()
    const run = startApply({ ...site.options, env: { ...site.options.env, TMPDIR: site.folder } }, request())
    await until('the apply waits', () => run.logged('(local-exec): waiting'))
    // Two creations that start at once are recorded at once.
    await until('what may exist is recorded', () => reported.at(-1)?.unfinished?.length === 2)
    const empty = { lineage: expect.any(String), serial: 1 }
    const [machine, last] = ['machine', 'last'].map(name => ({ address: `module.deployment.terraform_data.${name}` }))
    expect([reported[0], reported.at(-1)]).toEqual([empty, { ...empty, unfinished: [machine, last] }])
    const killed = recordStates()
    killed.reported.push(...reported)
    await killProcesses(site.folder)
    await run.result
    rmSync(toStatePath(site))
    await expectRejected(site.options, killed.request(), /^The state of this deployment is missing/)
  })

  test('changes nothing if its state cannot be recorded', async () => {
    const site = createTestSite(MACHINE)
    const run = startApply(site.options, { onState: () => Promise.reject(new Error('the lease is lost')) })
    await expect(run.result).rejects.toThrow('the lease is lost')
    expect(await inspect(site.options)).toMatchObject({ isEmpty: true })
  })
})

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { isRunning } from '@pool/test-kit/processes.ts'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { afterAll } from 'vitest'
import type { DeploymentLogLine } from '../../../src/deployments/domain/types.ts'
import type { DestroyResult, ProvisioningRequest, ProvisioningResult } from '../../../src/deployments/provisioner.ts'
import { createTerraform, type TerraformOptions } from '../../../src/deployments/terraform/terraform.ts'

const isInstalled = ['terraform', 'tofu'].some(name => spawnSync(name, ['version']).status === 0)

export const isTerraformMissing = shouldSkip(
  isInstalled
    ? undefined
    : 'Infrastructure is not tested: terraform 1.6 or later (or tofu) is missing: https://developer.hashicorp.com/terraform/install',
)

/** Each value is marked, so that a leak is detected. */
export const secrets = {
  object_storage_access_key: 'MARKACCESSKEY01234567',
  object_storage_secret_key: 'mark-secret/with+"quotes"&$' + '{more}-and-length-0123',
}
export const variables = { deployment_id: 'd1', provider_names: '["hcloud","minio"]' }

/** Turns off the garbage collector of Terraform: a command with a small state is faster without it. */
export const withoutCollector = { GOGC: 'off' }

/**
 * For tests of what Terraform does with a state, whose commands take half as long without isolation. The proof
 * `terraform/isolated` runs them with it.
 */
export const isolatedInProof: Partial<TerraformOptions> = isProof ? {} : { isolation: 'off' }

/** The variables that every module of the tests declares. */
const header = `
variable "deployment_id" { type = string }
variable "provider_names" { type = list(string) }
variable "object_storage_access_key" { type = string }
variable "object_storage_secret_key" { type = string }
`

export interface Site {
  readonly folder: string
  readonly options: TerraformOptions
  /** Replaces the text of the module. */
  write(text: string): void
  remove(): void
}

/** A directory with a module, and the options to apply it. */
const createSite = (text: string, more: Partial<TerraformOptions> = {}): Site => {
  const folder = mkdtempSync(join(tmpdir(), 'terraform-test-'))
  // OpenTofu takes the source of a module as a template.
  const moduleFolder = join(folder, process.env.INFRA_BINARY === 'tofu' ? 'module x' : 'module $' + '{x}')
  const write = (body: string) => writeFileSync(join(moduleFolder, 'main.tf'), header + body)
  mkdirSync(moduleFolder)
  write(text)
  const options: TerraformOptions = {
    binary: process.env.INFRA_BINARY ?? null,
    dataDir: join(folder, 'deployments'),
    moduleDir: moduleFolder,
    backend: null,
    timeoutMs: 150_000,
    stopTimeoutMs: 60_000,
    passthrough: Object.keys(withoutCollector),
    isolation: process.env.TEST_ISOLATION === 'off' ? 'off' : 'auto',
    runner: null,
    // A module waits for files in it.
    visiblePaths: [folder],
    env: { PATH: process.env.PATH, ...withoutCollector },
    ...more,
  }
  return { folder, options, write, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Creates sites, with these options, that are removed after the tests of the calling file. */
export const useSites = (shared: Partial<TerraformOptions> = {}) => {
  const sites: Site[] = []
  afterAll(() => {
    for (const site of sites) site.remove()
  })
  return (text = '', more?: Partial<TerraformOptions>): Site => {
    const site = createSite(text, { ...shared, ...more })
    sites.push(site)
    return site
  }
}

export interface TerraformRun<Result> {
  readonly lines: readonly DeploymentLogLine[]
  readonly result: Promise<Result>
  /** Whether a line with this text was logged. */
  logged(text: string): boolean
  stop(): void
}

/** A complete request, without object storage unless `request` has it. */
export const toRequest = (request: Partial<ProvisioningRequest> = {}): ProvisioningRequest => ({
  id: 'm1',
  run: 1,
  stateKey: 'acme.pool.test',
  knownState: null,
  bucket: null,
  variables,
  secrets,
  ...request,
})

const start = <Result>(
  execute: (log: (line: DeploymentLogLine) => void, signal: AbortSignal) => Promise<Result>,
): TerraformRun<Result> => {
  const lines: DeploymentLogLine[] = []
  const stopping = new AbortController()
  const result = execute(line => lines.push(line), stopping.signal)
  result.catch(() => {})
  return {
    lines,
    result,
    logged: text => lines.some(line => line.message.includes(text)),
    stop: () => stopping.abort(),
  }
}

export const startApply = (
  options: TerraformOptions,
  request: Partial<ProvisioningRequest> = {},
): TerraformRun<ProvisioningResult> =>
  start((log, signal) => createTerraform(options).apply(toRequest(request), log, signal))

export const startDestroy = (
  options: TerraformOptions,
  request: Partial<ProvisioningRequest> = {},
): TerraformRun<DestroyResult> =>
  start((log, signal) => createTerraform(options).destroy(toRequest(request), log, signal))

export const inspect = (options: TerraformOptions, request: Partial<ProvisioningRequest> = {}) =>
  createTerraform(options).inspect(toRequest(request), new AbortController().signal)

export const plan = (options: TerraformOptions, destroy: boolean, request: Partial<ProvisioningRequest> = {}) =>
  createTerraform(options).plan({ ...toRequest(request), destroy }, new AbortController().signal)

/** The processes that have this text in their environment or arguments. */
export const findProcesses = (text: string): { pid: number; args: string }[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap(pid => {
      try {
        const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        const isWith = args.includes(text) || readFileSync(`/proc/${pid}/environ`, 'utf8').includes(text)
        return isWith && args ? [{ pid: Number(pid), args }] : []
      } catch {
        return []
      }
    })

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended in the meantime.
  }
}

/**
 * Kills the processes that have this text in their environment or arguments, and waits for their end. It stops all of them
 * first: a survivor of the first kill could end gracefully, and Terraform would release its lock.
 */
export const killProcesses = (text: string): Promise<boolean> => {
  // A process that exits has no arguments already, but is still a member of its group.
  const killed = new Set<number>()
  return until('nothing runs', () => {
    let processes = findProcesses(text)
    for (let count = -1; count !== processes.length; processes = findProcesses(text)) {
      count = processes.length
      for (const { pid } of processes) signal(pid, 'SIGSTOP')
    }
    for (const { pid } of processes) {
      signal(pid, 'SIGKILL')
      killed.add(pid)
    }
    return processes.length === 0 && ![...killed].some(isRunning)
  })
}

/** Every file in the directory and below, with its text. */
export const readFiles = (folder: string): { path: string; text: string }[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => {
      const path = join(entry.parentPath, entry.name)
      return { path, text: readFileSync(path, 'latin1') }
    })

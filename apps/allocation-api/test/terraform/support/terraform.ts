import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll } from 'vitest'
import type { LogLine } from '../../../src/deployments/domain/types.ts'
import type { ApplyRequest, ApplyResult } from '../../../src/deployments/provisioner.ts'
import { createTerraform, type TerraformOptions } from '../../../src/deployments/terraform/terraform.ts'

const isThere = ['terraform', 'tofu'].some(name => spawnSync(name, ['version']).status === 0)

export const lacksTerraform = shouldSkip(
  isThere
    ? undefined
    : 'making infrastructure is not tested: lacks terraform 1.6 or later (or tofu): https://developer.hashicorp.com/terraform/install',
)

/** Each value has a mark, so that a leak of any of them is seen. */
export const secrets = {
  object_storage_access_key: 'MARKACCESSKEY01234567',
  object_storage_secret_key: 'mark-secret/with+"quotes"&$' + '{more}-and-length-0123',
}
export const variables = { deployment_id: 'd1', provider_names: '["hcloud","minio"]' }

/** What every fixture declares, before what it does. */
const header = `
variable "deployment_id" { type = string }
variable "provider_names" { type = list(string) }
variable "object_storage_access_key" { type = string }
variable "object_storage_secret_key" { type = string }
`

export interface Site {
  readonly folder: string
  readonly options: TerraformOptions
  /** Other text in the module. */
  write(text: string): void
  remove(): void
}

/** A folder with a module, and what makes it. */
const createSite = (text: string, more: Partial<TerraformOptions> = {}): Site => {
  const folder = mkdtempSync(join(tmpdir(), 'terraform-test-'))
  const moduleFolder = join(folder, 'module $' + '{x}')
  const write = (body: string) => writeFileSync(join(moduleFolder, 'main.tf'), header + body)
  mkdirSync(moduleFolder)
  write(text)
  const options: TerraformOptions = {
    binary: null,
    dataDir: join(folder, 'deployments'),
    moduleDir: moduleFolder,
    backend: null,
    timeoutMs: 60_000,
    passthrough: [],
    env: { PATH: process.env.PATH },
    ...more,
  }
  return { folder, options, write, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Sites that are removed when the tests of the calling file are over. */
export const useSites = () => {
  const sites: Site[] = []
  afterAll(() => {
    for (const site of sites) site.remove()
  })
  return (text = '', more?: Partial<TerraformOptions>): Site => {
    const made = createSite(text, more)
    sites.push(made)
    return made
  }
}

export interface TerraformRun {
  readonly lines: readonly LogLine[]
  readonly result: Promise<ApplyResult>
  /** Whether a line with this text was told. */
  logged(text: string): boolean
  stop(): void
}

export const startApply = (options: TerraformOptions, making: Partial<ApplyRequest> = {}): TerraformRun => {
  const lines: LogLine[] = []
  const stopping = new AbortController()
  const result = createTerraform(options).apply(
    { id: 'm1', run: 1, stateKey: 'acme.pool.test', variables, secrets, ...making },
    line => lines.push(line),
    stopping.signal,
  )
  result.catch(() => {})
  return {
    lines,
    result,
    logged: text => lines.some(line => line.message.includes(text)),
    stop: () => stopping.abort(),
  }
}

/** What runs with this text in its environment or arguments, by its arguments. */
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

/** Every file below, with its text and mode. */
export const readFiles = (folder: string): { path: string; text: string }[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => {
      const path = join(entry.parentPath, entry.name)
      return { path, text: readFileSync(path, 'latin1') }
    })

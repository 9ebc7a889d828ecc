import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import { startSlowCloud } from './support/slow-cloud.ts'
import { startStateServer } from './support/state-server.ts'
import {
  findProcesses,
  isTerraformMissing,
  readFiles,
  type Site,
  secrets,
  startApply,
  useSites,
  variables,
} from './support/terraform.ts'

const marks = [...Object.values(secrets), 'MARKACCESS', 'mark-secret', 'passed-mark']
const mentions = (text: string) => marks.filter(mark => text.includes(mark))

const createTestSite = useSites()
const listWorkdirs = ({ options }: Site) => readdirSync(join(options.dataDir, 'work'))

/** Prints its secrets in several encodings, then waits for a file in the module's directory. */
const talkative = `
resource "terraform_data" "net" {
  input = var.deployment_id
  provisioner "local-exec" {
    command = <<-EOT
      env | sed 's/=.*//' | sort | tr '\\n' ' '; echo names
      printenv SECRET; printenv SECRET | base64 -w 40
      printf '%s:%s' "$ACCESS" "$SECRET" | base64
      printf 'x%s' "$ACCESS" | base64; printenv PASSED_TOKEN >&2
      head -c 20000 /dev/zero | tr '\\0' 'x'; printenv ACCESS
      until [ -e go ]; do sleep 0.02; done
    EOT
    working_dir = path.module
    environment = { ACCESS = nonsensitive(var.object_storage_access_key), SECRET = nonsensitive(var.object_storage_secret_key) }
  }
}
output "load_balancer_ip" { value = "192.0.2.7" }
output "details" {
  value = {
    providers = var.provider_names
    zone      = "eu-central-1a"
    leaked    = nonsensitive(substr(var.object_storage_access_key, 0, 21))
  }
}
output "key" {
  value     = var.object_storage_secret_key
  sensitive = true
}
`

describe.skipIf(isTerraformMissing)('an apply', () => {
  test('returns the outputs and shows no secret anywhere', async () => {
    const passed = {
      PASSED_TOKEN: 'passed-mark-token',
      AWS_REGION: 'eu-central-1',
      TF_LOG: 'trace',
      PDM_X: 'x',
      OTHER: 'o',
      LANG: 'C',
      TF_CLI_CONFIG_FILE: '/nowhere',
    }
    const site = createTestSite(talkative, { passthrough: ['PASSED_TOKEN', 'TF_LOG', 'AWS_REGION'] })
    const options = { ...site.options, env: { ...site.options.env, ...passed } }
    const run = startApply(options)
    await until('the provisioner has printed everything', () => run.logged('): xxxx'))

    // During the run: no secret in arguments or files, and all files are readable by this user only.
    const running = findProcesses(options.dataDir)
    expect(running.some(({ args }) => args.includes(' apply ') || args.includes('terraform apply'))).toBe(true)
    expect(running.flatMap(({ args }) => mentions(args))).toEqual([])
    const work = join(options.dataDir, 'work', 'm1.1')
    expect(readFiles(options.dataDir).flatMap(({ text }) => mentions(text))).toEqual([])
    expect([options.dataDir, work, join(work, 'main.tf.json')].map(path => statSync(path).mode & 0o777)).toEqual([
      0o700, 0o700, 0o600,
    ])
    writeFileSync(join(options.moduleDir ?? '', 'go'), '')

    expect(await run.result).toEqual({
      kind: 'applied',
      outputs: {
        load_balancer_ip: '192.0.2.7',
        details: { providers: ['hcloud', 'minio'], zone: 'eu-central-1a', leaked: '<redacted>' },
      },
    })
    expect(run.lines.flatMap(({ message }) => mentions(message))).toEqual([])
    const log = run.lines.map(({ message }) => message).join('\n')
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    for (const secret of Object.values(secrets)) expect(log).not.toContain(base64(secret).slice(4, 24))
    expect(run.lines.filter(({ message }) => message.includes('<redacted>')).length).toBeGreaterThanOrEqual(6)
    expect(Math.max(...run.lines.map(({ message }) => Buffer.byteLength(message)))).toBe(8_192)
    expect(new Set(run.lines.map(({ phase, level }) => `${phase} ${level}`))).toEqual(
      new Set(['init info', 'apply info']),
    )

    const names =
      run.lines
        .find(({ message }) => message.endsWith(' names'))
        ?.message.split('): ')[1]
        ?.split(' ') ?? []
    const shells = ['OLDPWD', 'PWD', 'SHLVL', 'TMPDIR', '_', 'names']
    expect(names.filter(name => !shells.includes(name))).toEqual([
      ...['ACCESS', 'AWS_REGION', 'CHECKPOINT_DISABLE', 'LANG', 'PASSED_TOKEN', 'PATH', 'SECRET', 'TF_INPUT'],
      'TF_IN_AUTOMATION',
    ])
    expect(listWorkdirs(site)).toEqual([])

    // Another apply of the same state key resumes from the state: nothing is created again.
    const state = join(options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate')
    const before = readFileSync(state, 'utf8')
    const again = startApply(options, { id: 'm2' })
    expect(await again.result).toMatchObject({ kind: 'applied', outputs: { load_balancer_ip: '192.0.2.7' } })
    expect(again.logged('Resources: 0 added, 0 changed, 0 destroyed.')).toBe(true)
    expect(readFileSync(state, 'utf8')).toBe(before)
    expect(statSync(state).mode & 0o077).toBe(0)
    // The module marks this output as not sensitive. No other secret is in the state.
    expect(mentions(before.replaceAll(secrets.object_storage_access_key, ''))).toEqual([])
    expect(JSON.parse(before).outputs).not.toHaveProperty('key')
  })

  test('that fails has a reason, and the next one resumes', async () => {
    const failing = `
      resource "terraform_data" "first" { input = 1 }
      resource "terraform_data" "second" {
        input      = terraform_data.first.id
        provisioner "local-exec" { command = "echo no $TF_VAR_object_storage_access_key; [ -e ${'$'}{path.module}/../ok ]" }
      }`
    const site = createTestSite(failing)
    const run = startApply(site.options)
    expect(await run.result).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(
        /^module\.deployment\.terraform_data\.second: local-exec provisioner error \(on .*main\.tf line \d+, in resource "terraform_data" "second"\): Error running the command: exit status [12]\. Output: no /,
      ),
    })
    expect(run.lines.filter(({ level }) => level === 'error').length).toBeGreaterThan(0)
    expect(run.lines.flatMap(({ message }) => mentions(message))).toEqual([])
    site.write('resource "terraform_data" "first" { input = 1 }')
    const next = startApply(site.options, { id: 'm2' })
    expect(await next.result).toEqual({ kind: 'applied', outputs: {} })
    expect(next.logged('Resources: 0 added, 0 changed, 1 destroyed.')).toBe(true)
    expect(listWorkdirs(site)).toEqual([])
  })

  test.each([
    [
      'a module that is not valid',
      'output "x" {',
      /^Missing required argument \(on .*main\.tf line \d+.*The argument "value"/,
    ],
    [
      'an expression that fails',
      'resource "terraform_data" "b" {\n  input = split(",", var.deployment_id)[5]\n}',
      /^Invalid index \(on module .*main\.tf line \d+, in resource "terraform_data" "b"\): The given/,
    ],
    [
      'a module with another variable',
      'variable "region" { type = string }',
      /^Missing required argument \(on main\.tf\.json line \d+.*\): The argument "region"/,
    ],
    [
      'a module that outputs a key',
      'output "details" { value = var.object_storage_secret_key }',
      /^Output refers to sensitive values \(on main\.tf\.json line \d+, in output\): /,
    ],
    ['a module that is not found', 'module "m" { source = "./nowhere" }', /^Unreadable module directory/],
  ])('fails with the reason: %s', async (_, text, reason) => {
    const site = createTestSite(text)
    expect(await startApply(site.options).result).toEqual({ kind: 'failed', reason: expect.stringMatching(reason) })
    expect(listWorkdirs(site)).toEqual([])
  })

  test('shows no value that its module marks as sensitive when it fails', async () => {
    const site = createTestSite(`
      locals { password = sensitive("Gen3rated-locally") }
      resource "terraform_data" "stored" { input = sensitive("Gen3rated-in-state") }
      resource "terraform_data" "echo" {
        provisioner "local-exec" { command = "echo Gen3rated-on-output: '$\{local.password}'; exit 1" }
      }
      resource "terraform_data" "check" {
        lifecycle {
          postcondition {
            condition     = terraform_data.stored.id == ""
            error_message = "It has $\{nonsensitive(terraform_data.stored.output)}."
          }
        }
      }`)
    const run = startApply(site.options)
    const { reason = '' } = Object(await run.result)
    const errors = run.lines.filter(({ level }) => level === 'error').map(({ message }) => message)
    expect(errors.toSorted()).toEqual([
      expect.stringMatching(/^Resource postcondition failed .*: It has <redacted>\.$/),
      expect.stringMatching(/local-exec provisioner error .*exit status 1\. Output: \(hidden, /),
    ])
    expect(errors).toContain(reason)
    expect(JSON.stringify(run.lines)).not.toContain('Gen3rated')
  })

  test.each([
    ['cannot be read', 'GET'],
    ['cannot be written', 'POST'],
  ])('whose state %s says why', async (_, method) => {
    const server = await startStateServer()
    onTestFinished(() => server.close())
    server.reject(method)
    const site = createTestSite()
    expect(await startApply({ ...site.options, backend: server.backend }).result).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(/Failed to (?:get|upload) state: .*giving up/),
    })
  })

  test('concurrent applies are independent; those of one state key queue, and one that is stopped in the queue never starts', async () => {
    const meeting = `
      resource "terraform_data" "x" {
        provisioner "local-exec" {
          command = "echo here; cd '${'$'}{path.module}'; until [ -e go ]; do sleep 0.02; done"
        }
      }
      output "details" { value = var.deployment_id }`
    const site = createTestSite(meeting)
    const terraform = createTerraform(site.options)
    const startOne = (id: string, stateKey: string, signal: AbortSignal = new AbortController().signal) => {
      const lines: string[] = []
      const result = terraform.apply(
        {
          id,
          run: 1,
          stateKey,
          bucket: null,
          knownState: null,
          variables: { ...variables, deployment_id: id },
          secrets,
        },
        line => lines.push(line.message),
        signal,
      )
      return { lines, result }
    }
    const stopping = new AbortController()
    const [one, two, twin, stopped] = [
      startOne('one', 'one.test'),
      startOne('two', 'two.test'),
      startOne('twin', 'one.test'),
      startOne('stopped', 'one.test', stopping.signal),
    ]
    const isHere = ({ lines }: typeof one) => lines.some(line => line.endsWith('(local-exec): here'))
    await until('both are in progress', () => isHere(one) && isHere(two))
    stopping.abort()
    expect(await stopped.result).toEqual({ kind: 'stopped' })
    expect([twin.lines, stopped.lines]).toEqual([[], []])
    writeFileSync(join(site.options.moduleDir ?? '', 'go'), '')
    expect(await Promise.all([one.result, two.result, twin.result])).toEqual(
      ['one', 'two', 'twin'].map(id => ({ kind: 'applied', outputs: { details: id } })),
    )
    expect(isHere(twin)).toBe(false)
    expect(readdirSync(join(site.options.dataDir, 'state'))).toEqual(['one.test', 'two.test'])
  })

  // Terraform looks each second whether the process of a provider still exists.
  test('uses a provider of this process for longer than a second', async () => {
    const cloud = await startSlowCloud('first exists')
    onTestFinished(cloud.stop)
    const site = createTestSite(`
      terraform {
        required_providers { cloud = { source = "test/cloud" } }
      }
      resource "cloud_machine" "first" { name = "first" }`)
    const env = { ...site.options.env, TF_REATTACH_PROVIDERS: cloud.reattach }
    const run = startApply({
      ...site.options,
      env,
      passthrough: [...site.options.passthrough, 'TF_REATTACH_PROVIDERS'],
    })
    await cloud.reached
    await sleep(2_500)
    cloud.release()
    expect(await run.result).toEqual({ kind: 'applied', outputs: {} })
  })

  test('supports another backend, the CLI configuration of the user and the lock file of the module', async () => {
    const site = createTestSite('')
    const path = join(site.folder, 'elsewhere-{deployment}.tfstate')
    writeFileSync(join(site.options.moduleDir ?? '', '.terraform.lock.hcl'), 'not a lock file')
    const options = { ...site.options, backend: { type: 'local', settings: { path } } }
    expect(await startApply(options).result).toMatchObject({ kind: 'failed', reason: expect.stringContaining('lock') })
    writeFileSync(join(site.options.moduleDir ?? '', '.terraform.lock.hcl'), '')
    const cliConfig = join(site.folder, 'cli.tfrc')
    writeFileSync(cliConfig, 'host "bad host" {}')
    const withConfig = { ...options, env: { ...site.options.env, TF_CLI_CONFIG_FILE: cliConfig } }
    const complained = startApply(withConfig)
    expect(await complained.result).toMatchObject({ kind: 'applied' })
    expect(complained.logged('Error: The host "bad host" block')).toBe(true)
    site.write('output "details" { value = 1 }')
    expect(await startApply(options).result).toEqual({ kind: 'applied', outputs: { details: 1 } })
    expect(existsSync(path.replace('{deployment}', 'acme.pool.test'))).toBe(true)
  })
})

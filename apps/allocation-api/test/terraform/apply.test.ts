import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import {
  findProcesses,
  lacksTerraform,
  readFiles,
  type Site,
  secrets,
  startApply,
  useSites,
  variables,
} from './support/terraform.ts'

const marks = [...Object.values(secrets), 'MARKACCESS', 'mark-secret', 'passed-mark']
const mentions = (text: string) => marks.filter(mark => text.includes(mark))

const site = useSites()
const workOf = ({ options }: Site) => readdirSync(join(options.dataDir, 'work'))

/** Says its secrets in several encodings, then waits for a file in the module's folder. */
const talkative = `
resource "terraform_data" "net" {
  input = var.deployment_id
  provisioner "local-exec" {
    command = <<-EOT
      env | sed 's/=.*//' | sort | tr '\\n' ' '; echo names
      printenv TF_VAR_object_storage_secret_key; printenv TF_VAR_object_storage_secret_key | base64 -w 40
      printf '%s:%s' "$TF_VAR_object_storage_access_key" "$TF_VAR_object_storage_secret_key" | base64
      printf 'x%s' "$TF_VAR_object_storage_access_key" | base64; printenv PASSED_TOKEN >&2
      head -c 20000 /dev/zero | tr '\\0' 'x'; printenv TF_VAR_object_storage_access_key
      until [ -e go ]; do sleep 0.02; done
    EOT
    working_dir = path.module
  }
}
output "load_balancer_ip" { value = "192.0.2.7" }
output "details" {
  value = {
    providers = var.provider_names
    leaked    = nonsensitive(substr(var.object_storage_access_key, 0, 21))
  }
}
output "key" {
  value     = var.object_storage_secret_key
  sensitive = true
}
`

describe.skipIf(lacksTerraform)('a making', () => {
  test('gives the outputs, and shows no secret anywhere', async () => {
    const passed = {
      PASSED_TOKEN: 'passed-mark-token',
      TF_LOG: 'trace',
      PDM_X: 'x',
      OTHER: 'o',
      LANG: 'C',
      TF_CLI_CONFIG_FILE: '/nowhere',
    }
    const here = site(talkative, { passthrough: ['PASSED_TOKEN', 'TF_LOG'] })
    const options = { ...here.options, env: { ...here.options.env, ...passed } }
    const run = startApply(options)
    await until('the provisioner has said all', () => run.logged('): xxxx'))

    // While it runs: nothing in arguments or files, and all of it is for this user alone.
    const running = findProcesses(secrets.object_storage_access_key)
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
        details: { providers: ['hcloud', 'minio'], leaked: '<redacted>' },
      },
    })
    expect(run.lines.flatMap(({ message }) => mentions(message))).toEqual([])
    const said = run.lines.map(({ message }) => message).join('\n')
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    for (const secret of Object.values(secrets)) expect(said).not.toContain(base64(secret).slice(4, 24))
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
    const shells = ['OLDPWD', 'PWD', 'SHLVL', '_', 'names']
    expect(names.filter(name => !shells.includes(name))).toEqual([
      ...['CHECKPOINT_DISABLE', 'LANG', 'PASSED_TOKEN', 'PATH', 'TF_INPUT', 'TF_IN_AUTOMATION'],
      ...['TF_VAR_deployment_id', 'TF_VAR_object_storage_access_key', 'TF_VAR_object_storage_secret_key'],
      'TF_VAR_provider_names',
    ])
    expect(workOf(here)).toEqual([])

    // Another making of the same goes on from there: nothing is done again.
    const state = join(options.dataDir, 'state', 'acme.pool.test.tfstate')
    const before = readFileSync(state, 'utf8')
    const again = startApply(options, { id: 'm2' })
    expect(await again.result).toMatchObject({ kind: 'applied', outputs: { load_balancer_ip: '192.0.2.7' } })
    expect(again.logged('Resources: 0 added, 0 changed, 0 destroyed.')).toBe(true)
    expect(readFileSync(state, 'utf8')).toBe(before)
    expect(statSync(state).mode & 0o077).toBe(0)
    // What the module gives out as not sensitive although it is, is the module's fault; nothing else is in the state.
    expect(mentions(before.replaceAll(secrets.object_storage_access_key, ''))).toEqual([])
    expect(JSON.parse(before).outputs).not.toHaveProperty('key')
  })

  test('that fails says why, and the next one goes on', async () => {
    const failing = `
      resource "terraform_data" "first" { input = 1 }
      resource "terraform_data" "second" {
        input      = terraform_data.first.id
        provisioner "local-exec" { command = "echo no $TF_VAR_object_storage_access_key; [ -e ${'$'}{path.module}/../ok ]" }
      }`
    const here = site(failing)
    const run = startApply(here.options)
    expect(await run.result).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(
        /^module\.deployment\.terraform_data\.second: local-exec provisioner error: Error running command .* exit status [12]/,
      ),
    })
    expect(run.lines.filter(({ level }) => level === 'error').length).toBeGreaterThan(0)
    expect(run.lines.flatMap(({ message }) => mentions(message))).toEqual([])
    here.write('resource "terraform_data" "first" { input = 1 }')
    const next = startApply(here.options, { id: 'm2' })
    expect(await next.result).toEqual({ kind: 'applied', outputs: {} })
    expect(next.logged('Resources: 0 added, 0 changed, 1 destroyed.')).toBe(true)
    expect(workOf(here)).toEqual([])
  })

  test.each([
    ['a module that is not valid', 'output "x" {', /^Missing required argument: .* The argument "value"/],
    [
      'a module that asks for more',
      'variable "region" { type = string }',
      /^Missing required argument: The argument "region"/,
    ],
    [
      'a module that tells a key',
      'output "details" { value = var.object_storage_secret_key }',
      /^Output refers to sensitive values: /,
    ],
    ['a module that is not found', 'module "m" { source = "./nowhere" }', /^Unreadable module directory: /],
  ])('fails with the reason: %s', async (_, text, reason) => {
    const here = site(text)
    expect(await startApply(here.options).result).toEqual({ kind: 'failed', reason: expect.stringMatching(reason) })
    expect(workOf(here)).toEqual([])
  })

  test('two at once are apart; two of the same come one after the other, and a third that is stopped never starts', async () => {
    const meeting = `
      resource "terraform_data" "x" {
        provisioner "local-exec" {
          command = "echo here; cd '${'$'}{path.module}'; touch at-$TF_VAR_deployment_id; until [ -e go ]; do sleep 0.02; done"
        }
      }
      output "details" { value = var.deployment_id }`
    const here = site(meeting)
    const terraform = createTerraform(here.options)
    const make = (id: string, stateKey: string, signal: AbortSignal = new AbortController().signal) => {
      const lines: string[] = []
      const made = terraform.apply(
        { id, run: 1, stateKey, variables: { ...variables, deployment_id: id }, secrets },
        line => lines.push(line.message),
        signal,
      )
      return { lines, made }
    }
    const stopping = new AbortController()
    const [one, two, twin, stopped] = [
      make('one', 'one.test'),
      make('two', 'two.test'),
      make('twin', 'one.test'),
      make('stopped', 'one.test', stopping.signal),
    ]
    const at = (id: string) => existsSync(join(here.options.moduleDir ?? '', `at-${id}`))
    await until('both are at it', () => at('one') && at('two'))
    stopping.abort()
    expect(await stopped.made).toEqual({ kind: 'stopped' })
    expect([twin.lines, stopped.lines]).toEqual([[], []])
    writeFileSync(join(here.options.moduleDir ?? '', 'go'), '')
    expect(await Promise.all([one.made, two.made, twin.made])).toEqual(
      ['one', 'two', 'twin'].map(id => ({ kind: 'applied', outputs: { details: id } })),
    )
    expect(at('twin')).toBe(false)
    expect(readdirSync(join(here.options.dataDir, 'state')).filter(name => name.endsWith('tfstate'))).toEqual([
      'one.test.tfstate',
      'two.test.tfstate',
    ])
  })

  test('keeps the state in another backend, and uses the configuration of the user and the lock file of the module', async () => {
    const here = site('')
    const path = join(here.folder, 'elsewhere-{deployment}.tfstate')
    writeFileSync(join(here.options.moduleDir ?? '', '.terraform.lock.hcl'), 'not a lock file')
    const options = { ...here.options, backend: { type: 'local', settings: { path } } }
    expect(await startApply(options).result).toMatchObject({ kind: 'failed', reason: expect.stringContaining('lock') })
    writeFileSync(join(here.options.moduleDir ?? '', '.terraform.lock.hcl'), '')
    const cliConfig = join(here.folder, 'cli.tfrc')
    writeFileSync(cliConfig, 'host "bad host" {}')
    const withConfig = { ...options, env: { ...here.options.env, TF_CLI_CONFIG_FILE: cliConfig } }
    const complained = startApply(withConfig)
    expect(await complained.result).toMatchObject({ kind: 'applied' })
    expect(complained.logged('Error: The host "bad host" block')).toBe(true)
    here.write('output "details" { value = 1 }')
    expect(await startApply(options).result).toEqual({ kind: 'applied', outputs: { details: 1 } })
    expect(existsSync(path.replace('{deployment}', 'acme.pool.test'))).toBe(true)
  })
})

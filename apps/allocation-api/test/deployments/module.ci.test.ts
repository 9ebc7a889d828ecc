import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { missingProcFiles, shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { copyDeploymentModule, type DeploymentModule } from '../support/deployment-module.ts'

const missing =
  spawnSync('terraform', ['version']).status === 0
    ? undefined
    : 'The deployment module of the tests is not tested: terraform is missing, https://developer.hashicorp.com/terraform/install'

const mark = 'SECRET-MARK'
const secretKey = `${mark}-secret`.padEnd(32, 'x')
const readInterface = (file: string): string[] =>
  [...readFileSync(new URL(file, import.meta.url), 'utf8').matchAll(/^variable "(\w+)" \{\n {2}type += (.+)$/gm)].map(
    ([, name, type]) => `${name}: ${type}`,
  )
const declared = readInterface('../fixtures/deployment-module/variables.tf')

test('it has the interface of a deployment module', () => {
  expect(declared).toHaveLength(13)
  expect(declared).toEqual(readInterface('../../../../infra/local-deployment/variables.tf'))
})

interface Apply {
  readonly process: ChildProcess
  output(): string
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

describe.skipIf(shouldSkip(missing))('the deployment module of the tests', () => {
  let module: DeploymentModule
  beforeAll(() => {
    module = copyDeploymentModule()
  })
  afterAll(() => module.remove())

  /** An initialised directory with a configuration that calls the module for this name. */
  const deployment = async (fqdn: string): Promise<{ folder: string; apply(): Apply; state(): string }> => {
    const folder = mkdtempSync(join(tmpdir(), 'deployment-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const values: Record<string, unknown> = {
      sovereign_fqdn: fqdn,
      provider_names: ['hetzner'],
      object_storage_provider: 'hetzner',
      object_storage_domain: 'storage.test',
      object_storage_region: 'fsn1',
      object_storage_bucket: 'catalyst-acme',
      object_storage_access_key: `${mark}-access`.padEnd(16, 'x'),
      object_storage_secret_key: secretKey,
    }
    const names = declared.map(name => name.split(':')[0] ?? '')
    const block = {
      source: relative(folder, module.directory),
      ...Object.fromEntries(names.map(name => [name, `\${var.${name}}`])),
    }
    const variable = Object.fromEntries(names.map(name => [name, { sensitive: name.includes('_storage_') }]))
    const output = { load_balancer_ip: { value: `\${module.deployment.load_balancer_ip}` } }
    writeFileSync(join(folder, 'main.tf.json'), JSON.stringify({ variable, module: { deployment: block }, output }))
    writeFileSync(
      join(folder, 'terraform.tfvars.json'),
      JSON.stringify(Object.fromEntries(names.map(name => [name, values[name] ?? name]))),
    )
    const terraform = (...args: string[]): Apply => {
      const { PATH = '' } = process.env
      const env = { PATH, HOME: folder, TF_CLI_CONFIG_FILE: '/dev/null', CHECKPOINT_DISABLE: '1' }
      const child = spawn('terraform', args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
      let output = ''
      const collect = (chunk: Buffer): void => {
        output += chunk.toString()
      }
      child.stdout.on('data', collect)
      child.stderr.on('data', collect)
      const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
      onTestFinished(() => void child.kill('SIGKILL'))
      return { process: child, output: () => output, ended }
    }
    const init = terraform('init', '-no-color', '-input=false')
    expect(await init.ended, init.output()).toBe(0)
    return {
      folder,
      apply: () => terraform('apply', '-auto-approve', '-no-color', '-input=false'),
      state: () => readFileSync(join(folder, 'terraform.tfstate'), 'utf8'),
    }
  }

  test('fails midway with a reason, and resumes from what was created', async () => {
    const { apply, state } = await deployment('fails.pool.test')
    module.set('fail', 'fails.pool.test')
    const failed = apply()
    expect(await failed.ended).toBe(1)
    expect(failed.output()).toContain('The cloud has no machine left of this size.')
    expect(failed.output()).toContain('terraform_data.begun: Creation complete')
    expect(failed.output()).not.toContain('terraform_data.network: Creating')
    module.clear('fail', 'fails.pool.test')
    const again = apply()
    expect(await again.ended, again.output()).toBe(0)
    expect(again.output()).toContain('load_balancer_ip = "198.1')
    expect(failed.output() + again.output() + state()).not.toContain(mark)
  })

  test('prints the secret key only on request; the state never has it', async () => {
    const { apply, state } = await deployment('leaks.pool.test')
    module.set('leak', 'leaks.pool.test')
    const leaking = apply()
    expect(await leaking.ended, leaking.output()).toBe(0)
    expect(leaking.output()).toContain(`logging in with ${secretKey}`)
    expect(state()).not.toContain(mark)
  })

  test('holds until it is released or interrupted', async () => {
    const { apply } = await deployment('holds.pool.test')
    module.set('hold', 'holds.pool.test')
    const interrupted = apply()
    await until('it is holding', () => /local-exec\): holding/.test(interrupted.output()))
    interrupted.process.kill('SIGINT')
    expect(await interrupted.ended).toBe(1)
    const held = apply()
    await until('it is holding', () => /local-exec\): holding/.test(held.output()))
    module.clear('hold', 'holds.pool.test')
    expect(await held.ended, held.output()).toBe(0)
  })

  test.skipIf(shouldSkip(missingProcFiles))(
    'ignores an interrupt while frozen, and leaves no process behind after SIGKILL',
    async () => {
      const { folder, apply } = await deployment('frozen.pool.test')
      module.set('freeze', 'frozen.pool.test')
      const frozen = apply()
      const { pid } = frozen.process
      await until('it is stopped', () => /^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')))
      frozen.process.kill('SIGINT')
      expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^State:\tT/m)
      frozen.process.kill('SIGKILL')
      // The command keeps the output open and ends when the control is cleared.
      module.clear('freeze', 'frozen.pool.test')
      expect(await frozen.ended).toBe('SIGKILL')
      expect(existsSync(`/proc/${pid}`)).toBe(false)
      // Its state lock belongs to a process that no longer exists, so the next apply succeeds.
      expect(existsSync(join(folder, '.terraform.tfstate.lock.info'))).toBe(true)
      const next = apply()
      expect(await next.ended, next.output()).toBe(0)
    },
  )
})

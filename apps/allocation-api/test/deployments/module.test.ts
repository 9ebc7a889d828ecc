import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { copyDeploymentModule, type DeploymentModule } from '../support/deployment-module.ts'

const lack =
  spawnSync('terraform', ['version']).status === 0
    ? undefined
    : 'The deployment module of the tests is not tried: terraform is missing, https://developer.hashicorp.com/terraform/install'

const mark = 'SAY-ME-NOT'
const secretKey = `${mark}-secret`.padEnd(32, 'x')
const interfaceOf = (file: string): string[] =>
  [...readFileSync(new URL(file, import.meta.url), 'utf8').matchAll(/^variable "(\w+)" \{\n {2}type += (.+)$/gm)].map(
    ([, name, type]) => `${name}: ${type}`,
  )
const declared = interfaceOf('../fixtures/deployment-module/variables.tf')

test('it has the interface of a deployment module', () => {
  expect(declared).toHaveLength(13)
  expect(declared).toEqual(interfaceOf('../../../../infra/local-deployment/variables.tf'))
})

interface Apply {
  readonly process: ChildProcess
  said(): string
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

describe.skipIf(shouldSkip(lack))('the deployment module that tests control', () => {
  let module: DeploymentModule
  beforeAll(() => {
    module = copyDeploymentModule()
  })
  afterAll(() => module.remove())

  /** A folder with a configuration that calls the module for this name, initialised. */
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
      let said = ''
      const hear = (chunk: Buffer): void => {
        said += chunk.toString()
      }
      child.stdout.on('data', hear)
      child.stderr.on('data', hear)
      const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
      onTestFinished(() => void child.kill('SIGKILL'))
      return { process: child, said: () => said, ended }
    }
    const init = terraform('init', '-no-color', '-input=false')
    expect(await init.ended, init.said()).toBe(0)
    return {
      folder,
      apply: () => terraform('apply', '-auto-approve', '-no-color', '-input=false'),
      state: () => readFileSync(join(folder, 'terraform.tfstate'), 'utf8'),
    }
  }

  test('fails midway with a reason and with what was made, and goes on from there', async () => {
    const { apply, state } = await deployment('fails.pool.test')
    module.set('fail', 'fails.pool.test')
    const failed = apply()
    expect(await failed.ended).toBe(1)
    expect(failed.said()).toContain('The cloud has no machine left of this size.')
    expect(failed.said()).toContain('terraform_data.begun: Creation complete')
    expect(failed.said()).not.toContain('terraform_data.network: Creating')
    module.clear('fail', 'fails.pool.test')
    const again = apply()
    expect(await again.ended, again.said()).toBe(0)
    expect(again.said()).toContain('load_balancer_ip = "127.')
    expect(failed.said() + again.said() + state()).not.toContain(mark)
  })

  test('tells the secret key when it is told to, and not otherwise; the state has it never', async () => {
    const { apply, state } = await deployment('tells.pool.test')
    module.set('tell', 'tells.pool.test')
    const telling = apply()
    expect(await telling.ended, telling.said()).toBe(0)
    expect(telling.said()).toContain(`logging in with ${secretKey}`)
    expect(state()).not.toContain(mark)
  })

  test('holds until it is let go, or interrupted', async () => {
    const { apply } = await deployment('holds.pool.test')
    module.set('hold', 'holds.pool.test')
    const interrupted = apply()
    await until('it holds', () => /local-exec\): holding/.test(interrupted.said()))
    interrupted.process.kill('SIGINT')
    expect(await interrupted.ended).toBe(1)
    const held = apply()
    await until('it holds', () => /local-exec\): holding/.test(held.said()))
    module.clear('hold', 'holds.pool.test')
    expect(await held.ended, held.said()).toBe(0)
  })

  // Whether a process is stopped is told by Linux there.
  test.skipIf(!existsSync('/proc/self/status'))(
    'is deaf to an interrupt, and ends by SIGKILL alone, after which nothing of it is left',
    async () => {
      const { folder, apply } = await deployment('deaf.pool.test')
      module.set('deaf', 'deaf.pool.test')
      const deaf = apply()
      const { pid } = deaf.process
      await until('it is stopped', () => /^State:\tT/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')))
      deaf.process.kill('SIGINT')
      expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^State:\tT/m)
      deaf.process.kill('SIGKILL')
      // The command has its output open, and ends when the control is lifted.
      module.clear('deaf', 'deaf.pool.test')
      expect(await deaf.ended).toBe('SIGKILL')
      expect(existsSync(`/proc/${pid}`)).toBe(false)
      // It was killed in the middle: the state is locked by nobody who lives, and the next apply goes through.
      expect(existsSync(join(folder, '.terraform.tfstate.lock.info'))).toBe(true)
      const next = apply()
      expect(await next.ended, next.said()).toBe(0)
    },
  )
})

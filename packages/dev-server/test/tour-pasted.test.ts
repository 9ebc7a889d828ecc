import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { tour } from '../src/quickstart.ts'
import { somePorts, startReal } from './fixtures/command.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const missing = ['bash', 'curl', 'dig'].filter(tool => spawnSync(tool, ['--version']).error !== undefined)
const lacks = `lacks ${missing.join(' and ')}: apt-get install curl bind9-dnsutils`
const mustRun = process.env.REQUIRE_ALL_DEPS === '1'
const hasTerraform = ['terraform', 'tofu'].some(tool => spawnSync(tool, ['version']).error === undefined)
const lacksTerraform =
  'the deployment of the tour (lacks terraform or tofu: https://developer.hashicorp.com/terraform/install)'

/** What a newcomer pastes: all from the first command on, up to the last. */
const commandsOf = (text: string): string => text.slice(text.indexOf('# 1.'), text.indexOf('\nCtrl-C'))

test('the README shows the commands that a start prints', () => {
  const printed = tour({
    apiPort: 8080,
    operatorPort: 8081,
    dnsPort: 5300,
    postgresPort: 0,
    pool: 'pool.test',
    dataDir: '',
    apiLog: '',
    postgresLog: '',
    postgresPassword: '',
    witnessPort: 8787,
    witnessLog: '',
    witnessTokenFile: '.data/witness-token',
    witnessToken: 'printed',
  })
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  expect(readme).toContain(commandsOf(printed))
})

const paste = async (commands: string): Promise<readonly string[]> => {
  const { stdout } = await promisify(execFile)('bash', ['-eu', '-c', commands])
  return stdout.trim().split('\n')
}

/** What is answered to the steps of the deployment where it can be made, from its log's first line on. */
const expectDeployed = ([created, ...rest]: readonly string[]): void => {
  const { id, ...others } = JSON.parse(created ?? '')
  expect(others).toEqual({ status: 'provisioning', streamURL: `/api/v1/deployments/${id}/logs` })
  const [deployment = '', ...after] = rest.slice(rest.indexOf('event: done') + 1).filter(Boolean)
  const { status, sovereignFQDN, result } = JSON.parse(deployment.replace('data: ', ''))
  expect({ status, sovereignFQDN }).toEqual({ status: 'ready', sovereignFQDN: 'globex.pool.test' })
  expect(after).toEqual([result.loadBalancerIP, '204'])
}

/** The same where nothing is there to make it: each step is answered, and the first says what to do. */
const expectNotDeployed = ([created, log, ...after]: readonly string[]): void => {
  const { error, detail } = JSON.parse(created ?? '')
  expect(error).toBe('provisioning-unavailable')
  expect(detail).toMatch(/: install .*https:/)
  expect(JSON.parse(log ?? '').error).toBe('not-found')
  expect(after).toEqual(['404'])
}

describe.skipIf(missing.length > 0 && !mustRun)(`the real start${missing.length > 0 ? ` (${lacks})` : ''}`, () => {
  test('its commands, pasted into a shell, reserve, publish, resolve, release, take a lease and deploy; the data outlives a restart', async () => {
    expect(missing, lacks).toEqual([])
    if (!hasTerraform) process.stderr.write(`${lacksTerraform}\n`)
    expect(hasTerraform || !mustRun, lacksTerraform).toBe(true)
    const dataDir = join(tempFolder(), 'data')
    const ports = await somePorts()
    const first = startReal(dataDir, ports)
    expect(await first.said('Ctrl-C stops everything'), first.output()).toBe(true)
    const commands = commandsOf(first.output())
    const [reserved, committed, address, released, taken, refused, news, ...deployed] = await paste(commands)
    expect(JSON.parse(reserved ?? '')).toMatchObject({ subdomain: 'acme', state: 'reserved' })
    expect(JSON.parse(committed ?? '')).toMatchObject({ state: 'active', dns: { status: 'published' } })
    expect(address).toBe('203.0.113.10')
    expect(JSON.parse(released ?? '')).toMatchObject({ freed: { subdomain: 'acme', state: 'active' } })
    expect(JSON.parse(taken ?? '')).toMatchObject({ holder: 'region-a', generation: 1 })
    expect(refused).toBe(taken)
    expect(JSON.parse(news ?? '')).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: 2 })
    const expectAnswer = hasTerraform ? expectDeployed : expectNotDeployed
    expectAnswer(deployed)
    expect(existsSync(join(dataDir, 'deployments', 'state', 'globex.pool.test.tfstate'))).toBe(hasTerraform)

    await paste(commands.slice(0, commands.indexOf('# 4.')).replaceAll('acme', 'kept'))
    first.child.kill('SIGINT')
    expect(await first.exitCode).toBe(0)
    expect(existsSync(dataDir)).toBe(true)

    const second = startReal(dataDir, { ...ports, PDM_TERRAFORM_BINARY: '/nowhere/terraform' })
    expect(await second.said('Ctrl-C stops everything'), second.output()).toBe(true)
    const dig = await promisify(execFile)('dig', ['@127.0.0.1', '-p', ports.DNS_PORT, '+short', 'any.kept.pool.test'])
    expect(dig.stdout.trim()).toBe('203.0.113.10')
    const check = await fetch(`http://127.0.0.1:${ports.PORT}/api/v1/pool/pool.test/check?sub=kept`)
    expect(await check.json()).toMatchObject({ available: false, reason: 'active-state' })
    expectNotDeployed(await paste(commands.slice(commands.indexOf('# 8.'))))
  })
})

import { execFile, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseShellBlocks } from '@pool/test-kit/shell-blocks.ts'
import { describe, expect, test } from 'vitest'
import { renderQuickstart } from '../src/quickstart.ts'
import { freePorts, type Ports, startReal, tempFolder } from './fixtures/command.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const missing = ['bash', 'curl', 'dig'].filter(tool => spawnSync(tool, ['--version']).error !== undefined)
const missingTools = `missing ${missing.join(' and ')}: apt-get install curl bind9-dnsutils`
const mustRun = process.env.REQUIRE_ALL_DEPS === '1'
const hasTerraform = ['terraform', 'tofu'].some(tool => spawnSync(tool, ['version']).error === undefined)
const missingTerraform =
  'walkthrough: no deployment (missing terraform or tofu: https://developer.hashicorp.com/terraform/install)'

/** The commands that a user pastes: from the first to the last. */
const extractCommands = (text: string): string => text.slice(text.indexOf('# 1.'), text.indexOf('\nCtrl-C'))

const paste = async (commands: string): Promise<readonly string[]> => {
  const { stdout } = await promisify(execFile)('bash', ['-eu', '-c', commands])
  return stdout.trim().split('\n')
}

const zsh = spawnSync('zsh', ['--version']).error === undefined

test.skipIf(!zsh && !mustRun)('an interactive zsh accepts the commands that start prints, with their comments', () => {
  const ports = {
    apiPort: 1,
    operatorPort: 2,
    dnsPort: 3,
    postgresPort: 4,
    witnessPort: 5,
    pool: 'pool.test',
    dataDir: '/d',
  }
  const files = { apiLog: '/a', postgresLog: '/p', postgresPassword: '/w', witnessLog: '/l', witnessTokenFile: '/t' }
  const [, commands = ''] =
    /one after the other:\n([\s\S]*?)\nCtrl-C/.exec(renderQuickstart({ ...ports, ...files })) ?? []
  const input = `curl() { echo '{}' }\ndig() { echo }\n${commands}\necho finished\n`
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-i'], { input, encoding: 'utf8' })
  expect(stdout).toContain('finished')
  expect(stderr).not.toMatch(/not found|parse error|no matches/)
})

const documentation = ['README.md', ...globSync('docs/**/*.md', { cwd: root }).toSorted()]

const readCommands = (page: string): string =>
  parseShellBlocks(readFileSync(join(root, page), 'utf8'))
    .filter(({ needs }) => needs === undefined)
    .map(({ code }) => code)
    .join('')

/** The variables that the commands of every page use. */
const variables = readCommands('docs/get-started.md').split('\n').slice(0, 4).join('\n')

/** Runs the commands of a page that need nothing but `start`. Returns the output of a failure, else an empty text. */
const runPage = async (page: string, ports: Ports, dataDir: string): Promise<string> => {
  const commands = readCommands(page)
  if (commands === '') return ''
  const script = `${variables}\n${commands}`
    .replaceAll('8080', ports.PORT)
    .replaceAll('8081', ports.PDM_OPERATOR_PORT)
    .replaceAll('8787', ports.WITNESS_PORT)
    .replaceAll('5300', ports.DNS_PORT)
    .replaceAll('.data/', `${dataDir}/`)
  return await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', script], { cwd: root }).then(
    () => '',
    ({ stdout, stderr }) => `${stdout}${stderr}` || 'failed without output',
  )
}

/** Checks the output of the deployment steps with Terraform installed. */
const expectDeployed = ([created, ...rest]: readonly string[]): void => {
  const { id, deploymentToken, ...others } = JSON.parse(created ?? '')
  expect(deploymentToken).toMatch(/^[0-9a-f-]{36}$/)
  expect(others).toEqual({ status: 'provisioning', streamURL: `/api/v1/deployments/${id}/logs` })
  const [deployment = '', ...after] = rest.slice(rest.indexOf('event: done') + 1).filter(Boolean)
  const { status, sovereignFQDN, result } = JSON.parse(deployment.replace('data: ', ''))
  expect({ status, sovereignFQDN }).toEqual({ status: 'ready', sovereignFQDN: 'globex.pool.test' })
  const [address, started, done, destroyed, deleted] = after
  expect(address).toBe(result.loadBalancerIP)
  expect(JSON.parse(started ?? '')).toMatchObject({ id, status: 'destroying' })
  expect([done, JSON.parse(destroyed?.replace('data: ', '') ?? '').status]).toEqual(['event: done', 'destroyed'])
  expect(deleted).toBe('204')
}

/** Checks their output without Terraform: the first response has install instructions. */
const expectNotDeployed = ([created, log, ...after]: readonly string[]): void => {
  const { error, detail } = JSON.parse(created ?? '')
  expect(error).toBe('provisioning-unavailable')
  expect(detail).toMatch(/: install .*https:/)
  expect(JSON.parse(log ?? '').error).toBe('not-found')
  expect(after.slice(0, -1).map(line => JSON.parse(line).error)).toEqual(['not-found', 'not-found'])
  expect(after.at(-1)).toBe('404')
}

describe.skipIf(missing.length > 0 && !mustRun)(`start${missing.length > 0 ? ` (${missingTools})` : ''}`, () => {
  test('the walkthrough and the commands of the documentation run in a shell, and the data survives a restart', async () => {
    expect(missing, missingTools).toEqual([])
    if (!hasTerraform) process.stderr.write(`${missingTerraform}\n`)
    expect(hasTerraform || !mustRun, missingTerraform).toBe(true)
    const dataDir = join(tempFolder(), 'data')
    const ports = await freePorts()
    const first = startReal(dataDir, ports)
    expect(await first.waitForOutput('Ctrl-C shuts everything down'), first.output()).toBe(true)
    const signIn = () =>
      fetch(`http://127.0.0.1:${ports.PDM_OPERATOR_PORT}/api/v1/session`, {
        method: 'POST',
        body: JSON.stringify({ token: /#code=(\S+)/.exec(first.output())?.[1] }),
      })
    expect([(await signIn()).status, (await signIn()).status]).toEqual([201, 401])
    const commands = extractCommands(first.output())
    const [reserved, committed, address, released, acquired, rejected, changed, ...deployed] = await paste(commands)
    expect(JSON.parse(reserved ?? '')).toMatchObject({ subdomain: 'acme', state: 'reserved' })
    expect(JSON.parse(committed ?? '')).toMatchObject({ state: 'active', dns: { status: 'published' } })
    expect(address).toBe('203.0.113.10')
    expect(JSON.parse(released ?? '')).toMatchObject({ freed: { subdomain: 'acme', state: 'active' } })
    expect(JSON.parse(acquired ?? '')).toMatchObject({ holder: 'region-a', generation: 1 })
    expect(rejected).toBe(acquired)
    expect(JSON.parse(changed ?? '')).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: 2 })
    const expectDeploymentOutput = hasTerraform ? expectDeployed : expectNotDeployed
    expectDeploymentOutput(deployed)
    // A second time, because nothing remains of the first.
    expectDeploymentOutput(await paste(commands.slice(commands.indexOf('# 8.'))))
    expect(existsSync(join(dataDir, 'deployments', 'state'))).toBe(hasTerraform)

    for (const page of documentation) expect(await runPage(page, ports, dataDir), page).toEqual('')

    await paste(commands.slice(0, commands.indexOf('# 4.')).replaceAll('acme', 'persistent'))
    first.child.kill('SIGINT')
    expect(await first.exitCode).toBe(0)
    expect(existsSync(dataDir)).toBe(true)

    const [settings = ''] =
      /(?<=```text\n)[^`]*/.exec(readFileSync(join(root, 'docs/operate/hardened.md'), 'utf8')) ?? []
    const hardened = Object.fromEntries(
      settings
        .trim()
        .split('\n')
        .map(line => line.split('=')),
    )
    expect(hardened.PDM_RELEASE_TOKEN).toBe('required')
    const second = startReal(dataDir, { ...ports, ...hardened, PDM_TERRAFORM_BINARY: '/nowhere/terraform' })
    expect(await second.waitForOutput('Ctrl-C shuts everything down'), second.output()).toBe(true)
    const dig = await promisify(execFile)('dig', [
      '@127.0.0.1',
      '-p',
      ports.DNS_PORT,
      '+short',
      'any.persistent.pool.test',
    ])
    expect(dig.stdout.trim()).toBe('203.0.113.10')
    const check = await fetch(`http://127.0.0.1:${ports.PORT}/api/v1/pool/pool.test/check?sub=persistent`)
    expect(await check.json()).toMatchObject({ available: false, reason: 'active-state' })
    // The tour sends the tokens that the settings of a hardened installation require.
    const tour = commands.slice(0, commands.indexOf('# 5.')).replaceAll('acme', 'hardened')
    expect(JSON.parse((await paste(tour)).at(-1) ?? '')).toMatchObject({
      freed: { subdomain: 'hardened', state: 'active' },
    })
    expectNotDeployed(await paste(commands.slice(commands.indexOf('# 8.'))))
  })
})

import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { tour } from '../src/tour.ts'
import { somePorts, startReal } from './fixtures/command.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const missing = ['bash', 'curl', 'dig'].filter(tool => spawnSync(tool, ['--version']).error !== undefined)
const lacks = `lacks ${missing.join(' and ')}: apt-get install curl bind9-dnsutils`
const mustRun = process.env.REQUIRE_ALL_PARTS === '1'

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
  for (const line of commandsOf(printed)
    .split('\n')
    .filter(line => line && !line.startsWith('#'))) {
    expect(readme).toContain(line)
  }
})

describe.skipIf(missing.length > 0 && !mustRun)(`the real start${missing.length > 0 ? ` (${lacks})` : ''}`, () => {
  test('its commands, pasted into a shell, reserve, publish, resolve, release and take a lease; the data outlives a restart', async () => {
    expect(missing, lacks).toEqual([])
    const dataDir = join(tempFolder(), 'data')
    const ports = await somePorts()
    const first = startReal(dataDir, ports)
    expect(await first.said('Ctrl-C stops everything'), first.output()).toBe(true)
    const commands = commandsOf(first.output())
    const { stdout } = await promisify(execFile)('bash', ['-eu', '-c', commands])
    const [reserved, committed, address, released, taken, refused, news, ...rest] = stdout.trim().split('\n')
    expect(JSON.parse(reserved ?? '')).toMatchObject({ subdomain: 'acme', state: 'reserved' })
    expect(JSON.parse(committed ?? '')).toMatchObject({ state: 'active', dns: { status: 'published' } })
    expect(address).toBe('203.0.113.10')
    expect(JSON.parse(released ?? '')).toMatchObject({ freed: { subdomain: 'acme', state: 'active' } })
    expect(JSON.parse(taken ?? '')).toMatchObject({ holder: 'region-a', generation: 1 })
    expect(refused).toBe(taken)
    expect(JSON.parse(news ?? '')).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: 2 })
    expect(rest).toEqual([])

    const kept = commands.slice(0, commands.indexOf('# 4.')).replaceAll('acme', 'kept')
    await promisify(execFile)('bash', ['-eu', '-c', kept])
    first.child.kill('SIGINT')
    expect(await first.exitCode).toBe(0)
    expect(existsSync(dataDir)).toBe(true)

    const second = startReal(dataDir, ports)
    expect(await second.said('Ctrl-C stops everything'), second.output()).toBe(true)
    const dig = await promisify(execFile)('dig', ['@127.0.0.1', '-p', ports.DNS_PORT, '+short', 'any.kept.pool.test'])
    expect(dig.stdout.trim()).toBe('203.0.113.10')
    const check = await fetch(`http://127.0.0.1:${ports.PORT}/api/v1/pool/pool.test/check?sub=kept`)
    expect(await check.json()).toMatchObject({ available: false, reason: 'active-state' })
  })
})

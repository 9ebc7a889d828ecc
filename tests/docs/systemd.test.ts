import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = join(root, 'infra/systemd')
const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
const services = ['allocation-api', 'lease-witness']
const units = ['allocation-api.service', 'allocation-api.service.d/powerdns.conf', 'lease-witness.service']

const missing =
  spawnSync('systemd-analyze', ['--version']).error === undefined
    ? undefined
    : 'systemd-analyze (apt-get install systemd), which checks the units of infra/systemd'

/** The values of a setting, in the order of the file. */
const readSettings = (unit: string, name: string): string[] =>
  Array.from(read(unit).matchAll(new RegExp(`^${name}=(.*)$`, 'gm')), ([, value]) => value ?? '')

/** The variables of the services. Each can have the suffix _FILE, which names a file with the value. */
const variables = Array.from(
  readFileSync(join(root, '.env.example'), 'utf8').matchAll(/^([A-Z][A-Z0-9_]*)=/gm),
  ([, name]) => name ?? '',
)

test.each(units)('%s sets variables that the services read', unit => {
  const names = readSettings(unit, 'Environment').map(assignment => /\w+/.exec(assignment)?.[0] ?? '')
  expect(names).not.toEqual([])
  expect(names.filter(name => ![...variables, 'HOME', 'NODE_OPTIONS'].includes(name.replace(/_FILE$/, '')))).toEqual([])
})

test.each(units)('%s passes each credential to a variable, from the folder of its service', unit => {
  const [service = ''] = unit.split('.')
  const credentials = readSettings(unit, 'LoadCredential')
  const passed = readSettings(unit, 'Environment').flatMap(assignment => /=%d\/(.*)$/.exec(assignment)?.[1] ?? [])
  expect(credentials).toEqual(passed.map(id => `${id}:/etc/${service}/${id}`))
})

test.each([...services, 'pool-allocation-backup'])('%s writes no core dump, which would have every secret', service => {
  expect(readSettings(`${service}.service`, 'LimitCORE')).toEqual(['0'])
})

test('the unit waits for a Terraform that saves what it creates, and for a stop', () => {
  const [variable = ''] =
    /^PDM_TERRAFORM_STOP_TIMEOUT=(\d+)m$/m.exec(readFileSync(join(root, '.env.example'), 'utf8'))?.slice(1) ?? []
  expect(readSettings('allocation-api.service', 'TimeoutStopSec')).toEqual([String(60 * Number(variable) + 30)])
})

const PAGES = ['docs/install/single-host.md', 'docs/operate/upgrade.md', 'docs/operate/backup.md']

test('installation, upgrade, rollback and restore have one recipe for the units, and one for the console', () => {
  const [install = '', upgrade = '', backup = ''] = PAGES.map(page => readFileSync(join(root, page), 'utf8'))
  const count = (page: string, text: string) => page.split(text).length - 1
  expect([install, upgrade, backup].map(page => count(page, 'infra/systemd/install-units.sh\n'))).toEqual([1, 2, 1])
  for (const page of [install, upgrade, backup]) expect(page).not.toMatch(/^ *install .*\.(?:service|timer)/m)
  const [recipe = ''] = /npx -y pnpm@12 install --frozen-lockfile\n *npx .*build\n/.exec(install) ?? []
  expect(recipe).toContain('operator-console')
  expect(upgrade.replaceAll('\n  ', '\n')).toContain(recipe)
})

test.each([
  { secrets: [], dropins: [] },
  { secrets: ['powerdns-api-key'], dropins: ['powerdns.conf'] },
  { secrets: ['powerdns-api-key', 'witness-token'], dropins: ['powerdns.conf', 'witness.conf'] },
])('install-units.sh installs every unit, and the drop-ins of $secrets', ({ secrets, dropins }) => {
  const host = mkdtempSync(join(tmpdir(), 'host-'))
  onTestFinished(() => rmSync(host, { recursive: true }))
  mkdirSync(join(host, 'etc/allocation-api'), { recursive: true })
  for (const secret of secrets) writeFileSync(join(host, 'etc/allocation-api', secret), '')
  execFileSync(join(folder, 'install-units.sh'), { env: { ...process.env, ROOT: host } })
  const files = readdirSync(join(host, 'etc/systemd/system'), { recursive: true, encoding: 'utf8' })
  const units = [...services, 'pool-allocation-backup'].map(service => `${service}.service`)
  expect(files.filter(file => /\.(?:conf|service|timer)$/.test(file)).sort()).toEqual(
    [...units, 'pool-allocation-backup.timer', ...dropins.map(name => `allocation-api.service.d/${name}`)].sort(),
  )
})

test('both services have the same restrictions', () => {
  const [api, witness] = services.map(service => read(`${service}.service`).split('# MemoryDenyWriteExecute')[1])
  expect(witness).toBe(api)
})

describe.skipIf(shouldSkip(missing))('systemd-analyze', () => {
  test('verifies the template for several processes that docs/operate/scale.md makes of the unit', () => {
    const copy = mkdtempSync(join(tmpdir(), 'units-'))
    onTestFinished(() => rmSync(copy, { recursive: true }))
    cpSync(folder, copy, { recursive: true })
    const page = readFileSync(join(root, 'docs/operate/scale.md'), 'utf8')
    const [block = ''] = /^sed [\s\S]*?service\.d$/m.exec(page) ?? []
    execFileSync('bash', ['-ec', block.replaceAll('/etc/systemd/system', copy)])
    const template = join(copy, 'allocation-api@.service')
    writeFileSync(template, readFileSync(template, 'utf8').replace('/usr/local/bin/node', process.execPath))
    const instance = join(copy, 'allocation-api@8091.service')
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', instance], { encoding: 'utf8' })
    expect(stderr.split('\n').filter(line => line.includes('allocation-api'))).toEqual([])
    expect(status, stderr).toBe(0)
    expect(readFileSync(template, 'utf8')).toContain('\nEnvironment=PORT=%i PDM_OPERATOR_PORT=1%i\n')
  })

  test.each([...services, 'pool-allocation-backup'])('verifies %s.service', service => {
    const copy = mkdtempSync(join(tmpdir(), 'units-'))
    onTestFinished(() => rmSync(copy, { recursive: true }))
    cpSync(folder, copy, { recursive: true })
    // The command of a unit must exist on the machine that verifies it.
    const unit = join(copy, `${service}.service`)
    writeFileSync(unit, readFileSync(unit, 'utf8').replace('/usr/local/bin/node', process.execPath))
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
    expect(stderr.split('\n').filter(line => line.includes(service))).toEqual([])
    expect(status, stderr).toBe(0)
  })

  test.each(services)('rates the exposure of %s.service below 2.5 of 10', service => {
    const output = execFileSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=25', '--no-pager', join(folder, `${service}.service`)],
      { encoding: 'utf8' },
    )
    expect(output).toContain('Overall exposure level')
  })
})

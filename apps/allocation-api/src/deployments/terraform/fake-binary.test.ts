import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { isRunning } from '@pool/test-kit/processes.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ProvisionerFailedError } from '../domain/provisioner-failure.ts'
import type { DeploymentLogLine, KnownState } from '../domain/types.ts'
import type { ProvisioningRequest } from '../provisioner.ts'
import { explainSystemError } from './prerequisites.ts'
import { captureShortly } from './process-group.ts'
import { createTerraform } from './terraform.ts'

const BUCKET = 'catalyst-acme'
const NO_STATE = /is no state: check PDM_TERRAFORM_BINARY/
const NO_OUTPUTS = /no outputs that could be read/
const NOT_SAVED = /its backend does not have the state that it wrote\. Check PDM_TERRAFORM_BINARY/
const never = new AbortController().signal

interface Site {
  readonly folder: string
  readonly lines: string[]
  readonly known: KnownState[]
  apply(request?: Partial<ProvisioningRequest>): ReturnType<ReturnType<typeof createTerraform>['apply']>
  readonly terraform: ReturnType<typeof createTerraform>
}

/** `cases`: shell patterns of commands and what they do, before those of a binary that keeps its state in a file. */
const createSite = (cases: string): Site => {
  const folder = mkdtempSync(join(tmpdir(), 'fake-terraform-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const binary = join(folder, 'terraform')
  writeFileSync(
    binary,
    `#!/bin/sh
store='${folder}/stored'
for last; do :; done
case "$*" in
${cases}
version*) echo '{"terraform_version":"1.11.4"}';;
'state pull') cat "$store" 2>/dev/null; :;;
'state push'*) sed 's/"lineage":"[^"]*"/"lineage":"l"/' "$last" > "$store";;
esac
`,
  )
  chmodSync(binary, 0o755)
  const moduleDir = join(folder, 'module')
  mkdirSync(moduleDir)
  writeFileSync(join(moduleDir, 'main.tf'), '')
  const terraform = createTerraform({
    ...{ binary, moduleDir, dataDir: join(folder, 'data'), backend: null, timeoutMs: 600_000, stopTimeoutMs: 600_000 },
    ...{ passthrough: [], isolation: 'off', runner: null, visiblePaths: [], env: { PATH: process.env.PATH } },
  })
  const lines: string[] = []
  const known: KnownState[] = []
  const onState = async (state: KnownState) => void known.push(state)
  const apply = (more: Partial<ProvisioningRequest> = {}) => {
    const names = { id: 'm1', run: 1, stateKey: 'acme.pool.test', bucket: null, knownState: null }
    const request = { ...names, variables: {}, secrets: {}, onState, ...more }
    return terraform.apply(request, (line: DeploymentLogLine) => void lines.push(line.message), never)
  }
  return { folder, lines, known, apply, terraform }
}

const toState = (serial: number, resources: readonly object[] = [], lineage = 'l') =>
  JSON.stringify({ version: 4, serial, lineage, outputs: {}, resources })
const machine = { mode: 'managed', type: 'm', name: 'a', instances: [{ attributes: { id: '1' } }] }
const hook = { resource: { addr: 'm.a', resource_type: 'm' }, action: 'create', id_value: '1' }
const toMessage = (type: string, more: object) => JSON.stringify({ '@level': 'info', '@message': type, type, ...more })
const created = [toMessage('apply_start', { hook }), toMessage('apply_complete', { hook })]
const outputs = toMessage('outputs', { outputs: { load_balancer_ip: { sensitive: false, value: '192.0.2.1' } } })
const print = (...lines: readonly string[]) =>
  lines.map(line => (line.startsWith('echo ') ? line : `echo '${line}'`)).join('\n')
const store = (state: string) => `echo '${state}' > "$store"`
const saved = store(toState(2, [machine]))

describe('a success that the state does not show is a failure', () => {
  const another = store(toState(9, [machine], 'other'))
  test.each<readonly [string, cases: string, reason: RegExp, unfinished: readonly string[]]>([
    ['of a binary that does nothing', '*) exit 0;;', NOT_SAVED, []],
    ['of a push that a backend drops', "'state push'*) ;;", NOT_SAVED, []],
    ['of a creation that is saved nowhere', `apply*) ${print(...created, outputs)};;`, NOT_SAVED, ['m.a']],
    [
      'of one, although the state has changed',
      `apply*) ${print(...created, outputs, store(toState(2)))};;`,
      NOT_SAVED,
      ['m.a'],
    ],
    [
      'of an apply after which the state is another one',
      `apply*) ${print(...created, outputs, another)};;`,
      NOT_SAVED,
      ['m.a'],
    ],
    ['of an apply without outputs', `apply*) ${print(...created, saved)};;`, NO_OUTPUTS, []],
    ['of outputs that are too long', `apply*) printf '{"@message":"%0300000d"}' 1;;`, NO_OUTPUTS, []],
    ['of a program that prints something else', "'state pull') echo hello;;", NO_STATE, []],
    ['of a program that prints other JSON', "'state pull') echo '{}';;", NO_STATE, []],
    ['of a newer release', `'state pull') echo '{"version":5}';;`, /not of version 4: use another release/, []],
  ])('%s', async (_, cases, reason, unfinished) => {
    const { apply, known, lines } = createSite(cases)
    expect(await apply()).toEqual({ kind: 'failed', reason: expect.stringMatching(reason) })
    expect((known.at(-1)?.unfinished ?? []).map(({ address }) => address)).toEqual(unfinished)
    expect(lines.join('\n')).not.toContain('{"@message"')
  })

  test('of an untaint, after which an apply would replace the bucket', async () => {
    const instances = [{ status: 'tainted', attributes: { bucket: BUCKET } }]
    const state = toState(1, [{ mode: 'managed', type: 'm_bucket', name: 'b', instances }])
    const { apply, folder } = createSite(`init*) ${store(state)};;\napply*) : > "$store.applied";;`)
    expect(await apply({ bucket: BUCKET })).toMatchObject({ kind: 'failed', reason: expect.stringMatching(NOT_SAVED) })
    expect(existsSync(join(folder, 'stored.applied'))).toBe(false)
  })

  test('but not if the state has what was created', async () => {
    const { apply, known } = createSite(`apply*) ${print(...created, outputs, saved)};;`)
    expect(await apply()).toEqual({ kind: 'applied', outputs: { load_balancer_ip: '192.0.2.1' } })
    expect(known.at(-1)).toEqual({ lineage: 'l', serial: 2 })
  })
})

test('a plan of a program that prints other JSON is a failure', async () => {
  const { terraform } = createSite("show*) echo '{}';;")
  const names = { id: 'm1', run: 1, stateKey: 'acme.pool.test', bucket: null, knownState: null }
  expect(await terraform.plan({ ...names, variables: {}, secrets: {}, destroy: false }, never)).toEqual({
    kind: 'failed',
    reason: 'What Terraform printed is no plan: check PDM_TERRAFORM_BINARY.',
  })
})

describe('what fails on the machine is explained, not thrown as it is', () => {
  const isExplained = expect.objectContaining({
    message: expect.stringMatching(/^PDM_(?:TERRAFORM_MODULE|DEPLOYMENTS_DIR) is /),
  })

  test.each<readonly [string, (folder: string) => void]>([
    ['a module that is gone', folder => rmSync(join(folder, 'module'), { recursive: true })],
    [
      'a file in place of the module',
      folder => {
        rmSync(join(folder, 'module'), { recursive: true })
        writeFileSync(join(folder, 'module'), '')
      },
    ],
    ['a file in place of the data', folder => writeFileSync(join(folder, 'data'), '')],
    ['a working directory that goes during init', () => {}],
  ])('%s', async (what, damage) => {
    const { apply, folder, terraform } = createSite(
      `init*) [ "${what}" != 'a working directory that goes during init' ] || rm -r "$PWD";;`,
    )
    damage(folder)
    expect(await apply()).toEqual({
      kind: 'failed',
      reason: expect.stringMatching(/PDM_(?:TERRAFORM_MODULE|DEPLOYMENTS_DIR)/),
    })
    if (existsSync(join(folder, 'module', 'main.tf'))) return
    await expect(terraform.moduleVersion(null)).rejects.toEqual(isExplained)
    await expect(terraform.moduleVersion(null)).rejects.toBeInstanceOf(ProvisionerFailedError)
  })

  test.each([
    ['ENOSPC', /^The disk of PDM_DEPLOYMENTS_DIR is full \(ENOSPC\): free some space/],
    ['EDQUOT', /^The disk of PDM_DEPLOYMENTS_DIR is full \(EDQUOT\): free some space/],
    ['EIO', /^This machine failed \(EIO: i\/o error\): check PDM_DEPLOYMENTS_DIR/],
  ])('%s', (code, reason) => {
    expect(explainSystemError(Object.assign(new Error(`${code}: i/o error`), { code }))).toMatch(reason)
  })
})

test('a short command ends at its signal, with its children, whatever they ignore', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hanging-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const pidFile = join(folder, 'pid')
  const command = `trap '' TERM INT HUP; sh -c 'echo $$ > ${pidFile}; while :; do sleep 1000; done'`
  const ending = new AbortController()
  const captured = captureShortly(['/bin/sh', '-c', command], {
    ...{ cwd: folder, env: { PATH: process.env.PATH ?? '' }, signal: ending.signal },
  })
  const pid = await until('the child runs', () => existsSync(pidFile) && Number(readFileSync(pidFile, 'utf8')))
  ending.abort()
  expect((await captured).exit.signal).not.toBeNull()
  await until('the child has ended', () => !isRunning(pid))
})

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev-server/process'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import {
  findProcesses,
  lacksTerraform,
  type Site,
  secrets,
  startApply,
  useSites,
  variables,
} from './support/terraform.ts'

const site = useSites()

/** One resource is made, then another is being made until somebody ends it. */
const endless = (command: string) => `
resource "terraform_data" "first" { input = 1 }
resource "terraform_data" "second" {
  input = terraform_data.first.id
  provisioner "local-exec" { command = ${JSON.stringify(command)} }
}`
const patient = 'echo waiting; sleep 1000'
/** It and its child take no notice of SIGINT. */
const stubborn = "trap '' INT TERM; sleep 1000 & echo waiting; while :; do sleep 1000; done"

/** No process of the making is left, and no folder; the state has what had been made. */
const expectOver = async ({ options, folder }: Site, isStateKept = true) => {
  await until('nothing runs', () => findProcesses(folder).length === 0)
  expect(readdirSync(join(options.dataDir, 'work'))).toEqual([])
  if (!isStateKept) return
  const state = readFileSync(join(options.dataDir, 'state', 'acme.pool.test.tfstate'), 'utf8')
  expect(state).toContain('"name": "first"')
}
/** The work folder is known by this variable to every process of the group. */
const marked = (here: Site) => ({ ...here.options, env: { ...here.options.env, TMPDIR: here.folder } })

/** A program in the place of terraform. */
const double = (here: Site, script: string): string => {
  const path = join(here.folder, 'terraform')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return path
}

describe.skipIf(lacksTerraform)('a making ends', () => {
  test('by its signal, in apply: what was made is remembered', async () => {
    const here = site(endless(patient))
    const run = startApply(marked(here))
    await until('the provisioner runs', () => run.logged('(local-exec): waiting'))
    expect(findProcesses(here.folder).length).toBeGreaterThan(1)
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    await expectOver(here)
  })

  test('by its deadline, and children that ignore SIGINT with it', async () => {
    const here = site(endless(stubborn))
    const run = startApply({ ...marked(here), timeoutMs: 1_000, graceMs: 5_000 })
    expect(await run.result).toEqual({
      kind: 'failed',
      reason: 'Timed out after 1 s (PDM_DEPLOYMENT_TIMEOUT).',
    })
    expect(run.logged('(local-exec): waiting')).toBe(true)
    await expectOver(here)
  })

  test('when the service is killed: the guard lets it save its state, and nothing goes on', async () => {
    const here = site(endless(patient))
    const service = startNode({
      entry: fileURLToPath(new URL('support/apply-until-killed.ts', import.meta.url)),
      env: { TMPDIR: here.folder, TEST_OPTIONS: JSON.stringify({ ...here.options, graceMs: 5_000 }) },
      isReady: line => String(line.message).includes('(local-exec): waiting'),
    })
    await service.ready
    expect(findProcesses(secrets.object_storage_access_key).length).toBeGreaterThan(1)
    await service.kill()
    await until('nothing runs', () => findProcesses(here.folder).length === 0)
    const state = readFileSync(join(here.options.dataDir, 'state', 'acme.pool.test.tfstate'), 'utf8')
    expect(state).toContain('"name": "first"')
    // Only an end in order says so of what was interrupted.
    expect(state).toContain('"status": "tainted"')
    const tell = () => expect.fail('nothing is worth telling')
    // The next one to take it up clears, and makes the rest.
    const terraform = createTerraform(here.options)
    expect(readdirSync(join(here.options.dataDir, 'work'))).toEqual(['m1.1'])
    await terraform.cleanUp('m1', 1, tell)
    expect(readdirSync(join(here.options.dataDir, 'work'))).toEqual(['m1.1'])
    await terraform.cleanUp('m1', 2, tell)
    expect(readdirSync(join(here.options.dataDir, 'work'))).toEqual([])
    await terraform.cleanUp('m1', 2, tell)
    here.write(endless('true'))
    const next = startApply(here.options, { id: 'm2' })
    expect(await next.result).toEqual({ kind: 'applied', outputs: {} })
    expect(next.logged('module.deployment.terraform_data.first: Creating')).toBe(false)
  })

  test('before it has begun', async () => {
    const here = site('')
    const run = startApply(here.options)
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    expect(run.lines).toEqual([])
  })
})

describe('whatever the binary does', () => {
  test('one that ignores SIGINT is killed after the grace, in init too', async () => {
    const here = site('')
    const binary = double(here, `trap '' INT; echo init of "$1"; while :; do sleep 1000; done`)
    const run = startApply({ ...marked(here), binary, graceMs: 200 })
    await until('init runs', () => run.logged('init of init'))
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    await expectOver(here, false)
  })

  test.each<readonly [string, string, number]>([
    ['kills what ignores SIGINT', `trap '' INT`, 300],
    ['takes what is said at the end', `trap 'head -c 2000000 /dev/zero; touch "$TMPDIR/saved"; exit' INT`, 10_000],
  ])('when the service is killed, the guard %s', async (_, reaction, graceMs) => {
    const here = site('')
    const binary = double(here, `${reaction}; echo init of "$1"; while :; do sleep 0.1; done`)
    const service = startNode({
      entry: fileURLToPath(new URL('support/apply-until-killed.ts', import.meta.url)),
      env: { TMPDIR: here.folder, TEST_OPTIONS: JSON.stringify({ ...here.options, binary, graceMs }) },
      isReady: line => String(line.message).includes('init of init'),
    })
    await service.ready
    await service.kill()
    await until('nothing runs', () => findProcesses(here.folder).length === 0)
    expect(existsSync(join(here.folder, 'saved'))).toBe(reaction.includes('saved'))
  })

  test('a line without end, lines without number and a background process are all bounded', async () => {
    const here = site('')
    const key = secrets.object_storage_access_key
    const binary = double(
      here,
      `[ "$1" = init ] && { sleep 1000 & head -c 3000000 /dev/zero | tr '\\0' x; echo; head -c 262134 /dev/zero | tr '\\0' y; echo ${key}; exit; }
       [ "$1" = apply ] && { yes | head -n 9000; echo '{"@message":"e","type":"diagnostic","diagnostic":{"severity":"error","summary":"late","detail":"${key}"}}'; exit 7; }`,
    )
    const run = startApply({ ...marked(here), binary })
    expect(await run.result).toEqual({ kind: 'failed', reason: 'late: <redacted>' })
    expect(run.lines.slice(0, 2).map(({ message }) => message)).toEqual(
      ['x', 'y'].map(letter => `${letter.repeat(8_189)}…`),
    )
    expect(run.lines.length).toBe(4_001)
    expect(run.lines.at(-1)?.message).toBe('Log truncated after 4000 lines.')
    await expectOver(here, false)
  })

  test.each([
    ['says nothing', 'exit 3', 'init ended with exit code 3 and gave no reason.'],
    ['is killed', 'kill -KILL $$', 'init ended with SIGKILL and gave no reason.'],
    ['complains', 'echo "Error: bad" >&2; echo "Because." >&2; exit 1', 'bad: Because.'],
  ])('the reason when it %s', async (_, script, reason) => {
    const here = site('')
    expect(await startApply({ ...here.options, binary: double(here, script) }).result).toEqual({
      kind: 'failed',
      reason,
    })
  })

  test.each<readonly [string, Parameters<typeof startApply>[1]]>([
    ['an id that leads elsewhere', { id: '../x' }],
    ['a state key that does', { stateKey: '../x' }],
    ['a variable twice', { variables: { ...variables, ...secrets } }],
    ['a name that is none', { variables: { 'a b': '' } }],
    ['a value that no environment carries', { variables: { a: '\0' } }],
  ])('it is refused: %s', async (_, making) => {
    await expect(startApply(site('').options, making).result).rejects.toBeInstanceOf(RangeError)
  })
})

describe('what is lacking', () => {
  const lackOf = (options: Site['options']) => createTerraform(options).preflight()
  const version = (text: string) => `echo '{"terraform_version":"${text}"}'; echo asked >> "$0.log"`

  test('nothing; the version is asked for once, until the file changes', async () => {
    const here = site('')
    const binary = double(here, version('1.6.0'))
    const terraform = createTerraform({ ...here.options, binary })
    expect([await terraform.preflight(), await terraform.preflight()]).toEqual([null, null])
    expect(readFileSync(`${binary}.log`, 'utf8')).toBe('asked\n')
    double(here, `${version('1.5.7')} `)
    expect(await terraform.preflight()).toMatch(
      /terraform is version 1\.5\.7, but 1\.6\.0 or later is required: .*PDM_TERRAFORM_BINARY\.$/,
    )
    expect(existsSync(here.options.dataDir)).toBe(true)
  })

  test.each<readonly [string, (here: Site) => Partial<Site['options']>, RegExp]>([
    [
      'no binary on the PATH',
      () => ({ env: { PATH: '/nowhere:relative' } }),
      /^Neither terraform nor tofu is on the PATH: install .*https:.* PDM_TERRAFORM_BINARY\.$/,
    ],
    [
      'no such binary',
      () => ({ binary: '/nowhere/tofu' }),
      /^PDM_TERRAFORM_BINARY is \/nowhere\/tofu, which is not an executable file: install/,
    ],
    ['a folder as the binary', ({ folder }) => ({ binary: folder }), /which is not an executable file/],
    [
      'another program',
      here => ({ binary: double(here, 'echo hello') }),
      /did not report a version: .*PDM_TERRAFORM_BINARY\.$/,
    ],
    [
      'a file where the folder is to be',
      here => ({ binary: double(here, version('1.9.0')), dataDir: join(here.folder, 'terraform') }),
      /^PDM_DEPLOYMENTS_DIR is .*, which is not writable; check its permissions\.$/,
    ],
    [
      'no module',
      here => ({ binary: double(here, version('1.9.0')), moduleDir: '/nowhere' }),
      /^PDM_TERRAFORM_MODULE is \/nowhere, which is not a directory with a Terraform module\.$/,
    ],
    [
      'an empty module',
      here => {
        mkdirSync(join(here.folder, 'empty'))
        return { binary: double(here, version('1.9.0')), moduleDir: join(here.folder, 'empty') }
      },
      /^PDM_TERRAFORM_MODULE is /,
    ],
  ])('%s', async (_, optionsOf, lack) => {
    const here = site('')
    expect(await lackOf({ ...here.options, ...optionsOf(here) })).toMatch(lack)
  })
})

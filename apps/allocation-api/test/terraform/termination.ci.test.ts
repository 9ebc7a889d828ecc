import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import {
  findProcesses,
  isTerraformMissing,
  type Site,
  secrets,
  startApply,
  useSites,
  variables,
} from './support/terraform.ts'

const createTestSite = useSites()

/** Creates one resource; the creation of the second one never ends. */
const endless = (command: string) => `
resource "terraform_data" "first" { input = 1 }
resource "terraform_data" "second" {
  input = terraform_data.first.id
  provisioner "local-exec" { command = ${JSON.stringify(command)} }
}`
const patient = 'echo waiting; sleep 1000'
/** It and its child ignore SIGINT. */
const stubborn = "trap '' INT TERM; sleep 1000 & echo waiting; while :; do sleep 1000; done"

/** No process and no working directory is left; the state has what was created. */
const expectOver = async ({ options, folder }: Site, isStateKept = true) => {
  await until('nothing runs', () => findProcesses(folder).length === 0)
  expect(readdirSync(join(options.dataDir, 'work'))).toEqual([])
  if (!isStateKept) return
  const state = readFileSync(join(options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate'), 'utf8')
  expect(state).toContain('"name": "first"')
}
/** Marks every process of the group by its environment. */
const marked = (site: Site) => ({ ...site.options, env: { ...site.options.env, TMPDIR: site.folder } })

/** A program that replaces terraform. */
const fakeBinary = (site: Site, script: string): string => {
  const path = join(site.folder, 'terraform')
  writeFileSync(path, `#!/bin/sh\n${script}\n`)
  chmodSync(path, 0o755)
  return path
}

describe.skipIf(isTerraformMissing)('an apply ends', () => {
  test('by its signal: the state has what was created', async () => {
    const site = createTestSite(endless(patient))
    const run = startApply(marked(site))
    await until('the provisioner runs', () => run.logged('(local-exec): waiting'))
    expect(findProcesses(site.folder).length).toBeGreaterThan(1)
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    await expectOver(site)
  })

  test('by its timeout, with children that ignore SIGINT', async () => {
    let hasStarted = false
    // The time includes init and the plan, which take longer on a busy machine.
    for (const seconds of [1, 4, 16, 64]) {
      const site = createTestSite(endless(stubborn))
      const run = startApply({ ...marked(site), timeoutMs: 1_000 * seconds, stopTimeoutMs: 5_000 })
      expect(await run.result).toEqual({
        kind: 'failed',
        reason: `Timed out after ${seconds} s (PDM_DEPLOYMENT_TIMEOUT).`,
      })
      hasStarted = run.logged('(local-exec): waiting')
      if (!hasStarted) continue
      await expectOver(site)
      break
    }
    expect(hasStarted).toBe(true)
  })

  test('when the service is killed: the supervisor lets it save its state, and no process is left', async () => {
    const site = createTestSite(endless(patient))
    const service = startNode({
      entry: fileURLToPath(new URL('support/run-until-killed.ts', import.meta.url)),
      env: { TMPDIR: site.folder, TEST_OPTIONS: JSON.stringify({ ...site.options, stopTimeoutMs: 30_000 }) },
      isReady: line => String(line.message).includes('(local-exec): waiting'),
    })
    await service.ready
    expect(findProcesses(site.folder).length).toBeGreaterThan(1)
    await service.kill()
    await until('nothing runs', () => findProcesses(site.folder).length === 0)
    const state = readFileSync(join(site.options.dataDir, 'state', 'acme.pool.test', 'terraform.tfstate'), 'utf8')
    expect(state).toContain('"name": "first"')
    // Only a graceful end marks what was interrupted.
    expect(state).toContain('"status": "tainted"')
    const log = () => expect.fail('unexpected log line')
    // The next run cleans up and creates the rest.
    const terraform = createTerraform(site.options)
    expect(readdirSync(join(site.options.dataDir, 'work'))).toEqual(['m1.1'])
    await terraform.cleanUp('m1', 1, log)
    expect(readdirSync(join(site.options.dataDir, 'work'))).toEqual(['m1.1'])
    await terraform.cleanUp('m1', 2, log)
    expect(readdirSync(join(site.options.dataDir, 'work'))).toEqual([])
    await terraform.cleanUp('m1', 2, log)
    site.write(endless('true'))
    const next = startApply(site.options, { id: 'm2' })
    expect(await next.result).toEqual({ kind: 'applied', outputs: {} })
    expect(next.logged('module.deployment.terraform_data.first: Creating')).toBe(false)
  })

  test('before its start', async () => {
    const site = createTestSite('')
    const run = startApply(site.options)
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    expect(run.lines).toEqual([])
  })
})

describe('for any behaviour of the binary', () => {
  test('a binary that ignores SIGINT is killed after the grace period, in init too', async () => {
    const site = createTestSite('')
    const binary = fakeBinary(site, `trap '' INT; echo init of "$1"; while :; do sleep 1000; done`)
    const run = startApply({ ...marked(site), binary, stopTimeoutMs: 200 })
    await until('init runs', () => run.logged('init of init'))
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    await expectOver(site, false)
  })

  test.each<readonly [string, string, number]>([
    ['kills what ignores SIGINT', `trap '' INT`, 300],
    ['reads the last output', `trap 'head -c 2000000 /dev/zero; touch saved; exit' INT`, 60_000],
  ])('when the service is killed, the supervisor %s', async (_, reaction, stopTimeoutMs) => {
    const site = createTestSite('')
    const binary = fakeBinary(site, `${reaction}; echo init of "$1"; while :; do sleep 0.1; done`)
    const service = startNode({
      entry: fileURLToPath(new URL('support/run-until-killed.ts', import.meta.url)),
      env: { TMPDIR: site.folder, TEST_OPTIONS: JSON.stringify({ ...site.options, binary, stopTimeoutMs }) },
      isReady: line => String(line.message).includes('init of init'),
    })
    await service.ready
    await service.kill()
    await until('nothing runs', () => findProcesses(site.folder).length === 0)
    expect(existsSync(join(site.options.dataDir, 'work', 'm1.1', 'saved'))).toBe(reaction.includes('saved'))
  })

  test('endless lines, too many lines and background processes are limited', async () => {
    const site = createTestSite('')
    const key = secrets.object_storage_access_key
    const binary = fakeBinary(
      site,
      `[ "$1" = init ] && { sleep 1000 & head -c 3000000 /dev/zero | tr '\\0' x; echo; head -c 262134 /dev/zero | tr '\\0' y; echo ${key}; exit; }
       [ "$1" = state ] && { echo '{"version":4,"serial":1,"lineage":"l","resources":[]}'; exit; }
       [ "$1" = apply ] && { yes | head -n 9000; echo '{"@message":"e","type":"diagnostic","diagnostic":{"severity":"error","summary":"late","detail":"${key}"}}'; exit 7; }`,
    )
    const run = startApply({ ...marked(site), binary })
    expect(await run.result).toEqual({ kind: 'failed', reason: 'late: <redacted>' })
    const messages = run.lines.map(({ message }) => message)
    expect(messages.slice(0, 2)).toEqual(
      ['x', 'y'].map(letter => expect.stringMatching(`^${letter}+ … ${letter}+<redacted>$`)),
    )
    expect(messages.slice(0, 2).map(text => Buffer.byteLength(text))).toEqual([8_192, 8_192])
    expect(messages.slice(3_500)).toEqual([
      'The log has 3500 lines. Of what follows, the last 500 lines appear when Terraform has ended.',
      '… 5,002 lines left out …',
      ...Array.from({ length: 500 }, () => 'y'),
      'late: <redacted>',
    ])
    await expectOver(site, false)
  })

  test.each([
    ['prints nothing', 'exit 3', 'init ended with exit code 3 and gave no reason.'],
    [
      'is killed',
      'kill -KILL $$',
      'init was ended by SIGKILL: check the log of the system for the cause, such as too little memory. Its last output: Killed',
    ],
    ['prints an error', 'echo "Error: bad" >&2; echo "Because." >&2; exit 1', 'bad: Because.'],
  ])('the reason when it %s', async (_, script, reason) => {
    const site = createTestSite('')
    expect(await startApply({ ...site.options, binary: fakeBinary(site, script) }).result).toEqual({
      kind: 'failed',
      reason,
    })
  })

  test.each<readonly [string, Parameters<typeof startApply>[1]]>([
    ['an id with a path', { id: '../x' }],
    ['a state key with a path', { stateKey: '../x' }],
    ['a duplicate variable', { variables: { ...variables, ...secrets } }],
    ['an invalid variable name', { variables: { 'a b': '' } }],
    ['a value with U+0000', { variables: { a: '\0' } }],
  ])('rejects %s', async (_, request) => {
    await expect(startApply(createTestSite('').options, request).result).rejects.toBeInstanceOf(RangeError)
  })
})

describe('the preflight check', () => {
  const runPreflight = (options: Site['options']) => createTerraform(options).preflight()
  const version = (text: string) => `echo '{"terraform_version":"${text}"}'; echo called >> "$0.log"`

  test('passes, and runs the binary once until its file changes', async () => {
    const site = createTestSite('')
    const binary = fakeBinary(site, version('1.6.0'))
    const terraform = createTerraform({ ...site.options, binary })
    expect([await terraform.preflight(), await terraform.preflight()]).toEqual([null, null])
    expect(readFileSync(`${binary}.log`, 'utf8')).toBe('called\n')
    fakeBinary(site, `${version('1.5.7')} `)
    expect(await terraform.preflight()).toMatch(
      /terraform is version 1\.5\.7, but 1\.6\.0 or later is required: .*PDM_TERRAFORM_BINARY\.$/,
    )
    expect(existsSync(site.options.dataDir)).toBe(true)
  })

  test('passes with modules that call each other', async () => {
    const site = createTestSite('')
    for (const [name, other] of [
      ['a', 'b'],
      ['b', 'a'],
    ] as const) {
      mkdirSync(join(site.folder, name))
      writeFileSync(join(site.folder, name, 'main.tf'), `module "m" { source = "../${other}" }`)
    }
    const options = { binary: fakeBinary(site, version('1.9.0')), moduleDir: join(site.folder, 'a') }
    expect(await runPreflight({ ...site.options, ...options })).toBeNull()
  })

  test.each<readonly [string, (site: Site) => Partial<Site['options']>, RegExp]>([
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
    ['a directory as the binary', ({ folder }) => ({ binary: folder }), /which is not an executable file/],
    [
      'another program',
      site => ({ binary: fakeBinary(site, 'echo hello') }),
      /did not report a version: .*PDM_TERRAFORM_BINARY\.$/,
    ],
    [
      'a binary that something else stops',
      site => ({ binary: fakeBinary(site, 'kill -TERM $$') }),
      /terraform was ended by SIGTERM before it reported a version: check the log of the system/,
    ],
    [
      'a file in place of the data directory',
      site => ({ binary: fakeBinary(site, version('1.9.0')), dataDir: join(site.folder, 'terraform') }),
      /^PDM_DEPLOYMENTS_DIR is .*, which is not writable; check its permissions\.$/,
    ],
    [
      // Node's own recursive mkdir never ends here.
      'a data directory in /proc',
      site => ({ binary: fakeBinary(site, version('1.9.0')), dataDir: '/proc/nowhere/deployments' }),
      /^PDM_DEPLOYMENTS_DIR is \/proc\/nowhere\/deployments, which is not writable; check its permissions\.$/,
    ],
    [
      'no module',
      site => ({ binary: fakeBinary(site, version('1.9.0')), moduleDir: '/nowhere' }),
      /^PDM_TERRAFORM_MODULE is \/nowhere, which is not a directory with a Terraform module\.$/,
    ],
    [
      'an empty module',
      site => {
        mkdirSync(join(site.folder, 'empty'))
        return { binary: fakeBinary(site, version('1.9.0')), moduleDir: join(site.folder, 'empty') }
      },
      /^PDM_TERRAFORM_MODULE is /,
    ],
    [
      'a module that calls a module whose own call finds nothing',
      site => {
        const write = (name: string, source: string) => {
          mkdirSync(join(site.folder, name), { recursive: true })
          writeFileSync(join(site.folder, name, 'main.tf'), `module "m" { source = "${source}" }`)
        }
        write('caller', './called')
        write('caller/called', '../../absent')
        return { binary: fakeBinary(site, version('1.9.0')), moduleDir: join(site.folder, 'caller') }
      },
      /^PDM_TERRAFORM_MODULE is \S+\/caller, but \S+\/caller\/called\/main\.tf calls the module \.\.\/\.\.\/absent, and \S+\/absent is not a directory; copy that directory too, /,
    ],
  ])('%s', async (_, toOptions, problem) => {
    const site = createTestSite('')
    expect(await runPreflight({ ...site.options, ...toOptions(site) })).toMatch(problem)
  })
})

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { toIsolatedCommand } from '../../src/deployments/terraform/isolation.ts'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import { findProcesses, isTerraformMissing, toRequest, useSites } from './support/terraform.ts'

const createTestSite = useSites()

const MARK = 'markofthings4711'
const support = (name: string): string => fileURLToPath(new URL(`support/${name}`, import.meta.url))
const isRoot = process.getuid?.() === 0
const NOBODY = 65_534
const hasNamespaces =
  spawnSync('unshare', ['--user', '--map-root-user', '--mount', '--pid', '--fork', 'true']).status === 0

/** The ways of attempts.sh by what protects from them, where nothing does. */
const ALL = { process: 7, file: 5, user: 3 }
const { process: _, ...OF_READABLE_FILES } = ALL

/** What the module of a service with this user, setting and program gets. */
const attack = (uid: number, isolation: 'auto' | 'off', isNodeReadable = true) => {
  const site = createTestSite()
  const at = (...names: string[]) => join(site.folder, 'x', ...names)
  for (const path of ['cwd', 'deployments/work/other.1', 'deployments/state/other', 'credentials', 'home', 'module']) {
    mkdirSync(at(path), { recursive: true })
    if (path !== 'module') writeFileSync(at(path, 'mark'), MARK)
  }
  copyFileSync(support('attempts.sh'), at('module/attempts.sh'))
  const pattern = `${MARK.slice(0, -4)}[4]711`
  writeFileSync(
    at('module/main.tf'),
    `${Object.keys(toRequest().variables)
      .concat(Object.keys(toRequest().secrets))
      .map(name => `variable "${name}" {}`)
      .join('\n')}
     resource "terraform_data" "x" {
       triggers_replace = timestamp()
       provisioner "local-exec" { command = "sh '\${path.module}/attempts.sh' ${pattern} ${at()}" }
     }
     output "details" {
       value = can(regex("SECRET=${pattern}", base64decode(filebase64("/proc/\${regex("PPid:[^0-9]*([0-9]+)", file("/proc/\${regex("PPid:[^0-9]*([0-9]+)", file("/proc/self/status"))[0]}/status"))[0]}/environ"))))
     }`,
  )
  chmodSync(site.folder, 0o755)
  execFileSync('chown', ['-R', `${uid}:${uid}`, at()])
  if (!isNodeReadable) {
    copyFileSync(process.execPath, at('node'))
    chmodSync(at('node'), 0o711)
  }
  const options = { ...site.options, dataDir: at('deployments'), moduleDir: at('module'), isolation, visiblePaths: [] }
  const env = { PATH: process.env.PATH, HOME: at('home'), TMPDIR: at('credentials'), SECRET: MARK }
  const { stdout, stderr } = spawnSync(
    isNodeReadable ? process.execPath : at('node'),
    [support('run-as-service.ts'), MARK],
    {
      cwd: at('cwd'),
      env: { ...env, TEST_OPTIONS: JSON.stringify(options) },
      uid,
      gid: uid,
      encoding: 'utf8',
    },
  )
  expect(stderr).toBe('')
  const ways = new Set(Array.from(stdout.matchAll(/\(local-exec\): got (\w+: [^"]*)/g), ([, way = '']) => way))
  process.stdout.write(
    `uid ${uid}, isolation ${isolation}, node readable ${isNodeReadable}: ${[...ways].join(', ') || 'nothing'}\n`,
  )
  const groups = Object.groupBy(ways, way => way.replace(/:.*/, ''))
  return {
    got: Object.fromEntries(Object.entries(groups).map(([group, found]) => [group, found?.length])),
    results: [...stdout.matchAll(/^\{"result":(.*)\}$/gm)].map(([, text = '']) => JSON.parse(text)),
    isExposed: !stdout.startsWith('{"exposure":null}'),
  }
}

describe.skipIf(isTerraformMissing || !hasNamespaces || !isRoot)('what a hostile module gets', () => {
  test.each([
    ['isolated, as root', attack.bind(null, 0, 'auto'), {}],
    ['isolated, as another user', attack.bind(null, NOBODY, 'auto'), {}],
    ['not isolated, with a node that its user cannot read', attack.bind(null, NOBODY, 'off', false), OF_READABLE_FILES],
    ['not isolated', attack.bind(null, NOBODY, 'off'), ALL],
  ])('%s', (_, execute, expected) => {
    const result = { kind: 'applied', outputs: { details: 'process' in expected } }
    expect(execute()).toEqual({ got: expected, results: [result, result], isExposed: 'file' in expected })
  })
})

describe.skipIf(!hasNamespaces)('an isolated command', () => {
  /** The data directory `it` has a module, another run and state, and a secret beside it; `link` leads to it. */
  const createSetting = () => {
    const { folder } = createTestSite()
    const at = (...names: string[]) => join(folder, 'a folder', ...names)
    for (const path of ['it/work/own', 'it/work/other', 'it/state/own', 'it/state/other', 'it/root', 'it/module']) {
      mkdirSync(at(path), { recursive: true })
      writeFileSync(at(path, 'mark'), MARK)
    }
    rmSync(at('it/root/mark'))
    writeFileSync(at('secret'), MARK)
    symlinkSync(at('it'), at('link'))
    return at
  }
  const toArguments = (at: ReturnType<typeof createSetting>, script: string, readable: readonly string[] = []) => {
    const paths = { readable: readable.map(path => at(path)), writable: [at('link/state/own'), at('it/state/own')] }
    const [file, ...args] = toIsolatedCommand(['/bin/sh', '-c', script], at('it/work/own'), paths)
    return [file, args, { cwd: at('it/work/own'), encoding: 'utf8' }] as const
  }
  const run = (...of: Parameters<typeof toArguments>) => spawnSync(...toArguments(...of)).stdout

  const LIST =
    'cd ../../..; grep -Rls "" . | sort | tr "\\n" " "; for d in it/work/own it/module link/state/own; do touch $d/new 2>/dev/null && echo "writes $d"; done'
  test.each([
    [
      'nothing else',
      [],
      './it/state/own/mark ./it/work/own/mark ./link/state/own/mark writes it/work/own\nwrites link/state/own\n',
    ],
    [
      'a module in the data directory',
      ['it/module'],
      './it/module/mark ./it/state/own/mark ./it/work/own/mark ./link/state/own/mark writes it/work/own\nwrites link/state/own\n',
    ],
    [
      'a folder in which the data directory is, but no other run and state in it',
      ['it/module', ''],
      './it/module/mark ./it/state/own/mark ./it/work/own/mark ./link/module/mark ./link/state/own/mark ./link/work/own/mark ./secret writes it/work/own\nwrites link/state/own\n',
    ],
  ])('sees %s', (_, readable, expected) => {
    expect(run(createSetting(), LIST, readable)).toBe(expected)
  })

  test('sees nothing by a link that an earlier command of its run left', () => {
    const at = createSetting()
    expect(run(at, `rm -rf .tmp; ln -s '${at()}' .tmp; echo done`)).toBe('done\n')
    expect(run(at, 'cat /.tmp/secret /.tmp/*/secret 2>&1; echo done')).not.toContain(MARK)
  })

  test('shares its temporary files with another command of its run', async () => {
    const at = createSetting()
    const [file, args, options] = toArguments(
      at,
      'touch "$TMPDIR/first"; echo; until [ -e second ]; do sleep 0.02; done; ls $TMPDIR',
    )
    const first = spawn(file, args, options)
    const [output] = await Promise.all([
      text(first.stdout),
      once(first.stdout, 'data').then(() => run(at, 'touch second')),
    ])
    expect(output).toBe('\nfirst\n')
  })

  test('ends with the processes that left its group', async () => {
    expect(
      run(createSetting(), 'setsid sleep 1004711 & until ps ax | grep -q "[s]leep 1004711"; do :; done; echo started'),
    ).toBe('started\n')
    await until('nothing runs', () => findProcesses('1004711').length === 0)
  })
})

describe.skipIf(isTerraformMissing)('where the kernel permits no namespaces', () => {
  test.each([
    ['auto', null],
    ['required', expect.stringMatching(/not isolated \(unshare: forbidden\).*review/)],
  ] as const)('PDM_TERRAFORM_ISOLATION=%s: deployments are missing %j', async (isolation, missing) => {
    const { folder, options } = createTestSite()
    writeFileSync(join(folder, 'unshare'), '#!/bin/sh\necho "unshare: forbidden" >&2\nexit 1\n', { mode: 0o755 })
    const terraform = createTerraform({ ...options, isolation, env: { PATH: `${folder}:${process.env.PATH}` } })
    expect(await terraform.preflight()).toEqual(missing)
    expect(await terraform.describeExposure()).toContain('unshare: forbidden')
    // Not kept: what failed once may work.
    rmSync(join(folder, 'unshare'))
    if (hasNamespaces) expect([await terraform.describeExposure(), await terraform.preflight()]).toEqual([null, null])
  })
})

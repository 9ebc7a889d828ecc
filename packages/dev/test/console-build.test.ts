import { existsSync, globSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { BUNDLED_PACKAGES, isOutdated, updateConsole } from '../src/build/console.ts'
import { tempFolder } from './fixtures/command.ts'

/** An app whose build is written by `script`, or fails, in a repository. */
const createApp = (script: string): string => {
  const app = join(tempFolder(), 'apps/console')
  for (const folder of ['src', 'scripts', '../../packages/contract/src']) {
    mkdirSync(join(app, folder), { recursive: true })
  }
  writeFileSync(join(app, '../../packages/contract/src/index.ts'), '')
  writeFileSync(join(app, 'src/page.tsx'), '')
  writeFileSync(join(app, 'scripts/main.ts'), script)
  return app
}
const BUILD =
  "import { mkdirSync, writeFileSync } from 'node:fs'\nmkdirSync('dist', { recursive: true })\nwriteFileSync('dist/index.html', String(process.pid))\n"
const setTime = (path: string, seconds: number) => utimesSync(path, seconds, seconds)

test('a build is outdated if it is absent or older than a source', async () => {
  const app = createApp(BUILD)
  expect(isOutdated(app)).toBe(true)
  const printed: string[] = []
  await updateConsole(app, text => printed.push(text))
  expect(existsSync(join(app, 'dist/index.html'))).toBe(true)
  const sources = ['src/page.tsx', 'scripts/main.ts', '../../packages/contract/src/index.ts']
  for (const path of ['src', 'scripts', '../../packages/contract/src', ...sources]) setTime(join(app, path), 1_000)
  setTime(join(app, 'dist/index.html'), 2_000)
  expect(isOutdated(app)).toBe(false)
  for (const source of sources) {
    setTime(join(app, source), 3_000)
    expect(isOutdated(app), source).toBe(true)
    setTime(join(app, source), 1_000)
  }
  expect(printed).toEqual([])
})

test('the packages that the console bundles are sources of its build', () => {
  const root = fileURLToPath(new URL('../../../apps/console/src', import.meta.url))
  const files = globSync('**/*.{ts,tsx}', { cwd: root }).filter(file => !file.endsWith('.test.ts'))
  const imports = files.flatMap(file => [...readFileSync(join(root, file), 'utf8').matchAll(/from '@pool\/([\w-]+)/g)])
  expect(BUNDLED_PACKAGES).toEqual(expect.arrayContaining([...new Set(imports.map(([, name]) => name))]))
})

test('a build that fails prints its reason, and does not prevent the start', async () => {
  const app = createApp("process.stderr.write('no such plugin')\nprocess.exit(1)\n")
  const printed: string[] = []
  await updateConsole(app, text => printed.push(text))
  expect(printed.join('')).toMatch(/could not be built.*no such plugin/s)
})

test('a checkout without the console has none', async () => {
  const printed: string[] = []
  await updateConsole('/no/such/folder', text => printed.push(text))
  expect(printed).toEqual([])
})

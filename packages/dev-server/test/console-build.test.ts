import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildConsole, isOutdated } from '../src/console-build.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

/** An app whose build is written by `script`, or fails. */
const createApp = (script: string): string => {
  const app = tempFolder()
  for (const folder of ['src', 'scripts']) mkdirSync(join(app, folder))
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
  expect(await buildConsole(app, text => printed.push(text))).toBe(join(app, 'dist'))
  for (const file of ['src', 'src/page.tsx', 'scripts', 'scripts/main.ts']) setTime(join(app, file), 1_000)
  setTime(join(app, 'dist/index.html'), 2_000)
  expect(isOutdated(app)).toBe(false)
  setTime(join(app, 'src/page.tsx'), 3_000)
  expect(isOutdated(app)).toBe(true)
  expect(printed).toEqual([])
})

test('a build that fails prints its reason, and does not prevent the start', async () => {
  const app = createApp("process.stderr.write('no such plugin')\nprocess.exit(1)\n")
  const printed: string[] = []
  expect(await buildConsole(app, text => printed.push(text))).toBe(join(app, 'dist'))
  expect(printed.join('')).toMatch(/could not be built.*no such plugin/s)
})

test('a checkout without the console has none', async () => {
  const printed: string[] = []
  expect(await buildConsole('/no/such/folder', text => printed.push(text))).toBe('/no/such/folder/dist')
  expect(printed).toEqual([])
})

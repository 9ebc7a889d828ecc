import { spawn } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** The packages of this repository whose code is in the build, also through one another. */
export const BUNDLED_PACKAGES: readonly string[] = ['client', 'contract']

/** What the build is made of, relative to the folder of the app. Installed packages change only with a manifest. */
const SOURCES = [
  'src/**',
  'scripts/**',
  'index.html',
  'package.json',
  ...BUNDLED_PACKAGES.flatMap(name => [`../../packages/${name}/src/**`, `../../packages/${name}/package.json`]),
]

const readTime = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Whether the build is older than a source of it, or absent. */
export const isOutdated = (app: string): boolean => {
  const builtAt = readTime(join(app, 'dist/index.html'))
  return globSync(SOURCES, { cwd: app }).some(source => readTime(join(app, source)) > builtAt)
}

/**
 * Builds the console of the app in this folder, unless its build is up to date. If the build fails, it prints the
 * reason: everything else works without the console.
 */
export async function buildConsole(app: string, print: (text: string) => void): Promise<void> {
  const script = join(app, 'scripts/main.ts')
  if (!existsSync(script) || !isOutdated(app)) return
  const child = spawn(process.execPath, [script], { cwd: app, stdio: ['ignore', 'pipe', 'pipe'] })
  const output: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', part => output.push(part))
  const code = await new Promise<number | null>(resolve => {
    child.on('close', resolve)
    child.on('error', error => {
      output.push(Buffer.from(String(error)))
      resolve(null)
    })
  })
  if (code !== 0) print(`The console could not be built, and /console is 404:\n${Buffer.concat(output)}\n`)
}

import { execFile } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const consoleApp = fileURLToPath(new URL('../../../../apps/console', import.meta.url))

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

/** The line of a failed program's output that says why. */
const findReason = (output: string): string =>
  output.split('\n').find(line => /^\w*Error\b/.test(line)) ?? output.trim().split('\n').at(-1) ?? ''

/** Builds the console of an app into `folder`, by default its own. The error is one line. */
const runBuild = (app: string, folder?: string): Promise<unknown> =>
  promisify(execFile)(process.execPath, [join(app, 'scripts/main.ts'), ...(folder === undefined ? [] : [folder])], {
    cwd: app,
  }).catch(({ stderr, message }: { stderr?: string; message: string }) => {
    throw new Error(`The console could not be built: ${findReason(stderr || message).trim()}`)
  })

/** Builds the operator's console into `folder`. It never copies an earlier build, which can be of another version. */
export const buildConsole = async (folder: string, app: string = consoleApp): Promise<void> => {
  await runBuild(app, folder).catch(({ message }: Error) => {
    throw new Error(
      `${message}; install all packages (npx -y pnpm@12 install), or leave it out (build:without-console).`,
    )
  })
}

/**
 * Builds the console of the app in this folder in place, unless its build is up to date. If the build fails, it prints the
 * reason: everything else works without the console.
 */
export const updateConsole = async (app: string, print: (text: string) => void): Promise<void> => {
  if (!existsSync(join(app, 'scripts/main.ts')) || !isOutdated(app)) return
  await runBuild(app).catch(({ message }: Error) => print(`${message}. /console is 404.\n`))
}

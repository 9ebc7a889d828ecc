import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, readlink, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { getgid, getuid } from 'node:process'
import type { TerraformSettings } from '../../config/terraform.ts'
import { captureShortly } from './process-group.ts'
import { ISOLATION_ROOT } from './workdir.ts'

type Environment = Readonly<Record<string, string>>

/** The programs of the system, and what verifies certificates. */
const SYSTEM_PATHS = ['/usr', '/nix', '/gnu', '/etc/alternatives'].concat([
  '/etc/ssl/certs',
  '/etc/ssl/cert.pem',
  '/etc/pki/tls/certs',
  '/etc/pki/ca-trust/extracted',
])

/** What an isolated command sees besides the system and its working directory. Absolute paths. */
export interface VisiblePaths {
  readonly readable: readonly string[]
  readonly writable: readonly string[]
}

const SCRIPT = readFileSync(new URL('isolate.sh', import.meta.url), 'utf8')
const NAMESPACES = ['--user', '--map-root-user', '--mount', '--pid', '--ipc', '--fork', '--kill-child']
const PROBE_TIMEOUT_MS = 30_000

/** The command that runs another one in isolation: with files, processes and IPC objects of its own. See isolate.sh. */
export const toIsolatedCommand = (
  command: readonly [file: string, ...args: string[]],
  workdir: string,
  { readable, writable }: VisiblePaths,
): readonly [file: string, ...args: string[]] => {
  const ids = [getuid?.() ?? 0, getgid?.() ?? 0].map(String)
  // A folder comes before what is in it.
  const shown = [...SYSTEM_PATHS, ...readable].toSorted((a, b) => a.length - b.length)
  const paths = [shown, writable].flatMap(list => [String(list.length), ...list])
  return ['unshare', ...NAMESPACES, '/bin/sh', '-c', SCRIPT, 'isolate', workdir, ...ids, ...paths, ...command]
}

/** Of a link, also what it leads to: the link itself may be in a folder that is visible. Paths that do not exist are left out. */
const resolveAll = (paths: readonly string[]): string[] => [
  ...new Set(paths.filter(path => isAbsolute(path) && existsSync(path)).flatMap(path => [path, realpathSync(path)])),
]

/** The text as a path and as a list of paths, and the absolute paths in its strings. */
const findPaths = (text: string): string[] => [
  ...[text, ...text.split(delimiter)],
  ...Array.from(text.matchAll(/"(\/[^"\n]+)"/g), ([, path = '']) => path),
]

const readText = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '')

/** The CLI configurations that exist or may exist, and their text. Terraform replaces variables in the path of the cache. */
const readCliConfigs = ({ HOME = '', TF_CLI_CONFIG_FILE }: Environment) => {
  const inHome = ['.terraformrc', '.tofurc'].map(name => join(HOME, name))
  const paths = TF_CLI_CONFIG_FILE ? [resolve(TF_CLI_CONFIG_FILE)] : inHome
  const texts = paths.map(path => readText(path).replaceAll(/\$(?:HOME\b|\{HOME\})/g, () => HOME))
  return { paths, text: texts.join('\n') }
}

/** The folders of providers that all runs share, of which Terraform uses the first. */
export const findPluginCaches = (env: Environment): readonly string[] => {
  const configured = /^\s*plugin_cache_dir\s*=\s*"(\/[^"\n]+)"/m.exec(readCliConfigs(env).text)?.[1]
  return [env.TF_PLUGIN_CACHE_DIR, configured].flatMap(path => (path ? [resolve(path)] : []))
}

export interface PathSources {
  readonly binary: string
  /** The module, and those that it calls by a relative path. */
  readonly modules: readonly string[]
  readonly settings: Pick<TerraformSettings, 'passthrough' | 'visiblePaths'>
  /** The environment of the command. */
  readonly env: Environment
  /** The folder of a local state. */
  readonly stateDir: string | null
}

/**
 * What a run needs: its binary, modules and state; the CLI configuration and the paths that it names; the certificates, and
 * each passed variable that names a file; and `PDM_TERRAFORM_PATHS`.
 */
export const findVisiblePaths = ({ binary, modules, settings, env, stateDir }: PathSources): VisiblePaths => {
  const { HOME = '', SSL_CERT_FILE = '', SSL_CERT_DIR = '' } = env
  const cliConfigs = readCliConfigs(env)
  const passed = settings.passthrough.flatMap(name => findPaths(env[name] ?? ''))
  const given = [
    ...[binary, ...modules, SSL_CERT_FILE, ...SSL_CERT_DIR.split(delimiter), ...cliConfigs.paths],
    ...[join(HOME, '.terraform.d/plugins'), ...findPaths(cliConfigs.text)],
    ...passed.filter(path => isAbsolute(path) && statSync(path, { throwIfNoEntry: false })?.isFile()),
    ...settings.visiblePaths,
  ]
  return {
    readable: resolveAll(given),
    writable: resolveAll([stateDir ?? '', ...findPluginCaches(env)]),
  }
}

/** Prints its process namespace, and fails if it sees the file that is its argument. */
const PROBE = 'readlink /proc/self/ns/pid && ! [ -e "$1" ]'

/** Runs a command in isolation and checks what it sees. Null, or why Terraform cannot be isolated here. */
export const probeIsolation = async (env: Environment): Promise<string | null> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'isolation-')))
  try {
    const [workdir, outside] = [join(folder, 'work', 'probe'), join(folder, 'outside')]
    for (const path of [workdir, join(folder, ISOLATION_ROOT)]) await mkdir(path, { recursive: true })
    await writeFile(outside, '')
    const command = toIsolatedCommand(['/bin/sh', '-c', PROBE, 'sh', outside], workdir, { readable: [], writable: [] })
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
    const { exit, stdout, stderr } = await captureShortly(command, { cwd: workdir, env, signal })
    if (exit.code !== 0) return stderr.trim().split('\n')[0] || `unshare ended with ${exit.signal ?? exit.code}`
    const isOwn = stdout.trim() !== (await readlink('/proc/self/ns/pid'))
    return isOwn ? null : 'its processes are in the namespace of the service'
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What a module can read, as a sentence, where Terraform is not isolated for this reason. */
export const describeExposure = (reason: string): string =>
  `Terraform is not isolated (${reason}), so a module can read every file of its user, those of secrets and of other deployments included, and perhaps the memory of this process; review each module and provider, and see docs/security.md for what isolates it.`

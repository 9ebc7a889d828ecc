import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PlainError } from '../user-error.ts'
import type { Binaries } from './binaries.ts'
import type { Launch } from './unprivileged-user.ts'

/** What a data folder holds. */
export function layout(dataDir: string) {
  return { cluster: join(dataDir, 'cluster'), password: join(dataDir, 'password'), log: join(dataDir, 'postgres.log') }
}

const HALF_MADE = 'cluster.new-'

/** Makes the cluster if there is none, and returns the password of its one role, `postgres`. */
export async function prepareCluster(
  dataDir: string,
  binaries: Binaries,
  launch: Launch,
  sync: boolean,
): Promise<string> {
  const { cluster, password } = layout(dataDir)
  for (const name of await readdir(dataDir)) {
    // An orphaned initdb may still write into one; then it stays until the next start.
    if (name.startsWith(HALF_MADE)) await rm(join(dataDir, name), { recursive: true, force: true }).catch(() => {})
  }
  if (existsSync(cluster)) {
    const made = (await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(() => '')).trim()
    if (made !== binaries.major) {
      const what = made === '' ? 'is no Postgres cluster' : `was made by Postgres ${made}`
      throw new PlainError(`${cluster} ${what}, and this is Postgres ${binaries.major}: move the folder away`)
    }
    if (!existsSync(password))
      throw new PlainError(`${password} is missing, and ${cluster} cannot be opened without it`)
    return readFile(password, 'utf8')
  }

  // The password is on disk before the cluster that wants it, and is made anew with each try.
  await rm(password, { force: true })
  await writeFile(password, randomBytes(24).toString('base64url'), { mode: 0o600, flag: 'wx' })
  const halfMade = await mkdtemp(join(dataDir, HALF_MADE))
  if (launch.account !== undefined) {
    await chown(password, launch.account.uid, launch.account.gid)
    await chown(halfMade, launch.account.uid, launch.account.gid)
  }
  await initdb(binaries, launch, halfMade, password, sync)
  await rename(halfMade, cluster)
  return readFile(password, 'utf8')
}

async function initdb(binaries: Binaries, launch: Launch, folder: string, password: string, sync: boolean) {
  const identity = ['--username=postgres', `--pwfile=${password}`, '--auth=scram-sha-256']
  const text = ['--encoding=UTF8', '--locale=C']
  const args = ['-D', folder, ...identity, ...text, '--no-instructions', ...(sync ? [] : ['--no-sync'])]
  const { file, args: argv, options } = launch.command(binaries.initdb, args)
  const child = spawn(file, argv, { ...options, cwd: '/', env: serverEnv(), stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', chunk => (output += chunk))
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve))
  if (code !== 0) throw new Error(`initdb failed (${code}):\n${output.trimEnd().split('\n').slice(-8).join('\n')}`)
}

/** Only what a server needs: PGPORT, PGTZ, LANG and the like of the caller's shell do not reach it. */
export function serverEnv(): NodeJS.ProcessEnv {
  const { PATH, SystemRoot } = process.env
  return { PATH, LC_ALL: 'C', TZ: 'UTC', ...(SystemRoot === undefined ? {} : { SystemRoot }) }
}

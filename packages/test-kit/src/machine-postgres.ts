import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '@pool/dev/ports'
import { startServerAndWait } from '@pool/dev/server-process'
import { createDatabaseClient } from '@pool/runtime/database/client'

const ROOT = '/usr/lib/postgresql'

/** The programs of the newest installed version. */
const findFolder = (): string | undefined =>
  existsSync(ROOT)
    ? readdirSync(ROOT)
        .sort((a, b) => Number(b) - Number(a))
        .map(version => join(ROOT, version, 'bin'))
        .find(folder => ['initdb', 'postgres', 'pg_dump', 'pg_restore'].every(name => existsSync(join(folder, name))))
    : undefined

const folder = findFolder()

/** What is missing and how to install it; undefined: everything is installed. */
export const missingMachinePostgres =
  folder === undefined
    ? 'Postgres is not installed, the restore drill is skipped: apt-get install postgresql'
    : undefined

/** A Postgres server of this machine's packages, which come with pg_dump and pg_restore of the same version. */
export interface MachinePostgres extends AsyncDisposable {
  /** Such as "15". */
  readonly version: string
  /** The connection string of a database that may not exist. */
  readonly toUrl: (database: string) => string
  readonly createDatabase: (database: string) => Promise<string>
  /** Writes a dump in the custom format. */
  readonly dump: (database: string) => Promise<string>
  /** Drops the database and creates it from the dump. */
  readonly restore: (database: string, file: string) => Promise<void>
}

/** The server does not run as root. */
const findUser = (): { readonly uid: number; readonly gid: number } | null => {
  if (process.getuid?.() !== 0) return null
  const fields = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
    .find(([name]) => name === 'postgres')
  return fields ? { uid: Number(fields[2]), gid: Number(fields[3]) } : null
}

export const startMachinePostgres = async (): Promise<MachinePostgres> => {
  if (!folder) throw new Error(missingMachinePostgres)
  const user = findUser()
  const root = await mkdtemp(join(tmpdir(), 'pool-machine-postgres-'))
  await chmod(root, 0o755)
  const cluster = join(root, 'cluster')
  await mkdir(cluster)
  if (user) await chown(cluster, user.uid, user.gid)
  const program = (name: string): string => join(folder, name)
  const run = promisify(execFile)
  await run(
    program('initdb'),
    ['--pgdata', cluster, '--username', 'postgres', '--auth', 'trust', '--encoding', 'UTF8'],
    {
      ...(user ?? {}),
      cwd: cluster,
    },
  )
  const port = await freePort()
  const toUrl = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  const execute = async (statement: string): Promise<void> => {
    const sql = createDatabaseClient(toUrl('postgres'), { maxConnections: 1, applicationName: 'tests' })
    await sql.unsafe(statement).finally(() => sql.end({ timeout: 1 }))
  }
  const command = [
    program('postgres'),
    '-D',
    cluster,
    '-p',
    String(port),
    '-k',
    cluster,
    '-c',
    'listen_addresses=127.0.0.1',
  ]
  const stop = await startServerAndWait({
    name: 'postgres',
    folder: cluster,
    command: user ? ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', ...command] : command,
    isUp: () =>
      execute('select 1').then(
        () => true,
        () => false,
      ),
  })
  return {
    version: folder.split('/').at(-2) ?? '',
    toUrl,
    async createDatabase(database) {
      await execute(`create database ${database}`)
      return toUrl(database)
    },
    async dump(database) {
      const file = join(root, `${database}-${(await readdir(root)).length}.dump`)
      await run(program('pg_dump'), ['--format=custom', `--file=${file}`, toUrl(database)])
      return file
    },
    async restore(database, file) {
      await execute(`drop database ${database} with (force)`)
      await run(program('pg_restore'), ['--create', `--dbname=${toUrl('postgres')}`, file])
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(root, { recursive: true, force: true })
    },
  }
}

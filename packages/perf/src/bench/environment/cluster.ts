import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabaseClient, type Sql } from '@pool/database/client'
import { startPostgres } from '@pool/dev-server/postgres'
import { applySchema } from 'allocation-api/src/database/migrate.ts'

export interface Database extends AsyncDisposable {
  readonly url: string
  /** A pool like the service's own. */
  readonly sql: Sql
}

export interface Cluster {
  readonly version: string
  /** A new database with the service's schema. */
  readonly database: (connections: number) => Promise<Database>
}

/**
 * A Postgres with fsync, as in production: without it a write costs a fraction, and every ratio of a write would be
 * another. Each thing is given to `cleanup` before anything is waited for, so an interrupt leaves nothing.
 */
export const startCluster = async (cleanup: AsyncDisposableStack): Promise<Cluster> => {
  const folder = mkdtempSync(join(tmpdir(), 'pool-bench-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const starting = startPostgres({ dataDir: folder })
  cleanup.defer(async () => (await starting.catch(() => undefined))?.stop('immediate'))
  const { url } = await starting

  const admin = createDatabaseClient(url, { maxConnections: 1, applicationName: 'bench' })
  const [row] = await admin<{ version: string }[]>`select current_setting('server_version') as version`
  let made = 0
  return {
    version: row?.version ?? 'unknown',
    async database(connections) {
      made += 1
      const name = `bench_${made}`
      await admin.unsafe(`create database ${name}`)
      const own = Object.assign(new URL(url), { pathname: `/${name}` }).href
      const sql = createDatabaseClient(own, { maxConnections: connections, applicationName: 'bench' })
      await applySchema(sql)
      return { url: own, sql, [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) }
    },
  }
}

import { mkdirSync, realpathSync } from 'node:fs'
import { freePort } from './ports.ts'
import { findBinaries } from './postgres/binaries.ts'
import { layout, prepareCluster } from './postgres/cluster.ts'
import { launchServer, type StopMode } from './postgres/server.ts'
import { stopLeftover } from './postgres/stale-server.ts'
import { chooseLaunch } from './postgres/unprivileged-user.ts'
import type { Exit } from './process.ts'
import { PlainError } from './user-error.ts'

export interface PostgresOptions {
  /**
   * Holds the cluster, its password and, unless `log` says otherwise, its log. One starter at a time: a server that
   * is found running on it counts as left behind, and is stopped.
   */
  readonly dataDir: string
  /** 0 or absent: a free one. */
  readonly port?: number
  /** false is for tests: a commit still outlives a killed server, but not a machine without power. */
  readonly fsync?: boolean
  readonly log?: string
}

export interface Postgres {
  /** Of the database `postgres`, as its superuser. */
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly exited: Promise<Exit>
  /** fast (the default): open transactions are rolled back, data is flushed. immediate: a crash, in effect. */
  stop(mode?: StopMode): Promise<void>
}

const PORT_TRIES = 5

/** A real Postgres on 127.0.0.1, from the binaries that the package manager installed. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  mkdirSync(options.dataDir, { recursive: true })
  const dataDir = realpathSync(options.dataDir)
  const { cluster, log: ownLog } = layout(dataDir)
  const { log = ownLog, fsync = true } = options
  const binaries = findBinaries()
  const launch = chooseLaunch(cluster, dataDir, binaries.folders)
  await stopLeftover(cluster)
  const password = await prepareCluster(dataDir, binaries, launch, fsync)

  for (let attempt = 1; ; attempt += 1) {
    const port = options.port || (await freePort())
    const launched = await launchServer({ cluster, log, port, fsync, binaries, launch })
    if ('server' in launched) {
      return { ...launched.server, port, url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres` }
    }
    const wasTaken = launched.failed.includes('could not create any TCP/IP sockets')
    if (wasTaken && options.port) throw new PlainError(`port ${port} is taken by another process`)
    if (!wasTaken || attempt === PORT_TRIES) throw new Error(`Postgres did not start:\n${launched.failed}`)
  }
}

import { spawnSync } from 'node:child_process'
import { appendFile, chown, cp, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '@pool/dev/ports'
import { type Postgres, startPostgres } from '@pool/dev/postgres'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { until } from './poll.ts'
import { freezeFamily } from './processes.ts'

export type Replication = 'synchronous' | 'asynchronous'

/** A primary and a standby that a test can promote. */
export interface ReplicatedPostgres {
  /** Connection string of an empty database that names both servers. */
  readonly url: string
  /** Connection string of the same database on the server that is the primary at the moment. */
  primaryUrl(): string
  standbyUrl(): string
  /** Stops the primary as a crash would, and promotes the standby after `beforePromotion`. */
  failOver(beforePromotion?: () => Promise<void>): Promise<void>
  /** Makes a new standby of the server that was the primary. Resolves when it replicates as the pair should. */
  rejoin(): Promise<void>
  /** The primary sends nothing to the standby until `failOver`. */
  pauseReplication(): Promise<void>
  /** Stops the primary. */
  stop(mode: 'fast' | 'immediate'): Promise<void>
  /** Starts the primary again with the same data and port. */
  start(): Promise<void>
  /** Sends SIGSTOP to the primary and its child processes: connections stay open without responses. */
  freeze(): void
  thaw(): void
  remove(): Promise<void>
}

interface Node {
  readonly folder: string
  readonly port: number
  server: Postgres | null
}

const NAME = 'replicated'
/** A server that shuts down signals its processes within this time. */
const SHUTDOWN_SIGNAL_MS = 200
const WITHOUT_FILES = ['postmaster.pid', 'postmaster.opts', 'standby.signal', 'backup_label']

/** Starts two Postgres servers, with fsync as in production. Without a standby, `rejoin` makes the first one. */
export const startReplicatedPostgres = async (
  replication: Replication,
  { withStandby = true } = {},
): Promise<ReplicatedPostgres> => {
  const root = await mkdtemp(join(tmpdir(), 'pool-replicated-postgres-'))
  const createNode = async (name: string): Promise<Node> => {
    const folder = join(root, name)
    await mkdir(folder)
    return { folder, port: await freePort(), server: null }
  }
  let [primary, standby] = [await createNode('a'), await createNode('b')]
  primary.server = await startPostgres({ dataDir: primary.folder, port: primary.port })
  const { username, password } = new URL(primary.server.url)
  const toUrl = (hosts: string, database: string) => `postgres://${username}:${password}@${hosts}/${database}`
  const toNodeUrl = ({ port }: Node, database = NAME) => toUrl(`127.0.0.1:${port}`, database)

  let pausedSender: number | null = null
  let thaw = () => {}

  const withNode = async <Result>(node: Node, work: (sql: Sql) => Promise<Result>): Promise<Result> => {
    const sql = createDatabaseClient(toNodeUrl(node, 'postgres'), { maxConnections: 1, applicationName: 'tests' })
    try {
      return await work(sql)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }

  const setSynchronous = (node: Node, names: string) =>
    withNode(node, async sql => {
      await sql.unsafe(`alter system set synchronous_standby_names = '${names}'`)
      await sql`select pg_reload_conf()`
    })

  /** A base backup by the functions of the server, because the embedded server comes without pg_basebackup. */
  const copyCluster = (source: Node, target: Node) =>
    withNode(source, async sql => {
      await rm(target.folder, { recursive: true, force: true })
      await mkdir(target.folder)
      await cp(join(source.folder, 'password'), join(target.folder, 'password'))
      const [from, to] = [join(source.folder, 'cluster'), join(target.folder, 'cluster')]
      await sql`select pg_backup_start('standby', true)`
      // A file that is removed during the copy is not part of the backup, and fails neither.
      spawnSync('cp', ['-a', from, to])
      const [backup] = await sql`select labelfile from pg_backup_stop(false)`
      for (const file of WITHOUT_FILES) await rm(join(to, file), { force: true })
      const { uid, gid } = await stat(from)
      for (const [file, text] of [
        ['backup_label', backup?.labelfile],
        ['standby.signal', ''],
      ] as const) {
        await writeFile(join(to, file), text)
        await chown(join(to, file), uid, gid)
      }
      await appendFile(
        join(to, 'postgresql.auto.conf'),
        // The last setting applies. A promoted server must not wait for a standby that it does not have yet.
        `primary_conninfo = 'host=127.0.0.1 port=${source.port} user=${username} password=${password}'\n` +
          `synchronous_standby_names = ''\n`,
      )
    })

  const addStandby = async () => {
    await copyCluster(primary, standby)
    standby.server = await startPostgres({ dataDir: standby.folder, port: standby.port })
    const untilReplicated = (syncState: string) =>
      withNode(primary, sql =>
        until(`the standby replicates (${syncState})`, async () => {
          const [row] = await sql`select state, sync_state from pg_stat_replication`
          return row?.state === 'streaming' && row.sync_state === syncState
        }),
      )
    await untilReplicated('async')
    if (replication === 'asynchronous') return
    // Commits wait from here on, so not before the standby has caught up.
    await setSynchronous(primary, '*')
    await untilReplicated('sync')
  }

  await withNode(primary, sql => sql.unsafe(`create database ${NAME}`))
  if (withStandby) await addStandby()

  return {
    url: toUrl(`127.0.0.1:${primary.port},127.0.0.1:${standby.port}`, NAME),
    primaryUrl: () => toNodeUrl(primary),
    standbyUrl: () => toNodeUrl(standby),
    async failOver(beforePromotion = async () => {}) {
      const stopped = primary.server?.stop('immediate')
      if (pausedSender !== null) {
        // It ends without sending anything, because the shutdown's signal is handled first.
        await sleep(SHUTDOWN_SIGNAL_MS)
        process.kill(pausedSender, 'SIGCONT')
        pausedSender = null
      }
      await stopped
      await beforePromotion()
      await withNode(standby, sql => sql`select pg_promote(true, 60)`)
      const former = primary
      primary = standby
      standby = former
    },
    rejoin: addStandby,
    async pauseReplication() {
      pausedSender = await withNode(primary, async sql => {
        const [row] = await sql`select pid from pg_stat_replication`
        return Number(row?.pid)
      })
      process.kill(pausedSender, 'SIGSTOP')
    },
    stop: async mode => primary.server?.stop(mode),
    async start() {
      primary.server = await startPostgres({ dataDir: primary.folder, port: primary.port })
    },
    freeze() {
      if (primary.server) thaw = freezeFamily(primary.server.pid)
    },
    thaw: () => thaw(),
    async remove() {
      thaw()
      for (const { server } of [standby, primary]) await server?.stop('immediate')
      await rm(root, { recursive: true, force: true })
    },
  }
}

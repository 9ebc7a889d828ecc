import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apps } from '@pool/dev/build/apps'
import { bundle } from '@pool/dev/build/bundle'
import { freePort } from '@pool/dev/ports'
import { startPostgres } from '@pool/dev/postgres'
import { type NodeOptions, startNode } from '@pool/dev/process'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { migrateDatabase } from 'allocation-api/src/database/schema.ts'
import { countServerWork, type ServerCounts } from './server-counts.ts'

export interface Service extends AsyncDisposable {
  readonly port: number
  /** The port of the operator's address; null: it has none. */
  readonly operatorPort: number | null
  readonly pid: number
}

export interface SharedService extends AsyncDisposable {
  readonly port: number
  /** Absent: there are several. */
  readonly pid?: number
}

export interface Database extends AsyncDisposable {
  readonly url: string
  /** As many connections as the API has by default. */
  readonly sql: Sql
}

/** The witness, or a baseline that it is compared with. */
export type LeaseWorker = 'witness' | 'memory' | 'kv-only'

/** Accepted by every lease worker. */
export const LEASE_TOKEN = 'token-of-the-bench-0123456789abcdef'

/** The API's default. */
export const DATABASE_CONNECTIONS = 10

interface PostgresServer {
  readonly url: string
  readonly admin: Sql
  readonly version: string
  /** The file to which it logs; null: the server is not of this process. */
  readonly log: string | null
}

const WITHOUT_POSTGRES = 'a section uses Postgres without declaring it in `needs`'

const toEntry = (specifier: string): string => fileURLToPath(import.meta.resolve(specifier))

/** This checkout, or the folder of another one, whose services run from its own sources with its own dependencies. */
export type Checkout = string | null

const toServiceEntry = (checkout: Checkout, app: string, file: string): string =>
  checkout === null ? toEntry(`${app}/${file}`) : resolve(checkout, 'apps', app, file)

/** It ends with `cleanup`, also if it is still starting. */
const startOwnServer = async (cleanup: AsyncDisposableStack): Promise<{ url: string; log: string }> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'pool-bench-postgres-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const log = join(dataDir, 'statements.log')
  const starting = startPostgres({ dataDir, log })
  cleanup.defer(async () => (await starting.catch(() => undefined))?.stop('immediate'))
  return { url: (await starting).url, log }
}

/** What the targets run on. Everything that it starts ends with its cleanup. */
export class Environment {
  /** On the disk that everything here is stored on. */
  readonly folder: string
  /** Null: no section needs Postgres. */
  readonly postgresVersion: string | null
  readonly #postgres: PostgresServer | null
  readonly #cleanup: AsyncDisposableStack
  #databases = 0
  #logs = 0

  private constructor(folder: string, cleanup: AsyncDisposableStack, postgres: PostgresServer | null) {
    this.folder = folder
    this.#cleanup = cleanup
    this.#postgres = postgres
    this.postgresVersion = postgres?.version ?? null
  }

  /**
   * Starts Postgres, if a section needs it, with fsync as in production: without it a write costs a fraction. `existing` is
   * the URL of a server to use instead, as a role that can create databases. Everything is deferred to `cleanup` before the
   * first await, so an interrupt leaves nothing behind.
   */
  static async open(
    cleanup: AsyncDisposableStack,
    withPostgres: boolean,
    existing: string | null = null,
  ): Promise<Environment> {
    const folder = mkdtempSync(join(tmpdir(), 'pool-bench-'))
    cleanup.defer(() => rm(folder, { recursive: true, force: true }))
    if (!withPostgres) return new Environment(folder, cleanup, null)
    const { url, log } = existing === null ? await startOwnServer(cleanup) : { url: existing, log: null }
    const admin = createDatabaseClient(url, { maxConnections: 1, applicationName: 'bench' })
    const [row] = await admin<{ version: string }[]>`select current_setting('server_version') as version`
    return new Environment(folder, cleanup, { url, admin, log, version: row?.version ?? 'unknown' })
  }

  /** What the server does for the services that `work` starts and stops on a database that nothing else uses. */
  async countServerWork(databaseUrl: string, work: () => Promise<void>): Promise<ServerCounts> {
    if (!this.#postgres?.log) throw new Error('the log of another server is unknown')
    const { admin, log } = this.#postgres
    return await countServerWork({ admin, log }, new URL(databaseUrl).pathname.slice(1), work)
  }

  /** A new, empty database. The service applies its schema when it starts. */
  createDatabase(): Promise<string> {
    return this.#createDatabase('')
  }

  /** A new database with the schema of this checkout. */
  async createSchema(): Promise<Database> {
    const database = this.connect(await this.createDatabase())
    await migrateDatabase(database.sql)
    return database
  }

  /** A new database with the content of another one, to which nothing may be connected. */
  async copyDatabase(url: string): Promise<string> {
    return await this.#createDatabase(`template ${new URL(url).pathname.slice(1)} strategy file_copy`)
  }

  /** As `createSchema`, with nothing connected to it. */
  async createEmptySchema(): Promise<string> {
    await using database = await this.createSchema()
    return database.url
  }

  connect(url: string): Database {
    const sql = createDatabaseClient(url, { maxConnections: DATABASE_CONNECTIONS, applicationName: 'bench' })
    return { url, sql, [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) }
  }

  /**
   * The API with its default settings, except `env` and a reservation TTL that outlasts the run. Its log level stays
   * `info`: one line per request is part of the cost of a request. It logs to a file: with one connection, a pipe would
   * wake this process, which measures the latency, for each line.
   */
  startApi(
    databaseUrl: string,
    env: Readonly<Record<string, string>> = {},
    checkout: Checkout = null,
  ): Promise<Service> {
    return this.startApiFile(toServiceEntry(checkout, 'allocation-api', 'src/main.ts'), databaseUrl, env)
  }

  /** Processes of the API that share a port and a database. The id of a single one is known. */
  async startSharedApi(databaseUrl: string, processes: number): Promise<SharedService> {
    if (processes === 1) return await this.startApi(databaseUrl)
    const stack = new AsyncDisposableStack()
    const port = await freePort()
    for (let started = 0; started < processes; started += 1) {
      stack.use(await this.startApi(databaseUrl, { PORT: String(port), PDM_PROCESS_PORT: '0' }))
    }
    return { port, [Symbol.asyncDispose]: () => stack.disposeAsync() }
  }

  /** The API from a file, with the same settings. */
  startApiFile(entry: string, databaseUrl: string, env: Readonly<Record<string, string>>): Promise<Service> {
    this.#logs += 1
    return this.#start(
      entry,
      {
        PORT: '0',
        PDM_DATABASE_URL: databaseUrl,
        PDM_RESERVATION_TTL: '1h',
        DNSPROVIDER_KIND: 'local',
        ...env,
      },
      { readyFrom: 'ipc', logFile: join(this.folder, `api-${this.#logs}.log`) },
    )
  }

  /** Bundles the API as for its image. Resolves with the file that starts it. */
  async bundleApi(): Promise<string> {
    const options = apps['allocation-api']
    if (!options) throw new Error('no build of allocation-api is defined')
    const outDir = join(this.folder, 'bundle')
    await bundle({ ...options, outDir })
    return join(outDir, 'main.js')
  }

  /** The witness on Postgres, with its default settings except the request limit. */
  startPostgresWitness(databaseUrl: string): Promise<Service> {
    return this.#start(toEntry('lease-witness/src/node/main.ts'), {
      PORT: '0',
      WITNESS_DATABASE_URL: databaseUrl,
      BEARER_TOKENS_CSV: LEASE_TOKEN,
      MAX_REQUESTS_PER_MINUTE: '0',
    })
  }

  /** The lowest cost of a request on the same framework, adapter and runtime. */
  startHonoFloor(): Promise<Service> {
    return this.#start(toEntry('./hono-floor.ts'), {})
  }

  /** The fastest possible start. */
  startBareNode(): Promise<Service> {
    return this.#start(toEntry('./bare-node.ts'), {})
  }

  /**
   * A lease worker under workerd with new storage. The witness has its default settings, without the request limit of
   * its token: it logs as in production, and this process reads the lines as a log collector would. It is stopped, never killed: a kill would leave workerd running.
   */
  startLeaseWorker(worker: LeaseWorker, checkout: Checkout = null): Promise<Service> {
    const env = {
      PORT: '0',
      BEARER_TOKENS_CSV: LEASE_TOKEN,
      MAX_REQUESTS_PER_MINUTE: '0',
      DATA_DIR: mkdtempSync(join(this.folder, `${worker}-`)),
    }
    return worker === 'witness'
      ? this.#start(toServiceEntry(checkout, 'lease-witness', 'local/main.ts'), env, { canBeKilled: false })
      : this.#start(toEntry('./lease-baselines/main.ts'), { ...env, WORKER: `${worker}.toml` }, { canBeKilled: false })
  }

  /** The witness with counters of what Cloudflare bills. */
  startCountedWitness(): Promise<Service> {
    const env = {
      PORT: '0',
      BEARER_TOKENS_CSV: LEASE_TOKEN,
      MAX_REQUESTS_PER_MINUTE: '0',
      DATA_DIR: mkdtempSync(join(this.folder, 'counted-')),
      WORKER: '../lease-cost/counted.toml',
    }
    return this.#start(toEntry('./lease-baselines/main.ts'), env, { canBeKilled: false })
  }

  /** The witness, to which a profiler can connect. */
  async startProfiledWitness(): Promise<Service & { readonly inspectorPort: number }> {
    const inspectorPort = await freePort()
    const env = {
      PORT: '0',
      BEARER_TOKENS_CSV: LEASE_TOKEN,
      MAX_REQUESTS_PER_MINUTE: '0',
      DATA_DIR: mkdtempSync(join(this.folder, 'profiled-')),
      WORKER: '../../../../../../wrangler.toml',
      INSPECTOR_PORT: String(inspectorPort),
    }
    const service = await this.#start(toEntry('./lease-baselines/main.ts'), env, { canBeKilled: false })
    return { ...service, inspectorPort, [Symbol.asyncDispose]: () => service[Symbol.asyncDispose]() }
  }

  /** Defers the end of what a section starts itself. */
  defer(stop: () => Promise<void>): void {
    this.#cleanup.defer(stop)
  }

  async #createDatabase(options: string): Promise<string> {
    if (!this.#postgres) throw new Error(WITHOUT_POSTGRES)
    this.#databases += 1
    const name = `bench_${process.pid}_${this.#databases}`
    const { admin, log } = this.#postgres
    await admin.unsafe(`create database ${name} ${options}`)
    // An own server ends with its databases.
    if (log === null) this.#cleanup.defer(async () => void (await admin.unsafe(`drop database ${name} with (force)`)))
    return Object.assign(new URL(this.#postgres.url), { pathname: `/${name}` }).href
  }

  async #start(
    entry: string,
    env: Record<string, string>,
    { canBeKilled = true, ...options }: Pick<NodeOptions, 'readyFrom' | 'logFile'> & { canBeKilled?: boolean } = {},
  ): Promise<Service> {
    const child = startNode({ entry, env, ...options })
    this.#cleanup.defer(async () => void (await (canBeKilled ? child.kill() : child.stop())))
    const { port, operatorPort } = await child.ready
    if (typeof port !== 'number') throw new Error(`${entry} did not log the port that it listens on`)
    const operator = { operatorPort: typeof operatorPort === 'number' ? operatorPort : null }
    return { port, ...operator, pid: child.pid, [Symbol.asyncDispose]: async () => void (await child.stop()) }
  }
}

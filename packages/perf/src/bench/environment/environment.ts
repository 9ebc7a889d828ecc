import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { apps } from '@pool/dev/build/apps'
import { bundle } from '@pool/dev/build/bundle'
import { startPostgres } from '@pool/dev/postgres'
import { type NodeOptions, startNode } from '@pool/dev/process'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { migrateDatabase } from 'allocation-api/src/database/schema.ts'

export interface Service extends AsyncDisposable {
  readonly port: number
  readonly pid: number
}

export interface Database extends AsyncDisposable {
  readonly url: string
  /** As many connections as the API has by default. */
  readonly sql: Sql
}

/** Accepted by every witness. */
export const LEASE_TOKEN = 'token-of-the-bench-0123456789abcdef'

/** The API's default. */
const DATABASE_CONNECTIONS = 10

/** Another folder with this project, whose services run from its own sources with its own dependencies; null: this one. */
export type Checkout = string | null

const toEntry = (specifier: string): string => fileURLToPath(import.meta.resolve(specifier))

const toServiceEntry = (checkout: Checkout, app: string, file: string): string =>
  checkout === null ? toEntry(`${app}/${file}`) : resolve(checkout, 'apps', app, file)

/** It ends with `cleanup`, also if it is still starting. */
const startOwnServer = async (cleanup: AsyncDisposableStack): Promise<string> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'pool-bench-postgres-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const starting = startPostgres({ dataDir })
  cleanup.defer(async () => (await starting.catch(() => undefined))?.stop('immediate'))
  return (await starting).url
}

/** What the targets run on. Everything that it starts ends with its cleanup. */
export class Environment {
  /** On the disk that everything here is stored on. */
  readonly folder: string
  readonly postgresVersion: string
  readonly #admin: Sql
  readonly #url: string
  /** Whether the databases must be dropped: an own server ends with them. */
  readonly #isForeign: boolean
  readonly #cleanup: AsyncDisposableStack
  #databases = 0
  #logs = 0

  private constructor(
    cleanup: AsyncDisposableStack,
    folder: string,
    server: { readonly url: string; readonly admin: Sql; readonly version: string; readonly isForeign: boolean },
  ) {
    this.#cleanup = cleanup
    this.folder = folder
    this.#url = server.url
    this.#admin = server.admin
    this.#isForeign = server.isForeign
    this.postgresVersion = server.version
  }

  /**
   * Starts Postgres with fsync as in production: without it a write costs a fraction. `existing` is the URL of a server to use
   * instead, as a role that can create databases. Everything is deferred to `cleanup` before the first await, so an interrupt
   * leaves nothing behind.
   */
  static async open(cleanup: AsyncDisposableStack, existing: string | null = null): Promise<Environment> {
    const folder = mkdtempSync(join(tmpdir(), 'pool-bench-'))
    cleanup.defer(() => rm(folder, { recursive: true, force: true }))
    const url = existing ?? (await startOwnServer(cleanup))
    const admin = createDatabaseClient(url, { maxConnections: 1, applicationName: 'bench' })
    const [row] = await admin<{ version: string }[]>`select current_setting('server_version') as version`
    return new Environment(cleanup, folder, {
      url,
      admin,
      version: row?.version ?? 'unknown',
      isForeign: existing !== null,
    })
  }

  /** A new, empty database. The service applies its schema when it starts. */
  async createDatabase(): Promise<string> {
    this.#databases += 1
    const name = `bench_${process.pid}_${this.#databases}`
    await this.#admin.unsafe(`create database ${name}`)
    if (this.#isForeign)
      this.#cleanup.defer(async () => void (await this.#admin.unsafe(`drop database ${name} with (force)`)))
    return Object.assign(new URL(this.#url), { pathname: `/${name}` }).href
  }

  /** A new database with the schema of this checkout. */
  async createSchema(): Promise<Database> {
    const url = await this.createDatabase()
    const sql = createDatabaseClient(url, { maxConnections: DATABASE_CONNECTIONS, applicationName: 'bench' })
    await migrateDatabase(sql)
    return { url, sql, [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) }
  }

  startApi(databaseUrl: string, checkout: Checkout = null): Promise<Service> {
    return this.startApiFile(toServiceEntry(checkout, 'allocation-api', 'src/main.ts'), databaseUrl)
  }

  /**
   * The API from a file, with its default settings, except `env` and a reservation TTL that outlasts the run. Its log level stays
   * `info`: one line per request is part of the cost of a request. It logs to a file: with one connection, a pipe would
   * wake this process, which measures the latency, for each line.
   */
  startApiFile(entry: string, databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<Service> {
    this.#logs += 1
    return this.#start(
      entry,
      { PORT: '0', PDM_DATABASE_URL: databaseUrl, PDM_RESERVATION_TTL: '1h', DNSPROVIDER_KIND: 'local', ...env },
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

  /** The lowest cost of a request on the same framework, adapter and runtime. */
  startHonoFloor(): Promise<Service> {
    return this.#start(toEntry('./hono-floor.ts'), {})
  }

  /** The fastest possible start. */
  startBareNode(): Promise<Service> {
    return this.#start(toEntry('./bare-node.ts'), {})
  }

  /** The witness on Postgres, with its default settings except the request limit. */
  async startPostgresWitness(checkout: Checkout = null): Promise<Service> {
    const entry = toServiceEntry(checkout, 'lease-witness', 'src/node/main.ts')
    return this.#start(entry, { ...this.#witnessEnv(), WITNESS_DATABASE_URL: await this.createDatabase() })
  }

  /** The witness under workerd with new storage. It logs as in production, and this process reads the lines as a log collector would. */
  startWorkerdWitness(checkout: Checkout = null): Promise<Service> {
    return this.#startWorkerd(toServiceEntry(checkout, 'lease-witness', 'local/main.ts'))
  }

  /** The witness under workerd with counters of what Cloudflare bills. */
  startCountedWitness(): Promise<Service> {
    return this.#startWorkerd(toEntry('./lease-cost/main.ts'))
  }

  /** Defers the end of what a section starts itself. */
  defer(stop: () => Promise<void>): void {
    this.#cleanup.defer(stop)
  }

  #witnessEnv(): Record<string, string> {
    return { PORT: '0', BEARER_TOKENS_CSV: LEASE_TOKEN, MAX_REQUESTS_PER_MINUTE: '0' }
  }

  /** It is stopped, never killed: a kill would leave workerd running. */
  #startWorkerd(entry: string): Promise<Service> {
    const env = { ...this.#witnessEnv(), DATA_DIR: mkdtempSync(join(this.folder, 'witness-')) }
    return this.#start(entry, env, { canBeKilled: false })
  }

  async #start(
    entry: string,
    env: Record<string, string>,
    { canBeKilled = true, ...options }: Pick<NodeOptions, 'readyFrom' | 'logFile'> & { canBeKilled?: boolean } = {},
  ): Promise<Service> {
    const child = startNode({ entry, env, ...options })
    this.#cleanup.defer(async () => void (await (canBeKilled ? child.kill() : child.stop())))
    const { port } = await child.ready
    if (typeof port !== 'number') throw new Error(`${entry} did not log the port that it listens on`)
    return { port, pid: child.pid, [Symbol.asyncDispose]: async () => void (await child.stop()) }
  }
}

import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { acquireLock, type Lock } from '@pool/dev/lock'
import { ensureDatabase, type Postgres, startPostgres } from '@pool/dev/postgres'
import { findBinaries } from '@pool/dev/postgres/binaries'
import postgres from 'postgres'
import type { ServiceSpec } from '../protocol.ts'
import { artifacts } from './artifacts.ts'
import { toClockScript } from './database-clock.ts'

/**
 * A database cluster with the schema of a service. To create one takes seconds, so the first start keeps a copy, the template,
 * and each later start copies that. A template is used for one schema, one version of Postgres and one user.
 */

const DATABASE = 'service'
/** Each start copies fewer files without them. */
const DROP_UNUSED = [
  'drop database postgres',
  "update pg_database set datistemplate = false where datname = 'template0'",
  'drop database template0',
]
const LOCK_POLL_MS = 50
/** What a template contains. Another text makes the older ones unused. */
const TEMPLATE_CONTENT = 'the schema only'

/** Another process creates the template meanwhile, or hangs. */
const LOCK_TIMEOUT_MS = 60_000

/** Identifies the schema of a service. */
const hashMigrations = async (kind: ServiceSpec['kind']): Promise<string> => {
  const folder = artifacts.migrations[kind]
  const hash = createHash('sha256')
  for (const file of (await readdir(folder)).sort()) hash.update(file).update(await readFile(join(folder, file)))
  return hash.digest('hex')
}

const copyFolder = async (from: string, to: string): Promise<void> => {
  // Keeps the owner, which is not this user if this process runs as root.
  await promisify(execFile)('cp', ['-pPR', from, to])
}

const isWritable = (folder: string): boolean => {
  try {
    mkdirSync(folder, { recursive: true })
    acquireLock(join(folder, `.writable-${randomUUID()}`)).release()
    return true
  } catch {
    return false
  }
}

const user = process.getuid?.() ?? 'user'
/** Where the templates are if nothing else is writable. The host sets another TMPDIR for its servers later. */
const temporaryFolder = join(tmpdir(), `pool-testing-templates-${user}`)

/** The folder of the templates: POOL_TESTING_CACHE, a folder in this package, or a temporary one. */
const findCacheFolder = (): string =>
  [process.env.POOL_TESTING_CACHE, artifacts.cacheFolder].filter(folder => folder !== undefined).find(isWritable) ??
  temporaryFolder

/** Waits while another process creates the template. */
const lockTemplate = async (template: string): Promise<Lock | undefined> => {
  const end = performance.now() + LOCK_TIMEOUT_MS
  for (;;) {
    try {
      return acquireLock(`${template}.lock`)
    } catch (error) {
      if (existsSync(template) || performance.now() > end) return undefined
      if (!(error instanceof Error && error.name === 'UserError')) throw error
    }
    await sleep(LOCK_POLL_MS)
  }
}

export interface Database {
  readonly url: string
  readonly stop: () => Promise<void>
}

const toDatabase = (server: Postgres): Database => ({
  url: Object.assign(new URL(server.url), { pathname: `/${DATABASE}` }).href,
  stop: () => server.stop('immediate'),
})

const runScript = async (url: string, script: string): Promise<void> => {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  await sql.unsafe(script).simple()
  await sql.end({ timeout: 1 })
}

/**
 * Starts a Postgres server in `folder` with an empty database of the service, whose clock can be moved.
 *
 * @param createSchema Called at the first start only. Must leave no connection open.
 */
export const startDatabase = async (
  kind: ServiceSpec['kind'],
  folder: string,
  createSchema: (url: string) => Promise<void>,
): Promise<Database> => {
  const clockScript = toClockScript(DATABASE)
  const start = () => startPostgres({ dataDir: folder, fsync: false })

  const cacheFolder = findCacheFolder()
  mkdirSync(cacheFolder, { recursive: true })

  const createTemplate = async (template: string): Promise<void> => {
    const server = await start()
    try {
      const url = await ensureDatabase(server.url, DATABASE)
      // The schema must be created with it: see toClockScript.
      await runScript(url, clockScript)
      await createSchema(url)
      for (const statement of DROP_UNUSED) await runScript(url, statement)
    } finally {
      await server.stop('fast')
    }
    // What a process that was killed here has left.
    const incomplete = (await readdir(cacheFolder)).filter(name => name.startsWith(`${basename(template)}.copy-`))
    for (const name of incomplete) await rm(join(cacheFolder, name), { recursive: true, force: true })
    const copy = `${template}.copy-${randomUUID()}`
    await copyFolder(folder, copy)
    // Another process may have been faster.
    await rename(copy, template).catch(() => rm(copy, { recursive: true, force: true }))
  }

  const hash = createHash('sha256')
    .update(TEMPLATE_CONTENT)
    .update(await hashMigrations(kind))
    .update(clockScript)
    .update(DROP_UNUSED.join())
    .update(findBinaries().version)
  const template = join(cacheFolder, `${kind}-${hash.digest('hex').slice(0, 16)}-${user}`)
  const lock = existsSync(template) ? undefined : await lockTemplate(template)
  try {
    if (existsSync(template)) await copyFolder(template, folder)
    else await createTemplate(template)
  } finally {
    lock?.release()
  }
  return toDatabase(await start())
}

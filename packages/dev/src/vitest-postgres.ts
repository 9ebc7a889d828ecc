import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from './postgres.ts'

interface SharedServer {
  users: number
  stop: () => Promise<void>
}

const sharedServer: unique symbol = Symbol.for('pool-test-postgres')
/** vitest loads this module again for each project, so that the server is kept in the global object. */
const shared: typeof globalThis & { [sharedServer]?: SharedServer } = globalThis

/**
 * Global setup of vitest: one Postgres for all test files of a run, in PDM_TEST_DSN. Each file creates its own databases.
 * fsync is off, because test data need not survive a power failure.
 *
 * The order in which vitest sets up its projects differs from run to run. The server therefore stops with the last project
 * that uses it, not with the project that started it.
 */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env.PDM_TEST_DSN && !shared[sharedServer]) return undefined
  const server = shared[sharedServer] ?? (await startServer())
  shared[sharedServer] = server
  server.users += 1
  return async () => {
    server.users -= 1
    if (server.users === 0) await server.stop()
  }
}

const startServer = async (): Promise<SharedServer> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'pool-test-postgres-'))
  const postgres = await startPostgres({ dataDir, fsync: false })
  process.env.PDM_TEST_DSN = postgres.url
  const stop = async () => {
    await postgres.stop('immediate')
    await rm(dataDir, { recursive: true, force: true })
  }
  return { users: 0, stop }
}

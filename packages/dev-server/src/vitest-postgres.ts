import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from './postgres.ts'

/**
 * Global setup of vitest: one Postgres for all test files of a run, in PDM_TEST_DSN. Each file creates its own databases.
 * fsync is off, because test data need not survive a power failure.
 */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env.PDM_TEST_DSN) return undefined
  const dataDir = await mkdtemp(join(tmpdir(), 'pool-test-postgres-'))
  const postgres = await startPostgres({ dataDir, fsync: false })
  process.env.PDM_TEST_DSN = postgres.url
  return async () => {
    await postgres.stop('immediate')
    await rm(dataDir, { recursive: true, force: true })
  }
}

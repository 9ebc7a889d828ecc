import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AllocationClient } from '@pool/client'
import { LeaseClient } from '@pool/client/leases'
import { startAllocationApi, startWitness, type TestAllocationApi, type TestWitness } from '@pool/testing'
import postgres from 'postgres'
import { buildConsole } from '../../scripts/build.ts'

export interface ConsoleStack extends AsyncDisposable {
  readonly api: TestAllocationApi
  readonly witness: TestWitness
  /** Of the operator, with the token: the same API that the console uses. */
  readonly client: AllocationClient
  readonly leases: LeaseClient
  readonly sql: postgres.Sql
}

/** Builds the console, and starts the API that serves it, with Postgres, a DNS server and a witness. */
export const startConsoleStack = async (env: Readonly<Record<string, string>> = {}): Promise<ConsoleStack> => {
  const cleanup = new AsyncDisposableStack()
  try {
    const folder = await mkdtemp(join(tmpdir(), 'console-'))
    cleanup.defer(() => rm(folder, { recursive: true, force: true }))
    await buildConsole(folder)
    const witness = cleanup.use(await startWitness())
    const api = cleanup.use(
      await startAllocationApi({
        env: {
          PDM_TEST_SETTINGS: JSON.stringify({ consoleFolder: folder, publicPools: true }),
          PDM_WITNESS_URL: witness.url,
          PDM_WITNESS_TOKEN: witness.token,
          PDM_NAME_COOL_OFF: '1h',
          ...env,
        },
      }),
    )
    const sql = postgres(api.databaseUrl, { max: 2, onnotice: () => undefined })
    cleanup.defer(() => sql.end({ timeout: 1 }))
    return {
      api,
      witness,
      client: new AllocationClient({ baseUrl: api.operatorUrl, token: api.operatorToken }),
      leases: new LeaseClient({ baseUrl: witness.url, token: witness.token }),
      sql,
      [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
    }
  } catch (error) {
    await cleanup.disposeAsync()
    throw error
  }
}

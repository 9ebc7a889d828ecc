import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { createDatabaseClient } from '@pool/runtime/database/client'

/** Has access to every route of the operator listener. */
export const OPERATOR_TOKEN = 'operator-token-of-the-tests-0123456789abcdef'

export interface TestApi extends AsyncDisposable {
  readonly url: string
  readonly operatorUrl: string
}

const runOnServer = async (dsn: string, statement: string): Promise<void> => {
  const sql = createDatabaseClient(dsn, { maxConnections: 1, applicationName: 'client-tests' })
  await sql.unsafe(statement)
  await sql.end()
}

/** Starts the allocation API on a database of its own. */
export const startTestApi = async (): Promise<TestApi> => {
  const dsn = process.env.PDM_TEST_DSN
  if (!dsn) throw new Error('PDM_TEST_DSN is not set. Run `npx -y pnpm@12 test`, which starts a Postgres.')
  const name = `client_${randomBytes(8).toString('hex')}`
  await runOnServer(dsn, `create database ${name}`)
  const api = startNode({
    entry: fileURLToPath(import.meta.resolve('allocation-api/src/main.ts')),
    env: {
      PORT: '0',
      PDM_OPERATOR_PORT: '0',
      PDM_OPERATOR_TOKENS: OPERATOR_TOKEN,
      PDM_DATABASE_URL: Object.assign(new URL(dsn), { pathname: `/${name}` }).href,
      DNSPROVIDER_KIND: 'local',
      DNSPROVIDER_RECORD_NAMES: '@,*',
    },
  })
  const stop = async (): Promise<void> => {
    await api.stop()
    await runOnServer(dsn, `drop database ${name} with (force)`)
  }
  try {
    const { port, operatorPort } = await api.ready
    return {
      url: `http://127.0.0.1:${port}`,
      operatorUrl: `http://127.0.0.1:${operatorPort}`,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

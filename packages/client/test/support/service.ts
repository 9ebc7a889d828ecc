import { randomBytes } from 'node:crypto'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { startApi } from '@pool/test-kit/services.ts'

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
  const env = { PDM_OPERATOR_TOKENS: OPERATOR_TOKEN, DNSPROVIDER_RECORD_NAMES: '@,*' }
  const drop = () => runOnServer(dsn, `drop database ${name} with (force)`)
  try {
    const api = await startApi(Object.assign(new URL(dsn), { pathname: `/${name}` }).href, env)
    return {
      url: api.url,
      operatorUrl: api.operatorUrl ?? '',
      async [Symbol.asyncDispose]() {
        await api.process.stop()
        await drop()
      },
    }
  } catch (error) {
    await drop()
    throw error
  }
}

import { resolve } from 'node:path'
import { type NodeProcess, startNode } from '@pool/dev/process'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'

/** The file of a command of the witness on Postgres: its source, or with TEST_BUNDLES=1 what the last build made of it. */
export const toEntry = (command: string): string =>
  resolve(
    import.meta.dirname,
    process.env.TEST_BUNDLES === '1' ? `../../../dist-node/${command}.js` : `../../../src/node/${command}.ts`,
  )

export interface Replica extends AsyncDisposable {
  readonly port: number
  readonly process: NodeProcess
}

/** The witness as `pnpm --filter lease-witness start:postgres` runs it. Without a request limit, because a test is one client. */
export const startReplica = async (
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Replica> => {
  const process = startNode({
    entry: toEntry('main'),
    env: {
      PORT: '0',
      WITNESS_DATABASE_URL: databaseUrl,
      BEARER_TOKENS_CSV: TOKEN,
      MAX_REQUESTS_PER_MINUTE: '0',
      LOG_LEVEL: 'info',
      ...env,
    },
  })
  const { port } = await process.ready
  if (typeof port !== 'number') throw new Error('the ready line of the witness has no port')
  return { port, process, [Symbol.asyncDispose]: async () => void (await process.stop()) }
}

/** Starts two replicas on a database. */
export const startReplicas = async (databaseUrl: string) => {
  const replicas = await Promise.all([startReplica(databaseUrl), startReplica(databaseUrl)])
  return {
    replicas,
    ports: replicas.map(({ port }) => port),
    [Symbol.asyncDispose]: async () => void (await Promise.all(replicas.map(({ process }) => process.stop()))),
  }
}

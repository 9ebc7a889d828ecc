import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AllocationClient } from '@pool/client'
import { LeaseClient } from '@pool/client/leases'
import { freePort } from '@pool/dev-server/ports'
import { type NodeProcess, startNode } from '@pool/dev-server/process'
import { startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { startWitness } from '@pool/testing'
import postgres from 'postgres'
import type { SeedTarget } from './seed.ts'
import { buildTestConsole, startStorage } from './suite.ts'

const entry = fileURLToPath(import.meta.resolve('allocation-api/src/main.ts'))

/** Resolves to this machine in the browser of the tests. Over plain HTTP, a page of such a host has no secure context. */
export const CONSOLE_HOST = 'console.test'
const SEED_TOKEN = 'seed-token-0123456789-0123456789-abcdef'

/** What a write changes. Reads do not wait for this lock. */
const WRITTEN_TABLES = [
  'allocation_history',
  'bucket_claims',
  'deployment_history',
  'deployments',
  'dns_names',
  'dns_zone_locks',
  'idempotency_keys',
  'lineages',
  'pool_allocations',
]

/** The real processes, with a proxy on each way between them. */
export interface FaultStack extends SeedTarget, AsyncDisposable {
  /** Where the browser finds the console, without a path. It leads through `network`. */
  readonly origin: string
  readonly dnsServer: string
  /** Between the browser and the API. */
  readonly network: TcpProxy
  /** Between the API and the database. */
  readonly databaseLink: TcpProxy
  /** Between the API and the witness. */
  readonly witnessLink: TcpProxy
  /** The operator's token at the moment. Another one, which stays, is that of `client`. */
  readonly token: () => string
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  /** Starts the API with another token of the operator: the former one is no longer in its configuration. */
  readonly replaceToken: () => Promise<void>
  /** Makes every write wait, until the returned function is called. */
  readonly holdWrites: () => Promise<() => Promise<void>>
  /** Resolves when a statement of the API waits for a lock. */
  readonly untilWriteWaits: () => Promise<void>
  /** Resolves when no statement of a connection that the API has lost runs any more. */
  readonly untilLostStatementsEnd: () => Promise<void>
}

const toPort = (url: string): number => Number(new URL(url).port)
const withPort = (url: string, port: number): string => Object.assign(new URL(url), { port: String(port) }).href

export const startFaultStack = async (pools: readonly string[]): Promise<FaultStack> => {
  const cleanup = new AsyncDisposableStack()
  const startProxy = async (target: number): Promise<TcpProxy> => {
    const proxy = await startTcpProxy(target)
    cleanup.defer(() => proxy.close())
    return proxy
  }
  try {
    const folder = await buildTestConsole(cleanup)
    const witness = cleanup.use(await startWitness())
    const server = await startDedicatedPostgres()
    cleanup.defer(() => server.remove())
    const databaseUrl = await server.createDatabase()
    const databaseLink = await startProxy(server.port)
    const witnessLink = await startProxy(toPort(witness.url))
    const operatorPort = await freePort()
    const dnsPort = await freePort()
    const network = await startProxy(operatorPort)

    const storageEnv = await startStorage(cleanup)
    let generation = 1
    const token = () => `operator-token-${generation}-0123456789-0123456789`
    let api: NodeProcess | undefined
    const start = async () => {
      api = startNode({
        entry,
        readyFrom: 'ipc',
        env: {
          HOME: process.env.HOME,
          TMPDIR: folder,
          PORT: '0',
          PDM_OPERATOR_PORT: String(operatorPort),
          PDM_OPERATOR_TOKENS: `${SEED_TOKEN},${token()}`,
          PDM_DATABASE_URL: withPort(databaseUrl, databaseLink.port),
          PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
          PDM_CONSOLE_DIR: join(folder, 'console'),
          PDM_WITNESS_URL: withPort(witness.url, witnessLink.port),
          PDM_WITNESS_TOKEN: witness.token,
          PDM_NAME_COOL_OFF: '1h',
          PDM_DRIFT_INTERVAL: '24h',
          PDM_VALIDATION_ATTEMPTS: '1000',
          DNSPROVIDER_KIND: 'local',
          DNSPROVIDER_LOCAL_PORT: String(dnsPort),
          DNSPROVIDER_LOCAL_ANY_DOMAIN: 'true',
          DNSPROVIDER_MANAGED_DOMAINS: pools.join(),
          ...storageEnv,
        },
      })
      await api.ready
    }
    const kill = async () => {
      await api?.kill()
    }
    cleanup.defer(kill)
    await start()

    const sql = postgres(databaseUrl, { max: 8, onnotice: () => undefined, connection: { application_name: 'tests' } })
    cleanup.defer(() => sql.end({ timeout: 1 }))
    /** Of a connection, but not of this process. */
    const isOfApi = sql`datname = current_database() and application_name <> 'tests'`
    return {
      origin: `http://${CONSOLE_HOST}:${network.port}`,
      dnsServer: `127.0.0.1:${dnsPort}`,
      client: new AllocationClient({ baseUrl: `http://127.0.0.1:${operatorPort}`, token: SEED_TOKEN }),
      leases: new LeaseClient({ baseUrl: witness.url, token: witness.token }),
      sql,
      network,
      databaseLink,
      witnessLink,
      token,
      kill,
      start,
      replaceToken: async () => {
        await kill()
        generation += 1
        await start()
      },
      holdWrites: async () => {
        const held = await sql.reserve()
        await held`begin`
        await held.unsafe(`lock table ${WRITTEN_TABLES.join(', ')} in exclusive mode`)
        return async () => {
          await held`rollback`
          held.release()
        }
      },
      untilWriteWaits: async () => {
        await until('a write waits', async () => {
          const [row] = await sql`select from pg_stat_activity where ${isOfApi} and wait_event_type = 'Lock' limit 1`
          return row !== undefined
        })
      },
      untilLostStatementsEnd: async () => {
        await until('the statements of lost connections end', async () => {
          const [row] = await sql`select from pg_stat_activity where ${isOfApi} and state <> 'idle' limit 1`
          return row === undefined
        })
      },
      [Symbol.asyncDispose]: () => cleanup.disposeAsync(),
    }
  } catch (error) {
    await cleanup.disposeAsync()
    throw error
  }
}

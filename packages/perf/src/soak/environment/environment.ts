import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sql } from '@pool/runtime/database/client'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { type ReplicatedPostgres, startReplicatedPostgres } from '@pool/test-kit/replicated-postgres.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { migrateDatabase } from 'allocation-api/src/database/schema.ts'
import type { RecordTemplate } from 'allocation-api/src/dns/domain/target.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { LogSecretScanner } from './log-secrets.ts'
import { type Replica, startReplica } from './replica.ts'
import { startSoakWitness, type Witness } from './witness.ts'
import { LOWER_POOL, startZone, ZONE, type Zone } from './zone.ts'

export const REPLICAS = 3
/** Of the first replica. The others have another TTL, so that a republish changes records. */
export const RECORD_TEMPLATE: RecordTemplate = { names: ['@', '*'], ttl: 300 }
const OTHER_TTL_S = 240
export const COOL_OFF_MS = 2_000
/** Connections of each replica's pool. */
export const POOL_SIZE = 5

/** The whole system with the handles for observation and fault injection. */
export interface SoakEnvironment {
  readonly folder: string
  /** It has a standby only while one is about to be promoted. */
  readonly postgres: ReplicatedPostgres
  /** The observer's connections. Their proxy has no faults. */
  readonly sql: Sql
  readonly observerLink: TcpProxy
  readonly version: string
  readonly replicas: readonly Replica[]
  readonly operatorToken: string
  readonly zone: Zone
  readonly witness: Witness
  readonly scanner: LogSecretScanner
}

const settings = (folder: string, zone: Zone): Record<string, string> => ({
  ...zone.env,
  DNSPROVIDER_MANAGED_DOMAINS: `${ZONE},${LOWER_POOL}`,
  DNSPROVIDER_RECORD_NAMES: RECORD_TEMPLATE.names.join(),
  // Short, so that reservations expire many times in a run of a few minutes.
  PDM_RESERVATION_TTL: '5s',
  PDM_NAME_COOL_OFF: `${COOL_OFF_MS}ms`,
  PDM_RESERVATION_MAX_AGE: '60s',
  PDM_SWEEPER_INTERVAL: '1s',
  PDM_DNS_COMMIT_WAIT: '1s',
  PDM_DRIFT_INTERVAL: '3s',
  PDM_DATABASE_TIMEOUT: '3s',
  PDM_DATABASE_POOL_SIZE: String(POOL_SIZE),
  // Shared: a replica that resumes another's deployment finds its state.
  PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
})

/** Registers each resource with `cleanup` before the first wait, so that an interrupt leaves nothing behind. */
export const startSoakEnvironment = async (
  cleanup: AsyncDisposableStack,
  scanner: LogSecretScanner,
  invariants: InvariantChecker,
): Promise<SoakEnvironment> => {
  const folder = mkdtempSync(join(tmpdir(), 'pool-soak-'))
  chmodSync(folder, 0o755)
  cleanup.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  mkdirSync(join(folder, 'deployments'))
  const postgresStart = startReplicatedPostgres('synchronous', { withStandby: false })
  cleanup.defer(async () => (await postgresStart.catch(() => undefined))?.remove())
  const postgres = await postgresStart
  const url = postgres.primaryUrl()
  scanner.add('the database password', new URL(url).password)
  const port = Number(new URL(url).port)
  const observerLink = await startTcpProxy(port)
  cleanup.defer(() => observerLink.close())
  const observerUrl = Object.assign(new URL(url), { port: String(observerLink.port) }).href
  const sql = createDatabaseClient(observerUrl, { maxConnections: 2, applicationName: 'tests' })
  cleanup.defer(() => sql.end({ timeout: 1 }))
  await migrateDatabase(sql)
  await sql`create table soak_writes (at timestamptz default now())`
  const [row] = await sql<{ version: string }[]>`select current_setting('server_version') as version`
  const zone = await startZone(sql, scanner, cleanup)
  const operatorToken = randomBytes(24).toString('hex')
  scanner.add('the operator token', operatorToken)
  const env = settings(folder, zone)
  const database = { url, port }
  const [witness, ...replicas] = await Promise.all([
    startSoakWitness(folder, scanner, invariants, cleanup),
    ...Array.from({ length: REPLICAS }, (_, number) => {
      const ttl = number === 0 ? RECORD_TEMPLATE.ttl : OTHER_TTL_S
      const ownEnv = { ...env, DNSPROVIDER_RECORD_TTL: `${ttl}s` }
      return startReplica({ number, folder, database, operatorToken, env: ownEnv, scanner, invariants }, cleanup)
    }),
  ])
  const version = row?.version ?? 'unknown'
  return { folder, postgres, sql, observerLink, version, replicas, operatorToken, zone, witness, scanner }
}

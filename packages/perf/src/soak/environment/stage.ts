import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sql } from '@pool/database/client'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { applySchema } from 'allocation-api/src/database/migrate.ts'
import type { RecordTemplate } from 'allocation-api/src/dns/domain/rrset.ts'
import { type Replica, startReplica } from './replica.ts'
import type { SecretWatch } from './secrets.ts'
import { startWitness, type Witness } from './witness.ts'
import { startZone, ZONE, type Zone } from './zone.ts'

export const REPLICAS = 3
export const template: RecordTemplate = { names: ['@', '*'], ttl: 300 }
/** Connections for requests, of each replica. */
export const POOL_SIZE = 5

/** The whole system, and the doors through which it is looked at and hit. */
export interface SoakEnvironment {
  readonly folder: string
  readonly postgres: DedicatedPostgres
  /** Of the observer, past every proxy. */
  readonly sql: Sql
  readonly version: string
  readonly replicas: readonly Replica[]
  readonly operatorToken: string
  readonly zone: Zone
  readonly witness: Witness
}

const settings = (folder: string, zone: Zone): Record<string, string> => ({
  ...zone.env,
  DNSPROVIDER_MANAGED_DOMAINS: ZONE,
  DNSPROVIDER_RECORD_NAMES: template.names.join(),
  DNSPROVIDER_RECORD_TTL: `${template.ttl}s`,
  // Short, so that in a run of minutes everything ends by itself many times.
  PDM_RESERVATION_TTL: '5s',
  PDM_RESERVATION_MAX_AGE: '60s',
  PDM_SWEEPER_INTERVAL: '1s',
  PDM_DNS_COMMIT_WAIT: '1s',
  PDM_DRIFT_INTERVAL: '3s',
  PDM_DATABASE_TIMEOUT: '3s',
  PDM_DATABASE_POOL_SIZE: String(POOL_SIZE),
  // One folder on one machine: whoever takes up another's deployment finds its state.
  PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
})

/** Each thing is given to `cleanup` before anything is waited for, so that an interrupt leaves nothing. */
export const openEnvironment = async (
  cleanup: AsyncDisposableStack,
  watch: SecretWatch,
  onDefect: (what: string) => void,
): Promise<SoakEnvironment> => {
  const folder = mkdtempSync(join(tmpdir(), 'pool-soak-'))
  chmodSync(folder, 0o755)
  cleanup.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  mkdirSync(join(folder, 'deployments'))
  const starting = startDedicatedPostgres()
  cleanup.defer(async () => (await starting.catch(() => undefined))?.remove())
  const postgres = await starting
  watch.add('the database password', new URL(postgres.url).password)
  const sql = postgres.connect()
  await applySchema(sql)
  const [row] = await sql<{ version: string }[]>`select current_setting('server_version') as version`
  const zone = await startZone(sql, watch, cleanup)
  const operatorToken = randomBytes(24).toString('hex')
  watch.add('the operator token', operatorToken)
  const env = settings(folder, zone)
  const database = { url: postgres.url, port: postgres.port }
  const [witness, ...replicas] = await Promise.all([
    startWitness(folder, watch, cleanup, onDefect),
    ...Array.from({ length: REPLICAS }, (_, number) =>
      startReplica({ number, folder, database, operatorToken, env, watch, onDefect }, cleanup),
    ),
  ])
  return { folder, postgres, sql, version: row?.version ?? 'unknown', replicas, operatorToken, zone, witness }
}

import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import type { DnsProvider } from '../../../src/dns/provider.ts'
import { createZoneLocks, type ZoneLocks } from '../../../src/reconciler/zone-lock.ts'
import { createTestDatabase, type TestDatabase } from '../database.ts'
import { createTokenRepository, type TokenRepository } from '../token-repository.ts'
import type { StartZoneHost } from './hosts.ts'
import type { ZoneHost } from './zone-host.ts'

/** The connections of a replica. All interleavings of the worker reuse them. */
export interface ReplicaResources {
  readonly sql: Sql
  readonly zoneLocks: ZoneLocks
  readonly store: TokenRepository
  readonly provider: DnsProvider
}

/** Has its own database and provider account, and runs one interleaving after the other. */
export interface Worker extends AsyncDisposable {
  readonly database: TestDatabase
  readonly host: ZoneHost
  readonly replicas: readonly ReplicaResources[]
  /** Like `advance` of the database, but row by row: one statement for all rows could deadlock with a sync. */
  advance(ms: number): Promise<void>
}

/** Time to live of a reservation. */
export const RESERVATION_MS = 600_000
const TIMEOUT_MS = 20_000
const REPLICAS = 2

export const createWorker = async (startHost: StartZoneHost): Promise<Worker> => {
  await using cleanup = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 2 })
  cleanup.defer(() => database.drop())
  const host = cleanup.use(await startHost(database.sql))
  const replicas = Array.from({ length: REPLICAS }, (): ReplicaResources => {
    const sql = createDatabaseClient(database.url, {
      maxConnections: 2,
      applicationName: 'replica',
      maxStatementMs: TIMEOUT_MS,
    })
    const lockLimits = { waitMs: 10_000, idleTimeoutMs: 30_000, timeoutMs: TIMEOUT_MS }
    const zoneLocks = createZoneLocks(database.url, lockLimits, { silences: 0 })
    const reservation = { ttlMs: RESERVATION_MS, maxAgeMs: RESERVATION_MS }
    const provider = host.createProvider()
    cleanup.defer(async () => {
      await provider.close()
      await Promise.all([zoneLocks.close(), sql.end({ timeout: 1 })])
    })
    return {
      sql,
      zoneLocks,
      provider,
      store: createTokenRepository(sql, { reservation, timeoutMs: TIMEOUT_MS }),
    }
  })
  const { sql } = database
  const advance = async (ms: number) => {
    const shift = sql`${ms}::float8 * interval '1 millisecond'`
    await sql`
      update pool_allocations set
        reserved_at = reserved_at - ${shift}, expires_at = expires_at - ${shift}, committed_at = committed_at - ${shift}`
    await sql`update dns_zones set next_drift_check_at = next_drift_check_at - ${shift}`
    for (const { subdomain } of await sql<{ subdomain: string }[]>`select subdomain from dns_names`)
      await sql`
        update dns_names set
          next_attempt_at = next_attempt_at - ${shift}, changed_at = changed_at - ${shift},
          applied_at = applied_at - ${shift}
        where subdomain = ${subdomain}`
  }
  const ownedCleanup = cleanup.move()
  return { database, host, replicas, advance, [Symbol.asyncDispose]: () => ownedCleanup.disposeAsync() }
}

import { createDatabaseClient, type Sql } from '@pool/database/client'
import { type AllocationRepository, createAllocationRepository } from '../../../src/allocation/repository.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'
import { createZoneLocks, type ZoneLocks } from '../../../src/reconciler/zone-lock.ts'
import { createTestDatabase, type TestDatabase } from '../database.ts'
import type { StartZoneHost } from './hosts.ts'
import type { ZoneHost } from './zone-host.ts'

/** What a replica keeps from one interleaving to the next: its connections. */
export interface ReplicaBase {
  readonly sql: Sql
  readonly zoneLocks: ZoneLocks
  readonly store: AllocationRepository
  readonly provider: DnsProvider
}

/** A database and an account of its own, in which one interleaving comes after the other. */
export interface Worker extends AsyncDisposable {
  readonly database: TestDatabase
  readonly host: ZoneHost
  readonly bases: readonly ReplicaBase[]
  /** As the database's own `advance`, but row by row: a statement over many could wait for a pass that waits for it. */
  advance(ms: number): Promise<void>
}

const TIMEOUT_MS = 20_000
const REPLICAS = 2

export const createWorker = async (startHost: StartZoneHost): Promise<Worker> => {
  await using made = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 2 })
  made.defer(() => database.drop())
  const host = made.use(await startHost(database.sql))
  const bases = Array.from({ length: REPLICAS }, (): ReplicaBase => {
    const sql = createDatabaseClient(database.url, {
      maxConnections: 2,
      applicationName: 'replica',
      maxStatementMs: TIMEOUT_MS,
    })
    const claims = createZoneLocks(database.url, { waitMs: 10_000, idleTimeoutMs: 30_000, timeoutMs: TIMEOUT_MS })
    const provider = host.createProvider()
    made.defer(async () => {
      await provider.close()
      await Promise.all([claims.close(), sql.end({ timeout: 1 })])
    })
    return { sql, zoneLocks: claims, provider, store: createAllocationRepository(sql, { timeoutMs: TIMEOUT_MS }) }
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
  const kept = made.move()
  return { database, host, bases, advance, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}

import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { Caller } from '../../src/allocation/domain/types.ts'
import { type AllocationRepository, createAllocationRepository } from '../../src/allocation/repository.ts'
import { createRecords } from '../../src/dns/domain/rrset.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { FakeProvider } from './fake-provider.ts'
import { type Replica, type ReplicaOptions, startReplica } from './replica.ts'

export const poolDomain = 'pool.test'
export const template = { names: ['@', '*'], ttl: 60 }
const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }

/**
 * A database for the calling block of tests, and for each test a provider in memory, empty tables and as many replicas
 * as it asks for. Time is the test's to move.
 */
export const useDnsFixture = () => {
  let database: TestDatabase
  let store: AllocationRepository
  let provider: FakeProvider
  let aheadMs = 0
  const replicas: Replica[] = []

  beforeAll(async () => {
    database = await createTestDatabase()
    store = createAllocationRepository(database.sql, { timeoutMs: 5_000 })
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    provider = new FakeProvider()
    const { sql } = database
    await sql`alter table allocation_history disable trigger allocation_history_append_only`
    await sql`truncate pool_allocations, dns_names, dns_zones, allocation_history`
    await sql`alter table allocation_history enable trigger allocation_history_append_only`
  })
  afterEach(async () => {
    for (const one of replicas.splice(0)) await one.close()
  })

  return {
    get sql() {
      return database.sql
    },
    get provider() {
      return provider
    },
    replica(options: Partial<ReplicaOptions> = {}): Replica {
      const made = startReplica({ url: database.url, provider, aheadMs: () => aheadMs, ...options })
      replicas.push(made)
      return made
    },
    /** Lets time pass for the database's rows and for the replicas. */
    async advance(ms: number): Promise<void> {
      aheadMs += ms
      await database.advance(ms)
    },
    /** Commits a fresh reservation; what to wait for. */
    async activate(subdomain: string, address = '192.0.2.1', zone = poolDomain) {
      const fqdn = `${subdomain}.${zone}`
      const granted = await store.reserve({ poolDomain: zone, subdomain, createdBy: '' }, 600_000, caller)
      if (granted.kind !== 'granted') throw new Error(`${subdomain} is taken`)
      const { reservationToken } = granted
      const command = { poolDomain: zone, subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address }
      const committed = await store.commit(command, createRecords(fqdn, address, template), caller)
      if (committed.kind !== 'committed') throw new Error(committed.kind)
      return { zone, subdomain, version: committed.version }
    },
    async free(subdomain: string, zone = poolDomain) {
      const released = await store.release({ poolDomain: zone, subdomain }, caller)
      if (released.kind !== 'released' || released.version === null) throw new Error(released.kind)
      return { zone, subdomain, version: released.version }
    },
    /**
     * Between which seconds the pause after an attempt lies: it began while `attempt` ran, on the database's clock. There
     * is one name.
     */
    async pauseAfter(attempt: () => Promise<unknown>): Promise<{ readonly least: number; readonly most: number }> {
      const [begun] = await database.sql`select clock_timestamp()::text as at`
      await attempt()
      const [found] = await database.sql<[{ least: number; most: number }]>`
        select extract(epoch from next_attempt_at - clock_timestamp())::float8 as least,
          extract(epoch from next_attempt_at - ${begun?.at}::timestamptz)::float8 as most
        from dns_names`
      return found
    },
    async row(subdomain: string) {
      const [found] = await database.sql`
        select * from dns_names where zone = ${poolDomain} and subdomain = ${subdomain}`
      return found
    },
    /** Of one name, oldest first. */
    async events(subdomain: string): Promise<string[]> {
      const rows = await database.sql<{ event: string }[]>`
        select event from allocation_history where subdomain = ${subdomain} order by id`
      return rows.map(row => row.event)
    },
  }
}

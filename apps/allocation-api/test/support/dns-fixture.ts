import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { createRecords } from '../../src/dns/domain/rrset.ts'
import type { Caller } from '../../src/naming/caller.ts'
import { createTestDatabase, repositoryOptions, type TestDatabase, truncateAllocations } from './database.ts'
import { FakeProvider } from './fake-provider.ts'
import { type Replica, type ReplicaOptions, startReplica } from './replica.ts'
import { createTokenRepository, type TokenRepository } from './token-repository.ts'

export const poolDomain = 'pool.test'
export const template = { names: ['@', '*'], ttl: 60 }
const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }

/**
 * A database for the calling block of tests. Each test gets an in-memory provider and empty tables, starts replicas and
 * controls the time.
 */
export const useDnsFixture = () => {
  let database: TestDatabase
  let store: TokenRepository
  let provider: FakeProvider
  let aheadMs = 0
  const replicas: Replica[] = []

  beforeAll(async () => {
    database = await createTestDatabase()
    store = createTokenRepository(database.sql, repositoryOptions)
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    provider = new FakeProvider()
    await truncateAllocations(database.sql)
    await database.sql`truncate dns_zones, dns_zone_writes, pools`
  })
  afterEach(async () => {
    for (const replica of replicas.splice(0)) await replica.close()
  })

  return {
    get sql() {
      return database.sql
    },
    get url() {
      return database.url
    },
    get provider() {
      return provider
    },
    replica(options: Partial<ReplicaOptions> = {}): Replica {
      const replica = startReplica({ url: database.url, provider, aheadMs: () => aheadMs, ...options })
      replicas.push(replica)
      return replica
    },
    /** Advances the time of the database's rows and of the replicas. */
    async advance(ms: number): Promise<void> {
      aheadMs += ms
      await database.advance(ms)
    },
    /** Reserves and commits the name. Returns the version to wait for. */
    async activate(subdomain: string, address = '192.0.2.1', zone = poolDomain) {
      const fqdn = `${subdomain}.${zone}`
      const granted = await store.reserve({ poolDomain: zone, subdomain, createdBy: '' }, caller)
      if (granted.kind !== 'granted') throw new Error(`${subdomain} is not free`)
      const { reservationToken } = granted
      const command = { poolDomain: zone, subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address }
      const committed = await store.commit(command, createRecords(fqdn, address, template), caller)
      if (committed.kind !== 'committed') throw new Error(committed.kind)
      return { zone, subdomain, version: committed.version }
    },
    /** Changes the address of an active name. Returns the version to wait for. */
    async update(subdomain: string, address: string, zone = poolDomain) {
      const records = createRecords(`${subdomain}.${zone}`, address, template)
      const updated = await store.update({ poolDomain: zone, subdomain, loadBalancerIP: address }, records, caller)
      if (updated.kind !== 'updated' || updated.version === null) throw new Error(updated.kind)
      return { zone, subdomain, version: updated.version }
    },
    async release(subdomain: string, zone = poolDomain) {
      const released = await store.release({ poolDomain: zone, subdomain }, caller)
      if (released.kind !== 'released' || released.version === null) throw new Error(released.kind)
      return { zone, subdomain, version: released.version, isWithdrawal: true }
    },
    /**
     * Bounds, in seconds, of the pause that starts during `attempt`, on the clock of the database. The table must have
     * exactly one name.
     */
    async measurePause(attempt: () => Promise<unknown>): Promise<{ readonly min: number; readonly max: number }> {
      const [start] = await database.sql`select clock_timestamp()::text as at`
      await attempt()
      const [pause] = await database.sql<[{ min: number; max: number }]>`
        select extract(epoch from next_attempt_at - clock_timestamp())::float8 as min,
          extract(epoch from next_attempt_at - ${start?.at}::timestamptz)::float8 as max
        from dns_names`
      return pause
    },
    async row(subdomain: string) {
      const [found] = await database.sql`
        select * from dns_names where zone = ${poolDomain} and subdomain = ${subdomain}`
      return found
    },
    /** The history of a name, oldest first. */
    async events(subdomain: string): Promise<string[]> {
      const rows = await database.sql<{ event: string }[]>`
        select event from allocation_history where subdomain = ${subdomain} order by id`
      return rows.map(row => row.event)
    },
  }
}

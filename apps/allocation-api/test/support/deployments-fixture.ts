import { randomUUID } from 'node:crypto'
import { createDatabaseClient, type Sql } from '@pool/database/client'
import { isDatabaseUnavailable } from '@pool/database/errors'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import type { Caller } from '../../src/allocation/domain/types.ts'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { createAllocationService } from '../../src/allocation/service.ts'
import type { DeploymentSpec, ObjectStorageCredentials } from '../../src/deployments/domain/types.ts'
import { createDeploymentService, type Deployments, type DeploymentsOptions } from '../../src/deployments/service.ts'
import { createIdempotency } from '../../src/idempotency/idempotency.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { ScriptedInfrastructure } from './fake-provisioner.ts'

export const LEASE_MS = 30_000
export const TTL_MS = 600_000
export const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }
export const keys: ObjectStorageCredentials = {
  accessKey: 'marked-access-key-0',
  secretKey: 'marked-secret-key-of-forty-characters-00',
}

const managedDomains = ['pool.test']

/** An order for a name of the pool; without storage unless told otherwise. */
export const orderFor = (subdomain: string, more: Partial<DeploymentSpec> = {}): DeploymentSpec => ({
  orgName: 'Acme',
  orgEmail: 'ops@acme.test',
  sovereignFQDN: `${subdomain}.pool.test`,
  name: { poolDomain: 'pool.test', subdomain },
  providers: ['local'],
  region: 'fsn1',
  sshPublicKey: 'ssh-ed25519 AAAA',
  storage: null,
  ...more,
})

export const withStorage = (subdomain: string): DeploymentSpec =>
  orderFor(subdomain, { storage: { region: 'fsn1', bucket: `catalyst-${subdomain}-pool-test` } })

/** What a test sends in place of a request's body. */
export const asking = (order: DeploymentSpec): object => ({ order, keys: order.storage ? keys : null })

export interface Desk {
  readonly deployments: Deployments
  readonly infrastructure: ScriptedInfrastructure
  readonly errors: unknown[]
  /** Every statement of this replica from now on is never answered: as if the process had been killed. */
  kill(): void
  /** Statements fail, as they do while the database is away, until it is switched back. */
  setAway(isAway: boolean): void
}

class Away extends Error {
  readonly code = 'ECONNREFUSED'
}

/** A client whose statements can be held back or refused, whole ones only: a fragment goes through. */
const switched = (sql: Sql, mode: () => 'on' | 'away' | 'killed'): Sql =>
  new Proxy(sql, {
    apply(target, self, args) {
      const query = Reflect.apply(target as never, self, args) as PromiseLike<unknown> & object
      return new Proxy(query, {
        get(of, property) {
          const value = Reflect.get(of, property)
          if (property === 'then' && mode() === 'killed') return () => new Promise(() => {})
          if (property === 'then' && mode() === 'away') {
            return (_: unknown, reject: (error: Error) => void) => reject(new Away('away'))
          }
          return typeof value === 'function' ? value.bind(of) : value
        },
      })
    },
  })

export const useDeploymentsScene = () => {
  let database: TestDatabase
  let aheadMs = 0
  let clients: Sql[] = []

  beforeAll(async () => {
    database = await createTestDatabase({ connections: 4 })
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    const { sql } = database
    await sql`alter table allocation_history disable trigger allocation_history_append_only`
    await sql`truncate pool_allocations, dns_names, allocation_history, idempotency_keys, deployments, deployment_buckets cascade`
    await sql`alter table allocation_history enable trigger allocation_history_append_only`
  })
  afterEach(async () => {
    await Promise.all(clients.map(client => client.end({ timeout: 0 })))
    clients = []
  })

  return {
    get sql() {
      return database.sql
    },

    /** One replica's deployments, on infrastructure of its own. */
    desk(options: Partial<DeploymentsOptions> = {}): Desk {
      let mode: 'on' | 'away' | 'killed' = 'on'
      const client = createDatabaseClient(database.url, { maxConnections: 4, applicationName: 'desk' })
      clients.push(client)
      const sql = switched(client, () => mode)
      const timeoutMs = options.statementTimeoutMs ?? 5_000
      const repository = createAllocationRepository(sql, { timeoutMs })
      const idempotency = createIdempotency(sql, { timeoutMs, keyTtlMs: 86_400_000 })
      // That records come out is shown elsewhere, with the real thing.
      const waitUntilApplied = async () => ({ status: 'published' as const })
      const infrastructure = new ScriptedInfrastructure()
      const errors: unknown[] = []
      const deployments = createDeploymentService({
        sql,
        idempotency,
        allocations: createAllocationService({
          repository,
          countByState: repository.countByState,
          idempotency,
          waitUntilApplied,
          managedDomains,
          recordTemplate: { names: ['@'], ttl: 60 },
          bucketPrefix: 'catalyst',
          reservation: { ttlMs: TTL_MS, maxAgeMs: 86_400_000 },
          statementTimeoutMs: timeoutMs,
          now: () => performance.now(),
          onSwept: () => {},
        }),
        orderOf: body => ({
          kind: 'order',
          ...(body as { order: DeploymentSpec; keys: ObjectStorageCredentials | null }),
        }),
        validateKeys: async () => ({ kind: 'accepted', message: '' }),
        infrastructure,
        storage: { provider: 'hetzner', domain: 'storage.test' },
        atOnce: 4,
        statementTimeoutMs: timeoutMs,
        leaseMs: LEASE_MS,
        reservationTtlMs: TTL_MS,
        now: () => performance.now() + aheadMs,
        date: () => new Date(),
        newId: randomUUID,
        isUnavailable: isDatabaseUnavailable,
        onEnd: () => {},
        onError: (_, error) => errors.push(error),
        ...options,
      })
      return {
        deployments,
        infrastructure,
        errors,
        kill: () => {
          mode = 'killed'
        },
        setAway: isAway => {
          mode = isAway ? 'away' : 'on'
        },
      }
    },

    /** Lets time pass for the rows and for every desk. */
    async advance(ms: number): Promise<void> {
      aheadMs += ms
      await database.advance(ms)
    },
  }
}

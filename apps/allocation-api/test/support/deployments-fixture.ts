import type { Deployment } from '@pool/contract'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { toConnectionError } from '@pool/runtime/database/errors'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter } from '@pool/runtime/database/writer'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { createAllocationService } from '../../src/allocation/service.ts'
import type { CallerWithToken } from '../../src/deployments/commands/call.ts'
import { createSpecParser, type ValidSpec } from '../../src/deployments/domain/spec.ts'
import type { AccessKeyPair, DeploymentSpec } from '../../src/deployments/domain/types.ts'
import { createDomainProof } from '../../src/deployments/fqdn.ts'
import {
  createDeploymentService,
  type DeploymentService,
  type DeploymentServiceOptions,
} from '../../src/deployments/service.ts'
import { createIdempotency } from '../../src/idempotency/idempotency.ts'
import { type Caller, createPools } from '../../src/naming/naming.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { FakeProvisioner, FakeStates } from './fake-provisioner.ts'
import { endOpenTransactions } from './locks.ts'

export const LEASE_MS = 30_000
export const TTL_MS = 600_000
export const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }
/** An operator, who needs no token of the deployment. */
export const operator: CallerWithToken = {
  caller: { actor: 'operator', address: null, requestId: 'test' },
  token: undefined,
}
export const credentials: AccessKeyPair = {
  accessKey: 'marked-access-key-0',
  secretKey: 'marked-secret-key-of-forty-characters-00',
}

const pools = createPools(['pool.test'])

const tables = [
  ...['pool_allocations', 'dns_names', 'allocation_history', 'idempotency_keys'],
  ...['bucket_claims', 'domain_challenges', 'deployment_log_lines', 'deployment_history', 'deployments', 'lineages'],
]

/** A spec for a name of the pool, without object storage by default. */
export const specFor = (subdomain: string, more: Partial<DeploymentSpec> = {}): DeploymentSpec => ({
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
  specFor(subdomain, { storage: { region: 'fsn1', bucket: `catalyst-${subdomain}-pool-test` } })

/** The body of a request in these tests: the spec and its credentials. */
export const toBody = (spec: DeploymentSpec): object => ({ spec, credentials: spec.storage ? credentials : null })

/** The deployments of one replica of the service. */
export interface DeploymentReplica {
  readonly deployments: DeploymentService
  readonly provisioner: FakeProvisioner
  readonly errors: unknown[]
  /** From now on no statement of this replica is answered, as if its process had been killed. */
  kill(): void
  /** Kills the replica at its nth statement from now on, before the statement takes effect or after. Resolves then. */
  killAt(statement: number, effect: 'before' | 'after'): Promise<void>
  /** Kills the replica. Its connections end, or another replica gets them if it was not killed before. */
  close(): Promise<void>
  /** While unavailable, statements fail as if the database were down. */
  setDatabaseUnavailable(isUnavailable: boolean): void
}

/** `killed-unheard`: the statement takes effect, but its answer is never received. */
type Connectivity = 'connected' | 'unavailable' | 'killed' | 'killed-unheard'

/** A client whose statements can be left unanswered or rejected. Fragments are not statements. */
const withConnectivity = (sql: Sql, connectivity: () => Connectivity, onUnheard: () => void): Sql => {
  const toQuery = (query: PromiseLike<unknown> & object) =>
    new Proxy(query, {
      get(of, property) {
        const value = Reflect.get(of, property)
        if (property !== 'then') return typeof value === 'function' ? value.bind(of) : value
        const state = connectivity()
        if (state === 'killed') return () => new Promise(() => {})
        if (state === 'killed-unheard') {
          return () => {
            of.then(onUnheard, onUnheard)
            return new Promise(() => {})
          }
        }
        if (state === 'unavailable') {
          return (_: unknown, reject: (error: Error) => void) =>
            reject(toConnectionError(new Error('refused'), { hadSession: false }))
        }
        return typeof value === 'function' ? value.bind(of) : value
      },
    })
  return new Proxy(sql, {
    apply: (target, self, args) => toQuery(Reflect.apply(target as never, self, args)),
    get: (target, property) =>
      property === 'unsafe'
        ? (...args: Parameters<Sql['unsafe']>) => toQuery(target.unsafe(...args))
        : Reflect.get(target, property),
  })
}

export const useDeployments = () => {
  let database: TestDatabase
  let aheadMs = 0
  const replicas = new Set<DeploymentReplica>()
  /** Of replicas that were closed, for the next ones. */
  const idleClients: Sql[] = []
  let states = new FakeStates()

  beforeAll(async () => {
    database = await createTestDatabase({ connections: 4 })
  })
  afterAll(async () => {
    await Promise.all(idleClients.map(client => client.end({ timeout: 0 })))
    await database.drop()
  })
  beforeEach(async () => {
    // Without triggers, so that the histories can be cleared and no foreign key is checked; faster than truncate. The locks
    // wait for statements of the test before. Those lock the tables in another order, so one can deadlock with these.
    const clear = () =>
      database.sql.begin(sql => [
        sql`set local session_replication_role = replica`,
        sql`lock table ${sql(tables)} in share row exclusive mode`,
        ...tables.map(table => sql`delete from ${sql(table)}`),
      ])
    await clear().catch(error => {
      if (error.code !== '40P01') throw error
      return clear()
    })
    states = new FakeStates()
  })
  afterEach(async () => {
    // A lock that a failed test still holds would hold up every later one.
    await endOpenTransactions(database.sql)
    await Promise.all([...replicas].map(replica => replica.close()))
  })

  const fixture = {
    get sql() {
      return database.sql
    },

    /** The Terraform states, which all replicas share. */
    get states() {
      return states
    },

    replica(options: Partial<DeploymentServiceOptions> = {}): DeploymentReplica {
      let connectivity: Connectivity = 'connected'
      let remaining = Number.POSITIVE_INFINITY
      let effectOfLast: 'before' | 'after' = 'before'
      let onKilled = () => {}
      const countStatement = (): Connectivity => {
        remaining -= 1
        if (remaining > 0 || connectivity !== 'connected') return connectivity
        connectivity = 'killed'
        if (effectOfLast === 'after') return 'killed-unheard'
        onKilled()
        return 'killed'
      }
      const client =
        idleClients.pop() ?? createDatabaseClient(database.url, { maxConnections: 4, applicationName: 'replica' })
      const sql = withConnectivity(client, countStatement, () => onKilled())
      const timeoutMs = options.statementTimeoutMs ?? 5_000
      const reader = createAllocationReader(sql, { timeoutMs })
      const idempotency = createIdempotency(sql, { timeoutMs })
      // The statements for the clock are not counted.
      const writer = createWriter({ fast: sql, slow: sql, clock: createServerClock(client, { timeoutMs }), timeoutMs })
      // The end-to-end test publishes real records.
      const waitUntilApplied = async () => ({ status: 'published' as const })
      const provisioner = new FakeProvisioner(states)
      const errors: unknown[] = []
      const deployments = createDeploymentService({
        sql,
        readSql: sql,
        writer,
        idempotency,
        allocations: createAllocationService({
          repository: createAllocationRepository(writer, {
            reservation: { ttlMs: TTL_MS, maxAgeMs: 86_400_000 },
          }),
          reader,
          countByState: reader.countByState,
          idempotency,
          waitUntilApplied,
          pools: () => pools,
          recordTemplate: { names: ['@'], ttl: 60 },
          acceptsLoopback: true,
          canDelegate: true,
          bucketPrefix: 'catalyst',
          statementTimeoutMs: timeoutMs,
          now: () => performance.now(),
          onSwept: () => {},
        }),
        parseSpec: body => ({ kind: 'valid', ...(body as Omit<ValidSpec, 'kind'>) }),
        parseChange: createSpecParser({
          storageProvider: 'hetzner',
          knownProviders: ['local', 'hetzner'],
          bucketPrefix: 'catalyst',
          pools: () => pools,
        }).parseChange,
        validateKeys: async () => ({ kind: 'accepted', message: '' }),
        findBucket: async (_, bucket) => ({ kind: states.buckets.has(bucket) ? 'owned' : 'absent' }),
        acceptsTestAddresses: false,
        domainProof: createDomainProof({
          sql,
          isRequired: false,
          lookUpTxt: async () => ({ kind: 'absent' }),
          timeoutMs,
        }),
        provisioner,
        storage: { provider: 'hetzner', domain: 'storage.test' },
        maxConcurrentRuns: 4,
        statementTimeoutMs: timeoutMs,
        leaseMs: LEASE_MS,
        reservationTtlMs: TTL_MS,
        nameCoolOffMs: 0,
        now: () => performance.now() + aheadMs,
        observer: { onRunEnded: () => {}, onError: (_, error) => errors.push(error) },
        ...options,
      })
      const replica: DeploymentReplica = {
        deployments,
        provisioner,
        errors,
        kill: () => {
          connectivity = 'killed'
        },
        async close() {
          if (!replicas.delete(replica)) return
          const wasConnected = connectivity === 'connected'
          connectivity = 'killed'
          if (wasConnected) idleClients.push(client)
          else await client.end({ timeout: 0 })
        },
        killAt: (statement, effect) => {
          remaining = statement
          effectOfLast = effect
          return new Promise(resolve => {
            onKilled = resolve
          })
        },
        setDatabaseUnavailable: isUnavailable => {
          connectivity = isUnavailable ? 'unavailable' : 'connected'
        },
      }
      replicas.add(replica)
      return replica
    },

    /** Advances the clocks of the database and of every replica. */
    async advance(ms: number): Promise<void> {
      aheadMs += ms
      await database.advance(ms)
    },

    /** Lets all leases expire and starts a replica that claims their deployments. `result`: of every apply. */
    async takeOver(result: FakeProvisioner['result'] = null): Promise<DeploymentReplica> {
      await fixture.advance(LEASE_MS)
      const replica = fixture.replica()
      replica.provisioner.result = result
      // A row that the former run is writing is locked, and a later tick claims it.
      await until('the runs are claimed', async () => {
        await replica.deployments.tick()
        const left = await database.sql`
          select from deployments where finished_at is null and run_expires_at <= now()`
        return left.length === 0
      })
      return replica
    },

    async nameState(subdomain: string): Promise<string> {
      const [row] = await database.sql<{ state: string }[]>`
        select state from pool_allocations where subdomain = ${subdomain} and (state = 'active' or expires_at > now())`
      return row?.state ?? 'free'
    },
  }
  return fixture
}

export const createDeployment = async (
  replica: DeploymentReplica,
  spec: DeploymentSpec,
  key?: string,
): Promise<string> => {
  const outcome = await replica.deployments.create(toBody(spec), caller, key)
  if (outcome.kind !== 'created') throw new Error(outcome.kind)
  return outcome.id
}

export const readDeployment = async (replica: DeploymentReplica, id: string): Promise<Deployment> => {
  const found = await replica.deployments.get(id)
  if (found.kind !== 'found') throw new Error(found.kind)
  return found.deployment
}

export const removeDeployment = (replica: DeploymentReplica, id: string) =>
  replica.deployments.remove(id, false, operator)

/** The request of an apply or a destroy. */
export const toKeys = ({ storage }: DeploymentSpec): object =>
  storage ? { objectStorageAccessKey: credentials.accessKey, objectStorageSecretKey: credentials.secretKey } : {}

export const waitForApply = (replica: DeploymentReplica, n = 1) =>
  until(`apply ${n}`, () => replica.provisioner.applies[n - 1])

export const waitUntilFinished = (replica: DeploymentReplica, id: string) =>
  until('finished', async () => {
    const deployment = await readDeployment(replica, id)
    return deployment.finishedAt !== null && deployment
  })

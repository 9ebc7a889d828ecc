import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { createServerClock, type ServerClock } from '@pool/runtime/database/time'
import type { Writer } from '@pool/runtime/database/writer'
import { until } from '@pool/test-kit/poll.ts'
import type { TransactionSql } from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { type DeploymentRecord, toRecord } from '../../src/deployments/domain/spec.ts'
import { createDeploymentRepository, type DeploymentSituation } from '../../src/deployments/repository.ts'
import { createRunRepository } from '../../src/deployments/run-repository.ts'
import { planTarget } from '../../src/dns/domain/target.ts'
import { createClaim, type IdempotencyClaim } from '../../src/idempotency/idempotency.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { createTestDatabase, createTestWriter, repositoryOptions, type TestDatabase } from '../support/database.ts'
import { specFor } from '../support/deployments-fixture.ts'
import { countLockWaiters, type HeldLock, holdLock } from '../support/locks.ts'

const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'deadlines' }
const poolDomain = 'pool.test'
const address = '192.0.2.1'
const records = [{ name: 'x.pool.test', type: 'A', ttl: 300, values: [address] }]
const COOL_OFF_MS = 60_000
const tokenHash = Buffer.alloc(32, 7)

/** The deadline passes while the write waits. Its lock waits have no such limit. */
const LATE_MS = 150

interface Case {
  readonly write: string
  readonly row: string
  readonly setUp: (name: string) => Promise<unknown>
  readonly lock: (tx: TransactionSql<{ int8: number }>, name: string) => PromiseLike<unknown>
  readonly execute: (name: string) => Promise<unknown>
}

describe('a write that gets its lock after its deadline has no effect', () => {
  let database: TestDatabase
  let client: Sql
  let clock: ServerClock
  let lateWriter: Writer
  let deadline = 0
  const times = { timeoutMs: 5_000, leaseMs: 30_000, coolOffMs: COOL_OFF_MS }

  beforeAll(async () => {
    database = await createTestDatabase()
    client = createDatabaseClient(database.url, { maxConnections: 4, applicationName: 'late' })
    clock = createServerClock(database.sql, repositoryOptions)
    const lateClock: ServerClock = {
      toServerDeadline: () => clock.toServerDeadline(deadline),
      reset: () => clock.reset(),
    }
    lateWriter = createTestWriter(client, repositoryOptions, lateClock)
  })
  afterAll(async () => {
    await client.end({ timeout: 1 })
    await database.drop()
  })

  const options = { ...repositoryOptions, coolOffMs: COOL_OFF_MS }
  const inTime = () => createAllocationRepository(createTestWriter(database.sql), options)
  const late = () => createAllocationRepository(lateWriter, options)
  const deploymentsInTime = () => createDeploymentRepository(database.sql, createTestWriter(database.sql), times)
  const lateDeployments = () => createDeploymentRepository(client, lateWriter, times)

  const toName = (subdomain: string) => ({ poolDomain, subdomain })
  const toRequest = (subdomain: string, claim: IdempotencyClaim | null = null) => ({
    ...toName(subdomain),
    createdBy: 'deadlines',
    tokenHash,
    caller,
    claim,
  })
  const toCommit = (subdomain: string) => ({
    ...toName(subdomain),
    tokenHash,
    sovereignFQDN: `${subdomain}.${poolDomain}`,
    target: { loadBalancerIP: address },
    records,
    caller,
  })
  const toRelease = (subdomain: string) => ({ ...toName(subdomain), caller })
  const claimFor = (key: string) => createClaim(key, [])
  /** One batch. */
  const both = <Request>(write: (request: Request) => Promise<unknown>, requests: readonly Request[]) =>
    Promise.all(requests.map(write))

  const reserved = (name: string) => inTime().reserve(toRequest(name))
  const expired = async (name: string) => {
    await reserved(name)
    await database.sql`
      update pool_allocations set reserved_at = now() - interval '2 s', expires_at = now() - interval '1 s'
      where subdomain = ${name}`
  }
  const active = async (name: string) => {
    await reserved(name)
    expect(await inTime().commit(toCommit(name))).toMatchObject({ kind: 'committed' })
  }
  const coolingOff = async (name: string) => {
    await active(name)
    await inTime().release(toRelease(name))
  }
  const reservedAgain = async (name: string) => {
    await coolingOff(name)
    await inTime().liftCoolOff(toRelease(name))
    await reserved(name)
  }
  const withKey = async (name: string) => {
    await reserved(`${name}-1`)
    expect(await inTime().renew({ ...toName(`${name}-1`), tokenHash })).toMatchObject({ kind: 'renewed' })
    await inTime().reserve(toRequest(`${name}-2`, claimFor(name)))
    await database.sql`update idempotency_keys set expires_at = now() - interval '1 s' where key_hash = decode(${claimFor(name).keyHash}, 'hex')`
  }

  const lockName: Case['lock'] = (tx, name) => tx`select from pool_allocations where subdomain = ${name} for update`
  const insertName: Case['lock'] = (tx, name) => tx`
    insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    values (${poolDomain}, ${name}, 'reserved', now(), now() + interval '1 hour', ${tokenHash}, 'other')`
  const lockRecords: Case['lock'] = (tx, name) => tx`select from dns_names where subdomain = ${name} for update`
  const lockKey: Case['lock'] = (tx, name) =>
    tx`select from idempotency_keys where key_hash = decode(${claimFor(name).keyHash}, 'hex') for update`

  // Deployments: the id is derived from the name.
  const ids = new Map<string, string>()
  const idOf = (name: string): string => {
    const id = ids.get(name) ?? randomUUID()
    ids.set(name, id)
    return id
  }
  const toDeploymentRecord = (name: string): DeploymentRecord => toRecord(specFor(name), null)
  const insert = (repository: ReturnType<typeof deploymentsInTime>, name: string, id = idOf(name)) =>
    repository.insert(
      {
        id,
        lineageId: idOf(`${name} lineage`),
        name: toName(name),
        record: toDeploymentRecord(name),
        tokenHash: randomBytes(32),
        reservationTokenHash: tokenHash,
        proof: null,
        adoptsBucket: false,
        caller,
      },
      claimFor(`deployment ${name}`),
    )
  const situation = async (name: string): Promise<DeploymentSituation> => {
    const found = await deploymentsInTime().findSituation(idOf(name))
    if (!found) throw new Error(`no deployment of ${name}`)
    return found
  }
  const created = (name: string) => insert(deploymentsInTime(), name)
  const failed = async (name: string) => {
    await created(name)
    const runs = createRunRepository(database.sql, times)
    const lease = { id: idOf(name), generation: 1 }
    await runs.markFailing(lease, 'example')
    expect(await runs.markFailed(lease)).toBe(true)
  }
  const lockDeployment: Case['lock'] = (tx, name) => tx`select from deployments where id = ${idOf(name)} for update`
  const lockLineage: Case['lock'] = (tx, name) =>
    tx`select from lineages where id = ${idOf(`${name} lineage`)} for update`

  const cases: readonly Case[] = [
    {
      write: 'reserve of an expired name',
      row: 'pool_allocations',
      setUp: expired,
      lock: lockName,
      execute: name => late().reserve(toRequest(name)),
    },
    {
      write: 'reserve',
      row: 'pool_allocations, inserted by another transaction',
      setUp: async () => {},
      lock: insertName,
      execute: name => late().reserve(toRequest(name)),
    },
    {
      write: 'reserve of two names',
      row: 'pool_allocations, inserted by another transaction',
      setUp: async () => {},
      lock: insertName,
      execute: name => both(late().reserve, [toRequest(`a-${name}`), toRequest(name)]),
    },
    {
      write: 'reserve of two names, one of them free',
      row: 'pool_allocations',
      setUp: expired,
      lock: lockName,
      execute: name => both(late().reserve, [toRequest(`a-${name}`), toRequest(name)]),
    },
    {
      write: 'reserve with a key',
      row: 'idempotency_keys',
      setUp: withKey,
      lock: lockKey,
      execute: name => late().reserve(toRequest(`${name}-3`, claimFor(name))),
    },
    {
      write: 'commit',
      row: 'pool_allocations',
      setUp: reserved,
      lock: lockName,
      execute: name => late().commit(toCommit(name)),
    },
    {
      write: 'commit of a name that had records',
      row: 'dns_names',
      setUp: reservedAgain,
      lock: lockRecords,
      execute: name => late().commit(toCommit(name)),
    },
    {
      write: 'commit of two names, one of them free',
      row: 'pool_allocations',
      setUp: async name => {
        await reserved(`a-${name}`)
        await reserved(name)
      },
      lock: lockName,
      execute: name => both(late().commit, [`a-${name}`, name].map(toCommit)),
    },
    {
      write: 'commit of two names, one of them had records',
      row: 'dns_names',
      setUp: async name => {
        await reserved(`a-${name}`)
        await reservedAgain(name)
      },
      lock: lockRecords,
      execute: name => both(late().commit, [`a-${name}`, name].map(toCommit)),
    },
    {
      write: 'update',
      row: 'dns_names',
      setUp: active,
      lock: lockRecords,
      execute: name =>
        late().update({ ...toRelease(name), plan: planTarget({}, { loadBalancerIP: '192.0.2.2' }), records }),
    },
    {
      write: 'renew',
      row: 'pool_allocations',
      setUp: reserved,
      lock: lockName,
      execute: name => late().renew({ ...toName(name), tokenHash }),
    },
    {
      write: 'release',
      row: 'pool_allocations',
      setUp: reserved,
      lock: lockName,
      execute: name => late().release(toRelease(name)),
    },
    {
      write: 'release of an active name',
      row: 'dns_names',
      setUp: active,
      lock: lockRecords,
      execute: name => late().release({ ...toRelease(name), claim: claimFor(name) }),
    },
    {
      write: 'liftCoolOff',
      row: 'pool_allocations',
      setUp: coolingOff,
      lock: lockName,
      execute: name => late().liftCoolOff(toRelease(name)),
    },
    {
      write: 'hold',
      row: 'pool_allocations',
      setUp: reserved,
      lock: lockName,
      execute: name => late().hold({ ...toName(name), tokenHash, lineageId: idOf(name) }),
    },
    {
      write: 'letGo',
      row: 'pool_allocations',
      setUp: async name => {
        await reserved(name)
        expect(await inTime().hold({ ...toName(name), tokenHash, lineageId: idOf(name) })).toBe(true)
      },
      lock: lockName,
      execute: name => late().letGo({ ...toName(name), lineageId: idOf(name) }),
    },
    {
      write: 'create deployment',
      row: 'deployments, inserted by another transaction under the same FQDN',
      setUp: async () => {},
      lock: (tx, name) => tx`
        with lineage as (
          insert into lineages (id, sovereign_fqdn, infrastructure_changed_at, created_at)
          values (${randomUUID()}, ${`${name}.${poolDomain}`}, now(), now()) returning id
        )
        insert into deployments (id, lineage_id, status, request, sovereign_fqdn, token_hash, started_at, run_expires_at)
        select gen_random_uuid(), id, 'pending', '{"objectStorageAccessKey":"","objectStorageSecretKey":""}', ${`${name}.${poolDomain}`}, ${tokenHash}, now(), now() from lineage`,
      execute: name => insert(lateDeployments(), name),
    },
    {
      write: 'accept a destroy',
      row: 'deployments',
      setUp: failed,
      lock: lockDeployment,
      execute: async name =>
        lateDeployments().accept(
          await situation(name),
          { operation: 'destroy', record: toDeploymentRecord(name), proof: null, adoptsBucket: false, caller },
          null,
        ),
    },
    {
      write: 'cancel',
      row: 'deployments',
      setUp: created,
      lock: lockDeployment,
      execute: name => lateDeployments().cancel(idOf(name), caller),
    },
    {
      write: 'abandon',
      row: 'deployments',
      setUp: failed,
      lock: lockDeployment,
      execute: async name => lateDeployments().markAbandoned(await situation(name), caller),
    },
    {
      write: 'delete deployment',
      row: 'deployments',
      setUp: failed,
      lock: lockDeployment,
      execute: async name => lateDeployments().delete(await situation(name), caller, null),
    },
    {
      write: 'delete deployment',
      row: 'lineages',
      setUp: failed,
      lock: lockLineage,
      execute: async name => lateDeployments().delete(await situation(name), caller, null),
    },
    {
      write: 'unlock',
      row: 'lineages',
      setUp: failed,
      lock: lockLineage,
      execute: async name =>
        lateDeployments().clearLock(await situation(name), { id: 'lock', isLifted: true }, caller, null),
    },
  ]

  /** Every row of the tables of requests. The number of the next history entry is not part of it. */
  const dump = async (): Promise<unknown> => {
    const tables = [
      ...['pool_allocations', 'dns_names', 'allocation_history', 'idempotency_keys'],
      ...['deployments', 'lineages', 'bucket_claims', 'deployment_history'],
    ]
    return Promise.all(
      tables.map(
        table => database.sql`select to_jsonb(t) as row from ${database.sql(table)} t order by to_jsonb(t)::text`,
      ),
    )
  }

  /** Starts the write, and resolves with its result when it waits and its deadline has passed. */
  const startLate = async ({ execute }: Case, name: string) => {
    for (let lateMs = LATE_MS; ; lateMs *= 4) {
      deadline = performance.now() + lateMs
      let isSettled = false
      const result = execute(name)
        .then(
          () => 'executed',
          (error: { code?: string }) => error.code,
        )
        .finally(() => {
          isSettled = true
        })
      await until('it waits', async () => isSettled || (await countLockWaiters(database.sql)) > 0)
      // Unless the machine was so slow that the deadline had passed before the write waited.
      if (!isSettled) {
        await sleep(Math.max(0, deadline - performance.now()) + 20)
        return { result }
      }
      expect(await result).toBe('57PD2')
    }
  }

  test.each(cases.map((one, i) => ({ ...one, i })))('$write, row of $row', async ({ i, ...one }) => {
    const name = `case-${i}`
    await one.setUp(name)
    const before = await dump()
    const held: HeldLock = await holdLock(database.sql, tx => one.lock(tx, name))
    const { result } = await startLate(one, name)
    await held.release()
    expect(await result).toBe('57PD2')
    expect(await dump()).toEqual(before)
  })

  test('the same writes in time have an effect', async () => {
    for (const [i, { write, setUp, execute }] of cases.entries()) {
      // Without the lock nothing waits, so the deadline does not pass.
      const name = `free-${i}`
      await setUp(name)
      const before = await dump()
      deadline = performance.now() + 60_000
      await execute(name)
      expect.soft(await dump(), write).not.toEqual(before)
    }
  })
})

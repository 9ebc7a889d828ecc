import { createDatabaseClient, type Sql } from '@pool/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { applySchema } from '../../src/database/migrate.ts'
import { createTestDatabase, lacksDsn, type TestDatabase, testDsn } from '../support/database.ts'
import { dumpSchema } from '../support/dump-schema.ts'

const good = {
  pool_domain: 'pool.test',
  subdomain: 'acme',
  state: 'reserved',
  reserved_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-01-01T00:10:00Z',
  reservation_token: '5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5a11',
  created_by: '',
  sovereign_fqdn: null,
  load_balancer_ip: null,
  committed_at: null,
}
const active = {
  ...good,
  state: 'active',
  expires_at: null,
  sovereign_fqdn: 'acme.pool.test',
  load_balancer_ip: '192.0.2.1',
  committed_at: '2026-01-01T00:01:00Z',
}

/** A row that must not be stored, and the named constraint that says so. */
const impossible: readonly (readonly [what: string, constraint: string, row: Record<string, string | null>])[] = [
  ['a pool domain in upper case', 'pool_domain_canonical', { ...good, pool_domain: 'Pool.test' }],
  ['a label that ends in a hyphen', 'subdomain_label', { ...good, subdomain: 'acme-' }],
  ['a label that begins with a digit', 'subdomain_label', { ...good, subdomain: '1acme' }],
  ['a label of 64 characters', 'subdomain_label', { ...good, subdomain: 'a'.repeat(64) }],
  ['a reserved LDH label', 'subdomain_label', { ...good, subdomain: 'xn--acme' }],
  ['an unknown state', 'state_known', { ...good, state: 'parked' }],
  ['a creator of 254 characters', 'created_by_length', { ...good, created_by: 'x'.repeat(254) }],
  ['a reservation without end', 'reserved_shape', { ...good, expires_at: null }],
  ['a reservation that ends before it begins', 'reserved_shape', { ...good, expires_at: '2025-01-01T00:00:00Z' }],
  ['a reservation with an address', 'reserved_shape', { ...good, load_balancer_ip: '192.0.2.1' }],
  ['a reservation with a commit time', 'reserved_shape', { ...good, committed_at: '2026-01-01T00:01:00Z' }],
  ['an active name that expires', 'active_shape', { ...active, expires_at: '2026-01-01T00:10:00Z' }],
  ['an active name without an address', 'active_shape', { ...active, load_balancer_ip: null }],
  ['an active name without a domain name', 'active_shape', { ...active, sovereign_fqdn: null }],
  [
    'an active name committed before it was reserved',
    'active_shape',
    { ...active, committed_at: '2025-01-01T00:00:00Z' },
  ],
  ['an IPv6 address', 'ipv4_host', { ...active, load_balancer_ip: '2001:db8::1' }],
  ['a network in place of an address', 'ipv4_host', { ...active, load_balancer_ip: '192.0.2.0/24' }],
]

describe.skipIf(!testDsn)(`the schema (${testDsn ? 'real Postgres' : lacksDsn})`, () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database.drop())

  test('is the golden one', async () => {
    await expect(await dumpSchema(database.sql)).toMatchFileSnapshot('./schema.golden.txt')
  })

  test('applied again, changes nothing and keeps the rows', async () => {
    await database.sql`insert into pool_allocations ${database.sql({ ...good, subdomain: 'kept' })}`
    const before = await dumpSchema(database.sql)
    await applySchema(database.sql)
    expect(await dumpSchema(database.sql)).toBe(before)
    expect(await database.sql`select from pool_allocations where subdomain = 'kept'`).toHaveLength(1)
  })

  test('applied by ten replicas at once to an empty database, is applied once', async () => {
    const empty = await createTestDatabase({ schema: false })
    const replicas = Array.from({ length: 10 }, () =>
      createDatabaseClient(empty.url, { maxConnections: 1, applicationName: 'replica' }),
    )
    await Promise.all(replicas.map(applySchema))
    expect(await dumpSchema(empty.sql)).toBe(await dumpSchema(database.sql))
    await Promise.all(replicas.map(replica => replica.end()))
    await empty.drop()
  })

  test('cut off after every paragraph in turn, it is whole after the start that is not', async () => {
    const empty = await createTestDatabase({ schema: false })
    const cut = new Error('cut off')
    const cutAfter = (paragraphs: number): Sql => {
      let left = paragraphs
      const unsafe = (text: string) => {
        left -= 1
        if (left < 0) throw cut
        return empty.sql.unsafe(text)
      }
      return Object.assign((() => {}) as unknown as Sql, { unsafe })
    }
    let starts = 0
    const isCut = () =>
      applySchema(cutAfter(starts)).then(
        () => false,
        error => error === cut || Promise.reject(error),
      )
    while (await isCut()) starts += 1
    expect(starts).toBeGreaterThan(10)
    expect(await dumpSchema(empty.sql)).toBe(await dumpSchema(database.sql))
    await empty.drop()
  })

  test('applied by a replica that starts, deadlocks with nobody who writes to several tables', async () => {
    const { sql } = database
    const starting = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'starting' })
    let applied: Promise<void> | undefined
    await sql.begin(async writer => {
      await writer`insert into idempotency_keys (key, fingerprint, expires_at) values ('k', sha256('k'), now())`
      applied = applySchema(starting)
      await until('it waits for the writer', async () => {
        const [waiting] = await sql`
          select from pg_locks join pg_database d on d.oid = database
          where not granted and locktype = 'relation' and datname = current_database()`
        return waiting !== undefined
      })
      await writer`insert into pool_allocations ${sql({ ...good, subdomain: 'meanwhile' })}`
    })
    await applied
    await starting.end()
    expect(await sql`select from pool_allocations where subdomain = 'meanwhile'`).toHaveLength(1)
  })

  test.each([
    ['reserved', good],
    ['active', { ...active, subdomain: 'busy' }],
  ])('stores a row that is %s', async (_, row) => {
    expect(await database.sql`insert into pool_allocations ${database.sql(row)}`).toHaveProperty('count', 1)
  })

  test.each(impossible)('does not store %s', async (_, constraint, row) => {
    await expect(database.sql`insert into pool_allocations ${database.sql(row)}`).rejects.toMatchObject({
      code: '23514',
      constraint_name: `pool_allocations_${constraint}`,
    })
  })

  test('does not store a second row for a pair', async () => {
    const twin = { ...good, subdomain: 'twin' }
    await database.sql`insert into pool_allocations ${database.sql(twin)}`
    await expect(database.sql`insert into pool_allocations ${database.sql(twin)}`).rejects.toMatchObject({
      code: '23505',
      constraint_name: 'pool_allocations_pkey',
    })
  })

  test.each([
    [
      'a transition that does not exist',
      { event: 'committed', from_state: 'none', to_state: 'active' },
      'transition_legal',
    ],
    ['an actor that does not exist', { actor: 'somebody' }, 'actor_known'],
  ])('does not store %s in the history', async (_, change, constraint) => {
    const entry = {
      pool_domain: 'pool.test',
      subdomain: 'acme',
      event: 'reserved',
      from_state: 'none',
      to_state: 'reserved',
      actor: 'sweeper',
      created_by: '',
      ...change,
    }
    await expect(database.sql`insert into allocation_history ${database.sql(entry)}`).rejects.toMatchObject({
      code: '23514',
      constraint_name: `allocation_history_${constraint}`,
    })
  })

  const request = { objectStorageAccessKey: '<redacted>', objectStorageSecretKey: '<redacted>' }
  const deployment = {
    id: '5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5a12',
    status: 'pending',
    request,
    sovereign_fqdn: 'acme.pool.test',
    started_at: '2026-01-01T00:00:00Z',
    run_expires_at: '2026-01-01T00:00:30Z',
  }
  const end = { finished_at: '2026-01-01T00:01:00Z', run_expires_at: null }

  test.each<[what: string, constraint: string, change: Record<string, unknown>]>([
    [
      'an access key',
      'credentials_redacted_check',
      { request: { ...request, objectStorageAccessKey: 'AKIA0123456789ABCDEF' } },
    ],
    ['a secret key', 'credentials_redacted_check', { request: { ...request, objectStorageSecretKey: 'x'.repeat(40) } }],
    ['no redacted credentials', 'credentials_redacted_check', { request: {} }],
    ['an unknown status', 'status_check', { status: 'paused' }],
    ['an end while it is in progress', 'finished_at_check', { finished_at: end.finished_at }],
    ['no lease while it is in progress', 'finished_at_check', { run_expires_at: null }],
    ['a lease after its end', 'finished_at_check', { status: 'failed', error: 'x', finished_at: end.finished_at }],
    ['a failure without a reason', 'error_present_check', { status: 'failed', ...end }],
    ['a reason without a failure', 'error_present_check', { error: 'x' }],
    ['readiness without a result', 'result_present_check', { status: 'ready', ...end }],
  ])('does not store a deployment with %s', async (_, constraint, change) => {
    const row = { ...deployment, ...change }
    await expect(database.sql`insert into deployments ${database.sql(row as never)}`).rejects.toMatchObject({
      code: '23514',
      constraint_name: `deployments_${constraint}`,
    })
  })

  test('stores a second deployment of an FQDN only after the first failed', async () => {
    const insert = (change: object) =>
      database.sql`insert into deployments ${database.sql({ ...deployment, ...change } as never)}`
    await insert({})
    const second = { id: '5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5a13' }
    await expect(insert(second)).rejects.toMatchObject({ code: '23505', constraint_name: 'deployments_fqdn_unique' })
    await database.sql`
      update deployments set status = 'failed', error = 'x', finished_at = started_at, run_expires_at = null`
    expect(await insert(second)).toHaveProperty('count', 1)
  })

  test.each([
    'update allocation_history set actor = actor',
    'delete from allocation_history',
    'truncate allocation_history',
  ])('keeps the history append-only: %s', async statement => {
    await expect(database.sql.unsafe(statement)).rejects.toMatchObject({ code: '23000' })
  })
})

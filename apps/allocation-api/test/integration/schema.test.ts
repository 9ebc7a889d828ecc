import { describe, expect, test } from 'vitest'
import { useTestDatabase } from '../support/database.ts'

const good = {
  pool_domain: 'pool.test',
  subdomain: 'acme',
  state: 'reserved',
  reserved_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-01-01T00:10:00Z',
  token_hash: Buffer.alloc(32),
  created_by: '',
  sovereign_fqdn: null,
  load_balancer_ip: null,
  committed_at: null,
}
/** The only transitions that the history accepts. */
const transitions = [
  'reserved: none to reserved',
  'renewed: reserved to reserved',
  'committed: reserved to active',
  'updated: active to active',
  'republished: active to active',
  'released: reserved to none',
  'released: active to none',
  'expired: reserved to none',
  'cool-off-lifted: none to none',
  'adopted: none to active',
  'orphan-removed: none to none',
  'published: active to active',
  'withdrawn: none to none',
  'failing: active to active',
  'failing: none to none',
  'repaired: active to active',
  'repaired: none to none',
]
const active = {
  ...good,
  state: 'active',
  expires_at: null,
  sovereign_fqdn: 'acme.pool.test',
  load_balancer_ip: '192.0.2.1',
  committed_at: '2026-01-01T00:01:00Z',
}

/** Rows that must be rejected, with the constraint that rejects them. */
const invalidRows: readonly (readonly [
  what: string,
  constraint: string,
  row: Record<string, string | Buffer | null>,
])[] = [
  ['a pool domain in upper case', 'pool_domain_check', { ...good, pool_domain: 'Pool.test' }],
  ['a label that ends in a hyphen', 'subdomain_check', { ...good, subdomain: 'acme-' }],
  ['a label that begins with a digit', 'subdomain_check', { ...good, subdomain: '1acme' }],
  ['a label of 64 characters', 'subdomain_check', { ...good, subdomain: 'a'.repeat(64) }],
  ['a reserved LDH label', 'subdomain_check', { ...good, subdomain: 'xn--acme' }],
  ['an unknown state', 'state_check', { ...good, state: 'parked' }],
  ['a creator of 254 characters', 'created_by_check', { ...good, created_by: 'x'.repeat(254) }],
  ['a token instead of its hash', 'token_hash_check', { ...good, token_hash: Buffer.alloc(16) }],
  ['a former token instead of its hash', 'former_token_hash_check', { ...good, former_token_hash: Buffer.alloc(16) }],
  ['a reservation without an expiry', 'reserved_columns_check', { ...good, expires_at: null }],
  [
    'a reservation that expires before it starts',
    'reserved_columns_check',
    { ...good, expires_at: '2025-01-01T00:00:00Z' },
  ],
  ['a reservation with an address', 'reserved_columns_check', { ...good, load_balancer_ip: '192.0.2.1' }],
  ['a reservation with a commit time', 'reserved_columns_check', { ...good, committed_at: '2026-01-01T00:01:00Z' }],
  ['an active name that expires', 'active_columns_check', { ...active, expires_at: '2026-01-01T00:10:00Z' }],
  ['an active name without an address', 'active_columns_check', { ...active, load_balancer_ip: null }],
  ['an active name without a domain name', 'active_columns_check', { ...active, sovereign_fqdn: null }],
  [
    'an active name committed before it was reserved',
    'active_columns_check',
    { ...active, committed_at: '2025-01-01T00:00:00Z' },
  ],
  ['a blocked label that expires', 'pool_columns_check', { ...good, state: 'pool' }],
  ['a released name that nothing keeps', 'released_columns_check', { ...good, state: 'released', expires_at: null }],
  [
    'a released name that expires',
    'released_columns_check',
    { ...good, state: 'released', cool_off_until: '2026-01-01T00:10:00Z' },
  ],
  ['a pool domain of 254 characters', 'pool_domain_check', { ...good, pool_domain: 'a'.repeat(254) }],
  ['an active name in its cool-off', 'active_columns_check', { ...active, cool_off_until: '2026-01-01T00:10:00Z' }],
  ['an active name without a commit time', 'active_columns_check', { ...active, committed_at: null }],
  ['an unknown replaced state', 'replaced_state_check', { ...good, replaced_state: 'active' }],
  ['an IPv6 address', 'load_balancer_ip_check', { ...active, load_balancer_ip: '2001:db8::1' }],
  ['a network instead of an address', 'load_balancer_ip_check', { ...active, load_balancer_ip: '192.0.2.0/24' }],
]

describe('schema', async () => {
  const database = await useTestDatabase()

  test.each([
    ['reserved', good],
    ['active', { ...active, subdomain: 'busy' }],
  ])('accepts a row that is %s', async (_, row) => {
    expect(await database.sql`insert into pool_allocations ${database.sql(row)}`).toHaveProperty('count', 1)
  })

  test.each(invalidRows)('rejects %s', async (_, constraint, row) => {
    await expect(database.sql`insert into pool_allocations ${database.sql(row)}`).rejects.toMatchObject({
      code: '23514',
      constraint_name: `pool_allocations_${constraint}`,
    })
  })

  test('rejects a second row for a name', async () => {
    const duplicate = { ...good, subdomain: 'duplicate' }
    await database.sql`insert into pool_allocations ${database.sql(duplicate)}`
    await expect(database.sql`insert into pool_allocations ${database.sql(duplicate)}`).rejects.toMatchObject({
      code: '23505',
      constraint_name: 'pool_allocations_pkey',
    })
  })

  test.each([
    ['an undefined transition', { event: 'committed', from_state: 'none', to_state: 'active' }, 'transition_check'],
    ['an unknown actor', { actor: 'unknown' }, 'actor_check'],
  ])('rejects %s in the history', async (_, change, constraint) => {
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

  test('accepts the defined transitions in the history, and no other', async () => {
    const events = [...new Set(transitions.map(transition => transition.split(':')[0] ?? '')), 'unknown']
    const states = ['none', 'reserved', 'active']
    const entries = events.flatMap(event =>
      states.flatMap(from_state =>
        states.map(to_state => ({ name: `${event}: ${from_state} to ${to_state}`, event, from_state, to_state })),
      ),
    )
    const accepted: string[] = []
    for (const { name, ...entry } of entries) {
      const row = { pool_domain: 'pool.test', subdomain: 'acme', actor: 'sweeper', created_by: '', ...entry }
      await database.sql`insert into allocation_history ${database.sql(row)}`.then(
        () => accepted.push(name),
        error => expect(error).toMatchObject({ constraint_name: 'allocation_history_transition_check' }),
      )
    }
    expect(accepted.toSorted()).toEqual(transitions.toSorted())
  })

  const failing = { attempts: 1, last_error: 'x', failure: 'provider' }
  const toDnsName = (subdomain: string, change: object) => {
    const row = {
      zone: 'pool.test',
      subdomain,
      version: 2,
      applied_version: 1,
      desired: [],
      changed_at: good.reserved_at,
    }
    return database.sql({ ...row, next_attempt_at: good.reserved_at, ...change } as never)
  }

  test.each([
    ['pending', {}],
    ['failing', failing],
    ['published', { applied_version: 2 }],
  ])('accepts desired records that are %s', async (state, change) => {
    expect(await database.sql`insert into dns_names ${toDnsName(state, change)}`).toHaveProperty('count', 1)
  })

  test.each<[what: string, constraint: string, change: Record<string, unknown>]>([
    ['that are not a list', 'desired_check', { desired: {} }],
    ['with owned records that are not a list', 'owned_check', { owned: {} }],
    ['with previous records that are not a list', 'previous_records_check', { previous_records: {} }],
    ['with deleted records that are not a list', 'deleted_records_check', { deleted_records: {} }],
    ['of a later version than the current one', 'applied_version_check', { applied_version: 3 }],
    ['with an unknown cause of a failure', 'failure_check', { ...failing, failure: 'unknown' }],
    ['with an error and no failed attempt', 'error_present_check', { last_error: 'x' }],
    ['with a cause and no failed attempt', 'error_present_check', { failure: 'provider' }],
    ['with a failed attempt and no error', 'error_present_check', { ...failing, last_error: null }],
    ['with a failed attempt and no cause', 'error_present_check', { ...failing, failure: null }],
    ['that are published and fail', 'applied_no_error_check', { ...failing, applied_version: 2 }],
  ])('rejects desired records %s', async (_, constraint, change) => {
    await expect(database.sql`insert into dns_names ${toDnsName('acme', change)}`).rejects.toMatchObject({
      code: '23514',
      constraint_name: `dns_names_${constraint}`,
    })
  })

  const request = { objectStorageAccessKey: '<redacted>', objectStorageSecretKey: '<redacted>' }
  const lineage = {
    id: '5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5a00',
    sovereign_fqdn: 'acme.pool.test',
    infrastructure_changed_at: '2026-01-01T00:00:00Z',
    created_at: '2026-01-01T00:00:00Z',
  }
  const deployment = {
    id: '5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5a12',
    lineage_id: lineage.id,
    token_hash: Buffer.alloc(32),
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
    ['a token instead of its hash', 'token_hash_check', { token_hash: Buffer.alloc(16) }],
    [
      'a reservation token instead of its hash',
      'reservation_token_hash_check',
      { reservation_token_hash: Buffer.alloc(16) },
    ],
    ['a secret key', 'credentials_redacted_check', { request: { ...request, objectStorageSecretKey: 'x'.repeat(40) } }],
    ['no redacted credentials', 'credentials_redacted_check', { request: {} }],
    ['an unknown status', 'status_check', { status: 'paused' }],
    ['an unknown operation', 'operation_check', { operation: 'pause' }],
    ['a token instead of its hash', 'token_hash_check', { token_hash: Buffer.from(lineage.id) }],
    ['an end while it is in progress', 'finished_at_check', { finished_at: end.finished_at }],
    ['no lease while it is in progress', 'finished_at_check', { run_expires_at: null }],
    ['a lease after its end', 'finished_at_check', { status: 'failed', error: 'x', finished_at: end.finished_at }],
    ['a failure without a reason', 'error_present_check', { status: 'failed', ...end }],
    ['a reason without a failure', 'error_present_check', { error: 'x' }],
    ['readiness without a result', 'result_present_check', { status: 'ready', ...end }],
  ])('rejects a deployment with %s', async (_, constraint, change) => {
    const row = { ...deployment, ...change }
    await expect(database.sql`insert into deployments ${database.sql(row as never)}`).rejects.toMatchObject({
      code: '23514',
      constraint_name: `deployments_${constraint}`,
    })
  })

  test('accepts a second deployment of an FQDN only after the first failed', async () => {
    const insert = (change: object) =>
      database.sql`insert into deployments ${database.sql({ ...deployment, ...change } as never)}`
    await database.sql`insert into lineages ${database.sql(lineage)}`
    await insert({})
    const second = { id: '5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5a13' }
    await expect(insert(second)).rejects.toMatchObject({ code: '23505', constraint_name: 'deployments_fqdn_unique' })
    await database.sql`
      update deployments set status = 'failed', error = 'x', finished_at = started_at, run_expires_at = null`
    expect(await insert(second)).toHaveProperty('count', 1)
  })

  test('accepts infrastructure of an FQDN in one lineage only, unless it is archived', async () => {
    const insert = (change: object) =>
      database.sql`insert into lineages ${database.sql({ ...lineage, sovereign_fqdn: 'one.pool.test', ...change })}`
    const ids = ['1', '2', '3'].map(digit => `5d0c2f3e-0f5c-4c43-9c0c-0d3b8f3d5b0${digit}`)
    await insert({ id: ids[0], has_infrastructure: true, archived_at: lineage.created_at })
    await insert({ id: ids[1], has_infrastructure: true })
    await insert({ id: ids[2] })
    const second = database.sql`update lineages set has_infrastructure = true where id = ${ids[2] ?? ''}`
    await expect(second).rejects.toMatchObject({ code: '23505', constraint_name: 'lineages_fqdn_unique' })
  })

  test.each([
    'update allocation_history set actor = actor',
    'delete from allocation_history',
    'truncate allocation_history',
    'update deployment_history set actor = actor',
    'delete from deployment_history',
    'truncate deployment_history',
  ])('the histories are append-only: %s', async statement => {
    await expect(database.sql.unsafe(statement)).rejects.toMatchObject({ code: '23000' })
  })
})

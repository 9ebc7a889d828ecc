import type { ConsoleStack } from './suite.ts'

/** What the tests write to behind the console's back. */
export type SeedTarget = Pick<ConsoleStack, 'client' | 'leases' | 'sql'>

const POOL = 'pool.test'

/** A name of `local_dns_record_sets` as the DNS server of the API stores it: the labels in reverse order. */
const toReversed = (name: string): string => name.split('.').reverse().join('.')

/** Writes a record behind the back of the service, as another writer of the zone would. */
export const writeForeignRecord = async (
  { sql }: SeedTarget,
  name: string,
  type: string,
  values: readonly string[],
  zone = POOL,
): Promise<void> => {
  await sql`
    insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
    values (${zone}, ${toReversed(name)}, ${type}, 300, ${[...values]})
    on conflict (zone, reversed_name, type) do update set record_values = excluded.record_values`
}

export const deleteRecord = async ({ sql }: SeedTarget, name: string, type: string): Promise<void> => {
  await sql`delete from local_dns_record_sets where reversed_name = ${toReversed(name)} and type = ${type}`
}

/** Makes the zone newer than the database, as after the restore of an old backup. The next write stops the zone. */
export const outdateDatabase = async ({ sql }: SeedTarget, zone = POOL): Promise<void> => {
  await sql`
    update local_dns_record_sets
    set record_values = array[regexp_replace(record_values[1], 'serial=([0-9]+)', 'serial=9\\1')]
    where reversed_name = ${toReversed(`_allocation-serial.${zone}`)}`
}

/** The names of the default record template. */
const TEMPLATE = ['', '*.', 'console.', 'api.', 'gitea.', 'harbor.']

/** Records of the template that no allocation explains. */
export const writeOrphan = async (target: SeedTarget, subdomain: string, zone = POOL): Promise<void> => {
  for (const label of TEMPLATE) {
    await writeForeignRecord(target, `${label}${subdomain}.${zone}`, 'A', ['203.0.113.200'], zone)
  }
}

/** Samples of an hour of moderate load, which end near what `seedNames` makes. The same at every run. */
export const seedSamples = async ({ sql }: SeedTarget): Promise<void> => {
  await sql`
    insert into pool_samples (pool_domain, at, reserved, active, cooling_off, held)
    select ${POOL}, now() - minute * interval '1 minute', 1 + (minute / 8) % 3, 11 - minute / 7, 1 + (minute / 15) % 2, 0
    from generate_series(1, 60) as minute`
  await sql`
    with replica as (
      insert into replicas (id, version, node_version, started_at, last_seen_at, is_ready, circuit_open)
      values (gen_random_uuid(), '1.0.0', 'v24.8.0', now() - interval '2 hours', now(), true, false) returning id
    )
    insert into replica_samples
      (replica_id, at, requests, errors, request_ms, event_loop_ms, active_runs, pending_names, failing_names)
    select id, now() - interval '1 hour' + step * interval '10 seconds', step * 50 + (20 * sin(step / 9.0))::int, step / 40,
      step * 400 + 40 * sin(step / 7.0), step * 900, (step / 45) % 3, greatest(0, 3 * sin(step / 20.0))::int, 0
    from replica, generate_series(0, 359) as step`
}

const TENANTS = ['acme', 'globex', 'initech', 'umbrella', 'stark', 'wayne', 'tyrell', 'cyberdyne', 'hooli', 'vandelay']

/** Names in every state, of several creators; a name that cannot be published; and leases. */
export const seedNames = async (stack: SeedTarget): Promise<void> => {
  const { client, leases } = stack
  for (const [index, subdomain] of TENANTS.entries()) {
    const createdBy = index % 2 === 0 ? 'controller-eu' : 'ops@platform.example'
    await client.reserveAndCommit({ domain: POOL, subdomain, createdBy, loadBalancerIP: `203.0.113.${10 + index}` })
  }
  await client.updateName({ domain: POOL, subdomain: 'acme', loadBalancerIP: '203.0.113.40' })
  await client.reserveName({ domain: POOL, subdomain: 'soylent', createdBy: 'controller-eu' })
  await client.releaseName({ domain: POOL, subdomain: 'vandelay' })
  await writeForeignRecord(stack, 'oceanic.pool.test', 'CNAME', ['elsewhere.example.'])
  await client.reserveAndCommit({
    domain: POOL,
    subdomain: 'oceanic',
    createdBy: 'ops@platform.example',
    loadBalancerIP: '203.0.113.60',
  })
  await leases.acquire('region-pair/primary', { holder: 'region-a/controller-0', generation: 0, ttlMs: 3_600_000 })
  await leases.acquire('region-pair/backup', { holder: 'region-b/controller-0', generation: 0, ttlMs: 3_600_000 })
}

import type { ConsoleStack } from './stack.ts'

const POOL = 'pool.test'

/** A name of `local_dns_record_sets` as the DNS server of the API stores it: the labels in reverse order. */
const toReversed = (name: string): string => name.split('.').reverse().join('.')

/** Writes a record behind the back of the service, as another writer of the zone would. */
export const writeForeignRecord = async (
  { sql }: ConsoleStack,
  name: string,
  type: string,
  values: readonly string[],
): Promise<void> => {
  await sql`
    insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
    values (${POOL}, ${toReversed(name)}, ${type}, 300, ${[...values]})
    on conflict (zone, reversed_name, type) do update set record_values = excluded.record_values`
}

export const deleteRecord = async ({ sql }: ConsoleStack, name: string, type: string): Promise<void> => {
  await sql`delete from local_dns_record_sets where reversed_name = ${toReversed(name)} and type = ${type}`
}

const TENANTS = ['acme', 'globex', 'initech', 'umbrella', 'stark', 'wayne', 'tyrell', 'cyberdyne', 'hooli', 'vandelay']

/** Names in every state, of several creators; a name that cannot be published; and leases. */
export const seedNames = async (stack: ConsoleStack): Promise<void> => {
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

import { randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import type { ConsoleStack } from './suite.ts'

/** What the tests write to behind the console's back. */
type SeedTarget = Pick<ConsoleStack, 'client' | 'leases' | 'sql'>

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

export const SSH_PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f operator'

interface DeploymentSeed {
  readonly pool: string
  readonly subdomain: string
  readonly status: 'ready' | 'provisioning'
  readonly bucket?: string
}

const ADDRESS = '203.0.113.220'

/**
 * A deployment without a run of Terraform. A `ready` one has an active name with records. A `provisioning` one has a run of
 * another replica, which writes nothing and is not taken over during a test. Resolves with its id.
 */
export const seedDeployment = async (
  { client, sql }: SeedTarget,
  { pool, subdomain, status, bucket }: DeploymentSeed,
): Promise<string> => {
  const [id, lineageId] = [randomUUID(), randomUUID()]
  const fqdn = `${subdomain}.${pool}`
  const isReady = status === 'ready'
  const request = {
    orgName: 'Globex',
    orgEmail: 'ops@globex.example',
    sovereignFQDN: fqdn,
    name: { poolDomain: pool, subdomain },
    providers: bucket === undefined ? ['local'] : ['hetzner'],
    region: 'local',
    sshPublicKey: SSH_PUBLIC_KEY,
    storage: bucket === undefined ? null : { region: 'fsn1', bucket },
    objectStorageAccessKey: bucket === undefined ? '' : '<redacted>',
    objectStorageSecretKey: bucket === undefined ? '' : '<redacted>',
  }
  if (isReady) await client.reserveAndCommit({ domain: pool, subdomain, loadBalancerIP: ADDRESS })
  await sql.begin(async tx => {
    await tx`
      insert into lineages
        (id, sovereign_fqdn, pool_domain, subdomain, has_infrastructure, infrastructure_changed_at, created_at)
      values (${lineageId}, ${fqdn}, ${pool}, ${subdomain}, ${isReady}, now(), now())`
    await tx`
      insert into deployments (id, lineage_id, status, request, sovereign_fqdn, reservation_token_hash, token_hash, result,
        started_at, finished_at, run_expires_at)
      values (${id}, ${lineageId}, ${status}, ${tx.json(request)}, ${fqdn},
        (select token_hash from pool_allocations where pool_domain = ${pool} and subdomain = ${subdomain}), ${Buffer.alloc(32)},
        ${isReady ? tx.json({ sovereignFQDN: fqdn, loadBalancerIP: ADDRESS, details: {} }) : null},
        now(), ${isReady ? tx`now()` : null}, ${isReady ? null : tx`now() + interval '1 day'`})`
    await tx`
      update pool_allocations set lineage_id = ${lineageId} where pool_domain = ${pool} and subdomain = ${subdomain}`
    await tx`
      insert into deployment_history (event, deployment_id, lineage_id, sovereign_fqdn, org_name, actor)
      values ('created', ${id}, ${lineageId}, ${fqdn}, 'Globex', 'operator')`
    if (bucket !== undefined) {
      await tx`
        insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, is_permanent, claimed_at)
        values (${bucket}, ${lineageId}, ${fqdn}, true, now())`
    }
  })
  return id
}

/** Writes the next lines of the log, as the run of another replica does. */
export const appendLogLines = async ({ sql }: SeedTarget, id: string, messages: readonly string[]): Promise<void> => {
  await sql.begin(async tx => {
    const [row] = await tx<{ count: number }[]>`select line_count as count from deployments where id = ${id} for update`
    const first = (row?.count ?? 0) + 1
    for (const [index, message] of messages.entries()) {
      await tx`
        insert into deployment_log_lines (deployment_id, seq, at, phase, level, message)
        values (${id}, ${first + index}, now(), 'apply', 'info', ${message})`
    }
    await tx`update deployments set line_count = line_count + ${messages.length} where id = ${id}`
  })
}

/** The addresses of a name in the zone; none if the name does not exist. */
export const lookUp = async (server: string, name: string): Promise<readonly string[]> => {
  const resolver = new Resolver({ timeout: 5_000, tries: 3 })
  resolver.setServers([server])
  return resolver.resolve4(name).catch(error => {
    if (error.code === 'ENOTFOUND' || error.code === 'ENODATA') return []
    throw error
  })
}

export interface TxtServer extends AsyncDisposable {
  readonly address: string
  /** The texts of the TXT records of every name. */
  readonly texts: string[]
}

/** A DNS server of other domains, in whose zones every name has the same TXT records (RFC 1035 section 4.1). */
export const startTxtServer = async (): Promise<TxtServer> => {
  const texts: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const [header, end] = [Buffer.from(query.subarray(0, 12)), query.indexOf(0, 12) + 5]
    header.writeUInt16BE(0x8580, 2)
    header.writeUInt16BE(texts.length, 6)
    header.fill(0, 8)
    const records = texts.map(text => {
      // A pointer to the name of the question; TXT, IN, a TTL of 0.
      const fields = [0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, text.length + 1, text.length]
      return Buffer.concat([Buffer.from(fields), Buffer.from(text)])
    })
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), port, address)
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address() as AddressInfo
  return {
    address: `127.0.0.1:${port}`,
    texts,
    [Symbol.asyncDispose]: () => new Promise(resolve => socket.close(resolve)),
  }
}

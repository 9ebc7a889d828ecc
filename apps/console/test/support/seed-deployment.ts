import { randomUUID } from 'node:crypto'
import type { SeedTarget } from './seed.ts'

export const SSH_PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f operator'

export interface DeploymentSeed {
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

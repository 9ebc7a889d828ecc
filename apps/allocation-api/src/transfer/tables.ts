import { UNKNOWN_LINEAGE } from '../naming/naming.ts'

/** A table whose rows an export contains. Names are inserted into SQL as they are. */
export interface TransferredTable {
  readonly name: string
  /** The columns that order the rows, so that equal databases have equal exports. */
  readonly order: string
  /** A condition; absent: every row. */
  readonly where?: string
}

/** In the order of their foreign keys. */
export const TRANSFERRED_TABLES: readonly TransferredTable[] = [
  // Each replica blocks the labels of the pools in its own configuration, and the unknown names of their zones.
  {
    name: 'pool_allocations',
    order: 'pool_domain, subdomain',
    where: `state <> 'pool' and lineage_id is distinct from '${UNKNOWN_LINEAGE}'`,
  },
  { name: 'record_tokens', order: 'id' },
  { name: 'tenant_records', order: 'pool_domain, subdomain' },
  { name: 'allocation_history', order: 'id' },
  { name: 'former_names', order: 'pool_domain, subdomain' },
  { name: 'idempotency_keys', order: 'key_hash' },
  { name: 'dns_zones', order: 'zone' },
  { name: 'dns_names', order: 'zone, subdomain' },
  { name: 'lineages', order: 'id' },
  { name: 'bucket_claims', order: 'bucket' },
  { name: 'deployments', order: 'number' },
  { name: 'domain_challenges', order: 'value_hash' },
  { name: 'deployment_history', order: 'id' },
]

/** Tables that an export leaves out, and why. A test fails if a table of the schema is in neither list. */
export const OMITTED_TABLES: Readonly<Record<string, string>> = {
  allocation_api_migrations: 'the schema of the target is its own',
  deployment_log_lines: 'logs stay where they were written',
  dns_former_records: 'the records of an earlier provider belong to the source',
  dns_zone_writes: 'the target numbers its own writes, and stops every zone until an operator resumes it',
  installation: 'identifies the source to the zones that it wrote',
  local_dns_record_sets: 'the zones of the provider local, which is not part of the installation',
  local_dns_zones: 'as local_dns_record_sets',
  operator_sessions: 'operators sign in to the target themselves',
  pool_samples: 'as replica_samples',
  pools: 'each replica registers the pools of its own configuration',
  replica_samples: 'the plots of the source stay with it',
  replicas: 'the processes of the source',
  write_probes: 'each replica creates its own',
  zone_leases: 'the locks of the processes of the source',
}

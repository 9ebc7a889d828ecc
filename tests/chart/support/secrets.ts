import { createHash } from 'node:crypto'
import type { ValueSet } from './chart.ts'
import type { Secrets } from './pod.ts'

const metricsToken = 'metrics-token-0123456789abcdef'

const certificates = '?sslmode=verify-full&sslrootcert=/etc/pool-allocation/database-ca.crt'

/** What an operator has created before the installation. Both databases are in the cluster. */
export const secrets: Secrets = {
  'pool-allocation-database/url': `postgres://allocation_service:secret-1@pool-allocation-postgres-rw:5432/allocation${certificates}`,
  'pool-allocation-database/migration-url': `postgres://allocation_owner:secret-2@pool-allocation-postgres-rw:5432/allocation${certificates}`,
  'pool-allocation-operator/tokens': 'operator-token-0123456789abcdef0123456789abcdef',
  'pool-allocation-dns/token': 'cloudflare-token-0123456789',
  'pool-allocation-dns/api-key': 'powerdns-key-0123456789',
  'pool-allocation-dns/tsig-secret': 'c2VjcmV0LW9mLXRoZS10c2lnLWtleS1mb3ItdGVzdHM=',
  'lease-witness-database/url': `postgres://lease_witness:secret-3@lease-witness-postgres-rw:5432/lease_witness${certificates}`,
  'lease-witness-tokens/policies': JSON.stringify([
    { name: 'prometheus', token: `sha256:${createHash('sha256').update(metricsToken).digest('hex')}`, access: 'read' },
  ]),
  'lease-witness-metrics/token': metricsToken,
  'acme-states/access-key': 'access-key-0123456789',
  'acme-states/secret-key': 'secret-key-0123456789',
  'acme-hcloud/token': 'hcloud-token-0123456789',
}

/** With the other sets of values, Postgres is outside of the cluster, and a public authority has signed its certificate. */
export const toSecrets = (set: ValueSet): Secrets =>
  set === 'three-replicas'
    ? secrets
    : {
        ...secrets,
        'pool-allocation-database/url':
          'postgres://allocation:secret-4@postgres.example:5432/allocation?sslmode=verify-full&sslrootcert=system',
      }

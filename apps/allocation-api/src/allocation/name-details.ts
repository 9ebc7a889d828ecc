import type { NameDetails } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { type PoolName, toFqdn } from '../naming/naming.ts'
import { type FoundRow, foundColumns, toListedName } from './name-search.ts'

interface DetailsRow extends FoundRow {
  readonly renewalCount: number | null
  readonly desired: readonly RecordSet[] | null
  readonly nextAttemptAt: string | null
  readonly deploymentId: string | null
  readonly deploymentStatus: string | null
}

const toDetails = (fqdn: string, row: DetailsRow): NameDetails => {
  const name = toListedName(row)
  const { renewalCount, desired, nextAttemptAt, deploymentId, deploymentStatus } = row
  return {
    ...name,
    fqdn,
    ...(name.state === 'reserved' && renewalCount ? { renewalCount } : {}),
    desired: (desired ?? []).map(({ name: owner, type, ttl, values }) => ({
      name: owner,
      type,
      ttl,
      data: [...values],
    })),
    ...(name.dns?.status === 'failing' && nextAttemptAt
      ? { nextAttemptAt: new Date(nextAttemptAt).toISOString() }
      : {}),
    ...(deploymentId && deploymentStatus ? { deployment: { id: deploymentId, status: deploymentStatus } } : {}),
  }
}

/** Reads one name, whether or not a client has it. */
export const createNameReader =
  (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) =>
  async ({ poolDomain, subdomain }: PoolName): Promise<NameDetails> => {
    const { heldState, columns } = foundColumns(sql)
    const fqdn = toFqdn(poolDomain, subdomain)
    const [row] = await withTimeout(
      sql<{ name: DetailsRow }[]>`
        select to_jsonb(found) || jsonb_build_object('poolDomain', ${poolDomain}::text, 'subdomain', ${subdomain}::text) as name
        from (
          select ${columns}, ${heldState} as "heldState", a.renewal_count as "renewalCount", d.desired,
            d.next_attempt_at as "nextAttemptAt", p.id as "deploymentId", p.status as "deploymentStatus"
          from (select 1) one
            left join pool_allocations a on a.pool_domain = ${poolDomain} and a.subdomain = ${subdomain}
            left join dns_names d on d.zone = ${poolDomain} and d.subdomain = ${subdomain}
            left join lateral (
              select id, status from deployments where sovereign_fqdn = ${fqdn} order by number desc limit 1) p on true
        ) found`,
      timeoutMs,
    )
    if (!row) throw new Error('the statement returned no row')
    return toDetails(fqdn, row.name)
  }
export type NameReader = ReturnType<typeof createNameReader>

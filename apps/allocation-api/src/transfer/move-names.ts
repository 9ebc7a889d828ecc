import type { Sql } from '@pool/runtime/database/client'
import { timeSql } from '@pool/runtime/database/time'
import { IS_FREE, renewalColumns, setDesiredRecords } from '../allocation/sql.ts'
import type { RecordSet } from '../dns/domain/rrset.ts'
import type { Caller } from '../naming/naming.ts'

/** A live name of the export with the records that it gets in its new pool; none if it is only reserved. */
export interface MovedName {
  /** The row of pool_allocations. */
  readonly row: Readonly<Record<string, unknown>>
  readonly records: readonly RecordSet[]
}

export interface MoveTarget {
  readonly poolDomain: string
  readonly caller: Caller
  /** For the history. */
  readonly detail: string
}

/**
 * Gives the names to their clients in another pool, in one statement: the token, the times and `createdBy` stay, the
 * lineage and the cool-off do not. Returns the subdomains. A name that is not free, or whose reservation has expired, is
 * left out: the upsert decides, as for a reservation.
 */
export const moveNames = async (
  sql: Sql,
  { poolDomain, caller, detail }: MoveTarget,
  names: readonly MovedName[],
): Promise<string[]> => {
  const { now } = timeSql(sql)
  const rows = names.map(({ row }) => row)
  const records = names.map(({ row, records: desired }) => ({ subdomain: row.subdomain, desired }))
  const moved = await sql<{ subdomain: string }[]>`
    with input as (
        select * from jsonb_populate_recordset(null::pool_allocations, ${sql.json(rows as never)})
        where state = 'active' or expires_at > ${now}
      ),
      records as (
        select * from jsonb_to_recordset(${sql.json(records as never)}) as records (subdomain text, desired jsonb)
      ),
      held as (
        insert into pool_allocations as a
          (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by, sovereign_fqdn, load_balancer_ip, target,
            committed_at, renewal_count)
        select ${poolDomain}, subdomain, state, reserved_at, expires_at, token_hash, created_by,
          case when state = 'active' then subdomain || '.' || ${poolDomain} end, load_balancer_ip, target, committed_at, renewal_count
        from input order by subdomain collate "C"
        on conflict (pool_domain, subdomain) do update set
          state = excluded.state, reserved_at = excluded.reserved_at, expires_at = excluded.expires_at,
          token_hash = excluded.token_hash, former_token_hash = null, created_by = excluded.created_by,
          replaced_state = a.state, sovereign_fqdn = excluded.sovereign_fqdn, load_balancer_ip = excluded.load_balancer_ip,
          target = excluded.target, committed_at = excluded.committed_at, cool_off_until = null, renewal_count = excluded.renewal_count
        where ${sql.unsafe(IS_FREE)}
        returning a.*
      ),
      published as (
        select held.*, records.desired from held join records using (subdomain)
        where state = 'active' order by subdomain collate "C"
      ),
      desired as (${sql.unsafe(setDesiredRecords('published', 'new'))}),
      -- The upsert has locked the rows; a reservation that it replaced is still in the snapshot.
      previous as (
        select a.* from held join pool_allocations a using (pool_domain, subdomain) where held.replaced_state = 'reserved'
      ),
      transitions as (
        select pool_domain, subdomain, created_by, 1 as step, 'expired' as event, 'reserved' as from_state,
          'none' as to_state, ${sql.unsafe(renewalColumns('renewal_count', 'expires_at'))}
        from previous
        union all
        select pool_domain, subdomain, created_by, 2, 'reserved', 'none', 'reserved', null, null from held
        union all
        select pool_domain, subdomain, created_by, 3, 'committed', 'reserved', 'active', null, null
        from held where state = 'active'
      ),
      history as (
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id, detail,
            renewal_count, renewed_until)
        select pool_domain, subdomain, event, from_state, to_state, created_by, ${caller.actor}, ${caller.address},
          ${caller.requestId}, case when step > 1 then ${detail} end, renewal_count, renewed_until
        from transitions order by subdomain collate "C", step
      )
    select subdomain from held`
  return moved.map(({ subdomain }) => subdomain)
}

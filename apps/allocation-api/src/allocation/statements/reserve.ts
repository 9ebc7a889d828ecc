import { NOW, toInterval } from '@pool/runtime/database/time'
import { storeOutcomes, toHex } from '../../idempotency/idempotency.ts'
import type { ReservationLimits, ReserveDecision } from '../domain/types.ts'
import { type Timestamp, toCoolingOff, toGranted } from '../rows.ts'
import {
  FREE_AT,
  IS_COOLING_OFF,
  IS_FREE,
  IS_LAPSED,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  renewalColumns,
  requests,
} from '../sql.ts'

export interface ReserveRequest extends NameRequest {
  readonly createdBy: string
  /** Of the new reservation. */
  readonly tokenHash: Buffer
  readonly former?: FormerHolder
}

/** Who may reserve a name that is not free. */
export interface FormerHolder {
  /** SHA-256 of the token of the released allocation: its cool-off does not apply. */
  readonly tokenHash?: Buffer | undefined
  /** The lineage that holds the released name. It keeps the name. */
  readonly lineageId?: string | undefined
}

interface ReserveRow {
  /** Null unless the name is reserved. */
  readonly reservedAt: Timestamp | null
  readonly expiresAt: Timestamp | null
  /** Not null if the name is in its cool-off. */
  readonly availableAt: Timestamp | null
}

/**
 *   input     the requests
 *   upserted  inserts the reservations, and replaces the rows of free names and those of the former holder. It waits for
 *             a concurrent writer of a row, then sees that writer's result.
 *   granted   the requests with their reservation
 *   history   inserts 'expired' for a replaced reservation, then 'reserved'
 *   stored    the outcomes of the keys. A replay needs only the token.
 *
 * `availableAt` is the end of the cool-off as of the start of the statement; the upsert alone decides who gets the name.
 */
const toText = (ttlMs: number): string => `
  with input as (${requests('created_by text, former_token_hash bytea, former_lineage_id uuid')}),
    upserted as (
      insert into pool_allocations as a
        (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, former_token_hash, created_by)
      select pool_domain, subdomain, 'reserved', ${NOW}, ${NOW} + ${toInterval(ttlMs)}, token_hash, former_token_hash, created_by
      from input where is_new
      on conflict (pool_domain, subdomain) do update set
        state = excluded.state, reserved_at = excluded.reserved_at, expires_at = excluded.expires_at,
        token_hash = excluded.token_hash, former_token_hash = excluded.former_token_hash,
        created_by = excluded.created_by, renewal_count = 0, sovereign_fqdn = null, load_balancer_ip = null,
        target = null, committed_at = null, cool_off_until = case when a.cool_off_until > ${NOW} then a.cool_off_until end,
        replaced_state = a.state, replaced_created_by = a.created_by, replaced_renewal_count = a.renewal_count,
        replaced_expires_at = a.expires_at
      where ${IS_FREE} or ${IS_LAPSED} and (
        select case
          when a.lineage_id is null then input.former_token_hash in (a.token_hash, a.former_token_hash)
          else a.lineage_id = input.former_lineage_id
        end
        from input where ${isRowOf('input')})
      returning pool_domain, subdomain, reserved_at, expires_at, replaced_state, replaced_created_by,
        replaced_renewal_count, replaced_expires_at
    ),
    granted as (
      select input.*, a.reserved_at, a.expires_at, replaced_state, replaced_created_by, replaced_renewal_count,
        replaced_expires_at
      from input join upserted a on ${isRowOf('input')}
    ),
    history as (
      insert into allocation_history
        (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id, renewal_count,
          renewed_until)
      select pool_domain, subdomain, event, from_state, to_state,
        case event when 'expired' then replaced_created_by else created_by end, actor, address, request_id,
        ${renewalColumns(`case event when 'expired' then replaced_renewal_count end`, 'replaced_expires_at')}
      from granted, (values (1, 'expired', 'reserved', 'none'), (2, 'reserved', 'none', 'reserved'))
        as transition (step, event, from_state, to_state)
      where event = 'reserved' or replaced_state = 'reserved'
      order by position, step
      returning 1
    ),
    outcomes as (select *, '{}'::jsonb as result from granted),
    stored as (${storeOutcomes('outcomes')})
  select input.position, input.is_new as "isNew", reserved_at as "reservedAt", expires_at as "expiresAt",
    case when reserved_at is null then (
      select ${FREE_AT} from pool_allocations a where ${isRowOf('input')} and ${IS_COOLING_OFF} limit 1
    ) end as "availableAt"
  from input left join granted using (position)
  where ${isInTime('history', 'stored')}`

export const reserveStatement = ({
  ttlMs,
}: Pick<ReservationLimits, 'ttlMs'>): NameStatement<ReserveRequest, ReserveRow, ReserveDecision> => ({
  text: toText(ttlMs),
  toColumns: ({ createdBy, former }) => ({
    created_by: createdBy,
    former_token_hash: toHex(former?.tokenHash),
    former_lineage_id: former?.lineageId,
  }),
  toDecision({ reservedAt, expiresAt, availableAt }, { poolDomain, subdomain, createdBy }) {
    if (reservedAt) return toGranted({ poolDomain, subdomain, createdBy, reservedAt, expiresAt })
    return availableAt ? toCoolingOff({ availableAt }) : { kind: 'conflict' }
  },
})

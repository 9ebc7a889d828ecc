import { NOW, toInterval } from '@pool/runtime/database/time'
import { KEYS, storeOutcomes, toHex } from '../../idempotency/idempotency.ts'
import type { ReleaseCommand, ReleaseDecision } from '../domain/types.ts'
import { type AllocationRowWithDns, toAllocation } from '../rows.ts'
import {
  COLUMNS_WITH_DNS,
  hasRecordsIn,
  IS_LIVE,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  REQUEST,
  renewalColumns,
  requests,
  setDesiredRecords,
} from '../sql.ts'

export interface ReleaseRequest extends NameRequest, ReleaseCommand {
  /** Whether only the name's own client can release it. */
  readonly needsProof?: boolean
  /** Then `check` does not tell the state of a name. */
  readonly isDraining?: boolean
}

/** The row has the allocation as it was. `withdrawalVersion`: null if the name never had records. */
export type ReleaseRow =
  | (AllocationRowWithDns & { readonly outcome: 'released'; readonly withdrawalVersion: number | null })
  | { readonly outcome: 'not-found' | 'token-mismatch' }

/** Of `input`, in addition to those of each request. */
export const PROOF_COLUMNS = 'deployment_token_hash bytea, needs_proof boolean, is_draining boolean'
export const toProofColumns = ({
  deploymentTokenHash,
  needsProof = false,
  isDraining = false,
}: Pick<ReleaseRequest, 'deploymentTokenHash' | 'needsProof' | 'isDraining'>) => ({
  deployment_token_hash: toHex(deploymentTokenHash),
  needs_proof: needsProof,
  is_draining: isDraining,
})

/** Whether the row `a` belongs to the client of `input`. A row that is not live keeps the token of its last client. */
export const IS_OWN = `coalesce(a.token_hash = input.token_hash, not needs_proof or exists (
  select from deployments p
  where p.token_hash = input.deployment_token_hash and p.reservation_token_hash = a.token_hash and (
    p.lineage_id = a.lineage_id
    or p.sovereign_fqdn = a.subdomain || '.' || a.pool_domain and p.status in ('pending', 'provisioning', 'ready'))))`

/** What a release decides about a live `a`. */
const LIVE_OUTCOME = `case when ${IS_OWN} then 'released' else 'token-mismatch' end`

/**
 * What it decides about a name that is not live. If a proof is needed, its former client learns that it is gone, and
 * others what `check` tells: that it is free, or cooling off.
 */
const NOT_LIVE_OUTCOME = `
  case
    when not needs_proof or exists (select from pool_allocations a where ${isRowOf('input')} and ${IS_OWN}) then 'not-found'
    when coalesce(input.token_hash, deployment_token_hash) is null or is_draining then 'token-mismatch'
    when exists (select from pool_allocations a where ${isRowOf('input')} and lineage_id is not null) then 'token-mismatch'
    else 'not-found'
  end`

/** What a release would decide, and of which columns of `input`. */
export const RELEASE_OUTCOME = `coalesce(
  (select ${LIVE_OUTCOME} from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE}), ${NOT_LIVE_OUTCOME})`
export const RELEASE_COLUMNS = `pool_domain text, subdomain text, token_hash bytea, ${PROOF_COLUMNS}`
export const toReleaseColumns = (request: ReleaseRequest) => ({
  pool_domain: request.poolDomain,
  subdomain: request.subdomain,
  token_hash: toHex(request.tokenHash),
  ...toProofColumns(request),
})

/**
 *   input      the requests
 *   locked     the requests with the locked name as it was, and whether the token permits the release
 *   released   the names, and when they become free
 *   kept       the rows that stay, invisible to clients: in the cool-off, or while a lineage holds the name
 *   deleted    the others
 *   withdrawn  active names have no desired records any more
 *   desired    sets that
 *   history    'released' for each of them
 *   outcomes   of the requests that release
 *   stored     those of the keys
 */
const toText = (coolOffMs: number): string => `
  with input as (${requests(PROOF_COLUMNS)}),
    locked as (
      select ${REQUEST}, coalesce(live_outcome, ${NOT_LIVE_OUTCOME}) as outcome, a.*
      from input left join lateral (
        select a.*, ${LIVE_OUTCOME} as live_outcome,
          case when a.state = 'active' then ${NOW} + ${toInterval(coolOffMs)} else a.cool_off_until end as free_at
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} and is_new limit 1
        for update
      ) a on true
    ),
    released as (
      select *, lineage_id is not null or coalesce(free_at > ${NOW}, false) as stays from locked where outcome = 'released'
    ),
    kept as (
      update pool_allocations a set
        state = 'released', expires_at = null, renewal_count = 0, cool_off_until = released.free_at
      from released where stays and ${isRowOf('released')}
      returning 1
    ),
    deleted as (
      delete from pool_allocations a using released where not stays and ${isRowOf('released')}
      returning 1
    ),
    withdrawn as (select *, '[]'::jsonb as desired from released where state = 'active'),
    desired as (${setDesiredRecords('withdrawn', 'same')}),
    history as (
      ${insertHistory('released order by position', `'released', state, 'none'`, { renewals: renewalColumns('renewal_count', 'expires_at') })}
    ),
    results as (
      select a.position, ${COLUMNS_WITH_DNS}, desired.version as "withdrawalVersion"
      from released a left join desired on ${hasRecordsIn('desired')}
        left join dns_names d on a.state = 'active' and ${hasRecordsIn('d')}
    ),
    outcomes as (
      select ${KEYS}, (select to_jsonb(r) from (select 'released' as outcome, results.*) r) as result
      from released join results using (position)
    ),
    stored as (${storeOutcomes('outcomes')})
  select results.*, locked.position, is_new as "isNew", outcome
  from locked left join results on results.position = locked.position
  where ${isInTime('kept', 'deleted', 'desired', 'history', 'stored')}`

export const toReleaseDecision = (row: ReleaseRow): ReleaseDecision =>
  row.outcome === 'released'
    ? { kind: row.outcome, allocation: toAllocation(row), version: row.withdrawalVersion }
    : { kind: row.outcome }

/** Frees a name. If it was active, its desired records become none. */
export const releaseStatement = (coolOffMs: number): NameStatement<ReleaseRequest, ReleaseRow, ReleaseDecision> => ({
  text: toText(coolOffMs),
  toColumns: toProofColumns,
  toDecision: toReleaseDecision,
})

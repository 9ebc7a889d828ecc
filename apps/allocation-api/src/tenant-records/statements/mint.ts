import { NOW } from '@pool/runtime/database/time'
import {
  IS_LIVE,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  requests,
} from '../../allocation/sql.ts'
import { IS_OWN, PROOF_COLUMNS, toProofColumns } from '../../allocation/statements/release.ts'
import { KEYS, storeOutcomes, toHex } from '../../idempotency/idempotency.ts'
import type { HolderProof, TokenInfo, TokenScope } from '../../records/domain/types.ts'
import { IS_UNEXPIRED, revise, SAME_RECORDS, TOKEN_COLUMNS, type TokenRow, toTokenInfo } from '../sql.ts'

const MAX_TOKENS = 10
const MAX_OWNERS = 10

export interface MintRequest extends NameRequest, HolderProof {
  readonly id: string
  readonly tokenDigest: Buffer
  readonly scope: TokenScope
  readonly owner: string
  readonly expiresInDays?: number | undefined
  readonly needsProof: boolean
}

type MintRow = (TokenRow & { readonly outcome: 'minted' }) | { readonly outcome: MintRejection }
type MintRejection = 'not-found' | 'token-mismatch' | 'too-many-tokens' | 'stale'

/** `stale`: the tokens of the name have changed since the start of the statement; execute it again. */
export type MintDecision = { readonly kind: 'minted'; readonly info: TokenInfo } | { readonly kind: MintRejection }

/**
 *   input     the requests
 *   locked    the requests with the locked name
 *   decided   whether it can have one more token. The tokens of the snapshot are those of the locked row if both have the same
 *             revision.
 *   updated   the names with their new revision
 *   revised   their records, which stay
 *   inserted  the tokens
 *   history   'token-minted' for each of them
 *   stored    the outcomes of the keys. A replay needs only the token.
 */
const TEXT = `
  with input as (${requests(`${PROOF_COLUMNS}, id uuid, token_digest bytea, scope text, owner text, expires_in_days integer`)}),
    locked as (
      select input.*, coalesce(name.outcome, 'not-found') as outcome, name_revision, reservation_hash
      from input left join lateral (
        select a.records_revision as name_revision, a.token_hash as reservation_hash,
          case when ${IS_OWN} then 'minted' else 'token-mismatch' end as outcome
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} and is_new limit 1
        for update
      ) name on true
    ),
    decided as (
      select locked.*, case
          when locked.outcome <> 'minted' then locked.outcome
          when coalesce(t.revision, 0) <> locked.name_revision then 'stale'
          when (
            select count(*) from record_tokens k
            where k.pool_domain = locked.pool_domain and k.subdomain = locked.subdomain and ${IS_UNEXPIRED}
          ) >= ${MAX_TOKENS} then 'too-many-tokens'
          when (
            select count(distinct owner) from (
              select k.owner from record_tokens k
              where k.pool_domain = locked.pool_domain and k.subdomain = locked.subdomain and ${IS_UNEXPIRED}
              union all select item ->> 'owner' from jsonb_array_elements(t.records -> 'sets' || (t.records -> 'challenges')) item
              union all select locked.owner
            ) owners
          ) > ${MAX_OWNERS} then 'too-many-tokens'
          else 'minted'
        end as decision
      from locked left join tenant_records t using (pool_domain, subdomain)
    ),
    updated as (
      update pool_allocations a set records_revision = a.records_revision + 1
      from decided where decision = 'minted' and ${isRowOf('decided')}
      returning a.*, position, id, token_digest, reservation_hash, scope, owner, expires_in_days, actor, address, request_id,
        ${SAME_RECORDS}, ${KEYS}
    ),
    revised as (${revise('updated')}),
    inserted as (
      insert into record_tokens as k
        (id, pool_domain, subdomain, token_digest, reservation_hash, scope, owner, created_at, expires_at)
      select id, pool_domain, subdomain, token_digest, reservation_hash, scope, owner, ${NOW},
        ${NOW} + expires_in_days * interval '1 day'
      from updated
      returning ${TOKEN_COLUMNS}
    ),
    history as (
      ${insertHistory('updated order by position', `'token-minted', state, state`, {
        detail: `'scope ' || scope || ', owner ' || owner || ', id ' || id`,
      })}
    ),
    outcomes as (select *, '{}'::jsonb as result from updated),
    stored as (${storeOutcomes('outcomes')})
  select decided.position, decided.is_new as "isNew", decision as outcome, inserted.*
  from decided left join inserted on inserted.id = decided.id
  where ${isInTime('updated', 'revised', 'inserted', 'history', 'stored')}`

/** Gives the holder of a live name one more token. */
export const mintStatement: NameStatement<MintRequest, MintRow, MintDecision> = {
  text: TEXT,
  toColumns: request => ({
    ...toProofColumns(request),
    id: request.id,
    token_digest: toHex(request.tokenDigest),
    scope: request.scope,
    owner: request.owner,
    expires_in_days: request.expiresInDays,
  }),
  toDecision: row => (row.outcome === 'minted' ? { kind: 'minted', info: toTokenInfo(row) } : { kind: row.outcome }),
}

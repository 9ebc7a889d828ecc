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
import type { HolderProof } from '../../records/domain/types.ts'
import { revise, SAME_RECORDS } from '../sql.ts'

export interface DeleteTokenRequest extends NameRequest, HolderProof {
  readonly id: string
  readonly needsProof: boolean
}

export type DeleteTokenDecision = { readonly kind: 'deleted' | 'not-found' | 'token-mismatch' }

/**
 *   input    the requests
 *   locked   the requests with the locked name
 *   deleted  the tokens
 *   updated  their names, with a new revision: a write that was decided with the token is decided again
 *   revised  their records, which stay
 *   history  'token-deleted' for each of them
 */
const TEXT = `
  with input as (${requests(`${PROOF_COLUMNS}, id uuid`)}),
    locked as (
      select input.*, coalesce(name.outcome, 'not-found') as outcome
      from input left join lateral (
        select case when ${IS_OWN} then 'deleted' else 'token-mismatch' end as outcome
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} limit 1
        for update
      ) name on true
    ),
    deleted as (
      delete from record_tokens k using locked
      where locked.outcome = 'deleted' and k.id = locked.id and k.pool_domain = locked.pool_domain
        and k.subdomain = locked.subdomain
      returning locked.position, locked.pool_domain, locked.subdomain, k.id, k.scope, k.owner, locked.actor, locked.address,
        locked.request_id
    ),
    updated as (
      update pool_allocations a set records_revision = a.records_revision + 1
      from deleted where ${isRowOf('deleted')}
      returning a.*, position, id, scope, owner, actor, address, request_id, ${SAME_RECORDS}
    ),
    revised as (${revise('updated')}),
    history as (
      ${insertHistory('updated order by position', `'token-deleted', state, state`, {
        detail: `'scope ' || scope || ', owner ' || owner || ', id ' || id`,
      })}
    )
  select locked.position, is_new as "isNew",
    case when locked.outcome = 'deleted' and deleted.id is null then 'not-found' else locked.outcome end as kind
  from locked left join deleted on deleted.position = locked.position
  where ${isInTime('deleted', 'updated', 'revised', 'history')}`

export const deleteTokenStatement: NameStatement<DeleteTokenRequest, DeleteTokenDecision, DeleteTokenDecision> = {
  text: TEXT,
  toColumns: request => ({ ...toProofColumns(request), id: request.id }),
  toDecision: ({ kind }) => ({ kind }),
}

import { NOW } from '@pool/runtime/database/time'
import type { TokenInfo, TokenScope } from '../records/domain/types.ts'

// The parts that the statements over record_tokens (alias `k`) and tenant_records (alias `t`) share, as text.

/** The columns of the row `k` of record_tokens that are a `TokenRow`. */
export const TOKEN_COLUMNS = `
  k.id, k.scope, k.owner, k.created_at as "createdAt", k.expires_at as "expiresAt", k.last_used_on::text as "lastUsedOn"`

export interface TokenRow {
  readonly id: string
  readonly scope: TokenScope
  readonly owner: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedOn: string | null
}

export const toTokenInfo = ({ id, scope, owner, createdAt, expiresAt, lastUsedOn }: TokenRow): TokenInfo => ({
  id,
  scope,
  owner,
  createdAt: createdAt.toISOString(),
  ...(expiresAt === null ? {} : { expiresAt: expiresAt.toISOString() }),
  ...(lastUsedOn === null ? {} : { lastUsedAt: lastUsedOn }),
})

/** Whether a token `k` has not expired. */
export const IS_UNEXPIRED = `(k.expires_at is null or k.expires_at > ${NOW})`

/**
 * Gives the names in `rows`, which are rows of pool_allocations that a statement has changed, their new revision in
 * tenant_records too, with their columns `records`, JSON, and `due_at`. Without `records`, both stay as they are.
 */
export const revise = (rows: string): string => `
  insert into tenant_records as t (pool_domain, subdomain, revision, records, due_at)
  select pool_domain, subdomain, records_revision, records, due_at
  from ${rows} order by pool_domain collate "C", subdomain collate "C"
  on conflict (pool_domain, subdomain) do update set
    revision = excluded.revision, records = coalesce(excluded.records, t.records),
    due_at = case when excluded.records is null then t.due_at else excluded.due_at end
  returning 1`

/** The columns of names whose records stay as they are. */
export const SAME_RECORDS = 'null::jsonb as records, null::timestamptz as due_at'

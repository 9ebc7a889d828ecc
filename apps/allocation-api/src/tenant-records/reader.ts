import type { Target } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { NOW, withTimeout } from '@pool/runtime/database/time'
import { IS_LIVE } from '../allocation/sql.ts'
import { IS_OWN, PROOF_COLUMNS, toProofColumns } from '../allocation/statements/release.ts'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { targetOf } from '../dns/domain/target.ts'
import { toHex } from '../idempotency/idempotency.ts'
import type { PoolName } from '../naming/naming.ts'
import { NO_RECORDS, type StoredRecords } from '../records/domain/stored.ts'
import type { HolderProof, TokenScope } from '../records/domain/types.ts'
import { IS_UNEXPIRED, TOKEN_COLUMNS, type TokenRow } from './sql.ts'

/** A live name with all that decides about its records, as of one moment. */
export interface NameRecords extends PoolName {
  readonly state: 'reserved' | 'active'
  readonly reservationHash: Buffer
  readonly revision: number
  readonly target: Target
  readonly records: StoredRecords
  /** Unix milliseconds, by the clock of the database. */
  readonly now: number
  /** Empty while it is reserved. */
  readonly desired: readonly RecordSet[]
  /** Null while it is reserved. */
  readonly version: number | null
  readonly appliedVersion: number | null
  readonly lastError: string | null
}

/** As its token sees it. */
export interface TokenRecords extends NameRecords {
  readonly scope: TokenScope
  readonly owner: string
}

const COLUMNS = `
  a.pool_domain as "poolDomain", a.subdomain, a.state, a.token_hash as "reservationHash", a.records_revision as revision,
  ${targetOf('a')} as target, t.records, (extract(epoch from ${NOW}) * 1000)::float8 as now, coalesce(d.desired, '[]') as desired, d.version,
  d.applied_version as "appliedVersion", d.last_error as "lastError"`

const JOINS = `
  left join tenant_records t on t.pool_domain = a.pool_domain and t.subdomain = a.subdomain
  left join dns_names d on a.state = 'active' and d.zone = a.pool_domain and d.subdomain = a.subdomain`

type Row<Name extends NameRecords> = Omit<Name, 'records'> & { readonly records: StoredRecords | null }

const toName = <Name extends NameRecords>(row: Row<Name> | undefined): Name | null =>
  row ? ({ ...row, records: row.records ?? NO_RECORDS } as Name) : null

export type RecordsReader = ReturnType<typeof createRecordsReader>

export const createRecordsReader = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => {
  const columns = sql.unsafe(COLUMNS)
  const joins = sql.unsafe(JOINS)
  const isLive = sql.unsafe(IS_LIVE)
  const isUnexpired = sql.unsafe(IS_UNEXPIRED)
  return {
    /** Null: the token is not valid. */
    async findByToken(tokenDigest: Buffer): Promise<TokenRecords | null> {
      const [row] = await withTimeout(
        sql<Row<TokenRecords>[]>`
          select ${columns}, k.scope, k.owner
          from record_tokens k join pool_allocations a
            on a.pool_domain = k.pool_domain and a.subdomain = k.subdomain and a.token_hash = k.reservation_hash
            ${joins}
          where k.token_digest = ${tokenDigest} and ${isUnexpired} and ${isLive}`,
        timeoutMs,
      )
      return toName(row)
    },

    /** Null: no client has the name. */
    async findByName({ poolDomain, subdomain }: PoolName): Promise<NameRecords | null> {
      const [row] = await withTimeout(
        sql<Row<NameRecords>[]>`
          select ${columns} from pool_allocations a ${joins}
          where a.pool_domain = ${poolDomain} and a.subdomain = ${subdomain} and ${isLive}`,
        timeoutMs,
      )
      return toName(row)
    },

    /** The owner of a token if the proof permits its deletion. */
    async findOwner(
      { poolDomain, subdomain, id, ...proof }: PoolName & HolderProof & { readonly id: string },
      needsProof: boolean,
    ): Promise<{ readonly owner: string; readonly isOwn: boolean; readonly reservationHash: Buffer } | null> {
      const input = { token_hash: toHex(proof.tokenHash), ...toProofColumns({ ...proof, needsProof }) }
      const [row] = await withTimeout(
        sql<{ owner: string; isOwn: boolean; reservationHash: Buffer }[]>`
          select k.owner, ${sql.unsafe(IS_OWN)} as "isOwn", a.token_hash as "reservationHash"
          from jsonb_to_record(${sql.json(input)}) as input (token_hash bytea, ${sql.unsafe(PROOF_COLUMNS)}),
            record_tokens k join pool_allocations a on a.pool_domain = k.pool_domain and a.subdomain = k.subdomain
          where k.id = ${id} and k.pool_domain = ${poolDomain} and k.subdomain = ${subdomain} and ${isLive}`,
        timeoutMs,
      )
      return row ?? null
    },

    /** The tokens of a name that have not expired, the oldest first; null: no client has the name. */
    async listTokens({ poolDomain, subdomain }: PoolName): Promise<TokenRow[] | null> {
      const rows = await withTimeout(
        sql<(TokenRow | { readonly id: null })[]>`
          select ${sql.unsafe(TOKEN_COLUMNS)} from pool_allocations a left join record_tokens k
            on k.pool_domain = a.pool_domain and k.subdomain = a.subdomain and k.reservation_hash = a.token_hash and ${isUnexpired}
          where a.pool_domain = ${poolDomain} and a.subdomain = ${subdomain} and ${isLive}
          order by k.created_at, k.id`,
        timeoutMs,
      )
      return rows.length === 0 ? null : rows.filter((row): row is TokenRow => row.id !== null)
    },

    /** A valid token; null: there is none. */
    async findToken(tokenDigest: Buffer): Promise<TokenRow | null> {
      const [row] = await withTimeout(
        sql<TokenRow[]>`
          select ${sql.unsafe(TOKEN_COLUMNS)} from record_tokens k join pool_allocations a
            on a.pool_domain = k.pool_domain and a.subdomain = k.subdomain and a.token_hash = k.reservation_hash
          where k.token_digest = ${tokenDigest} and ${isUnexpired} and ${isLive}`,
        timeoutMs,
      )
      return row ?? null
    },

    /** Names whose desired records are to be derived again. */
    async listDue(limit: number): Promise<PoolName[]> {
      return withTimeout(
        sql<PoolName[]>`
          select pool_domain as "poolDomain", subdomain from tenant_records where due_at <= statement_timestamp()
          order by due_at limit ${limit}`,
        timeoutMs,
      )
    },

    /** Deletes up to `limit` expired tokens. Returns whether there can be more. */
    async deleteExpiredTokens(limit: number): Promise<boolean> {
      const deleted = await withTimeout(
        sql`
          delete from record_tokens where id in (
            select id from record_tokens where expires_at <= statement_timestamp() order by expires_at limit ${limit}
            for update skip locked
          )`,
        timeoutMs,
      )
      return deleted.count === limit
    },
  }
}

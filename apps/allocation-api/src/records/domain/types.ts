import type { DnsState } from '@pool/contract'
import type { Caller, NameRejection, PoolName } from '../../naming/naming.ts'

export const TOKEN_SCOPES = ['acme', 'records'] as const
/** `acme`: challenges of ACME only. `records`: these, and the allowed types at and below the name. */
export type TokenScope = (typeof TOKEN_SCOPES)[number]

/** What the tenants of this installation can have. */
export interface RecordsOptions {
  /** The highest scope. `off`: no token is valid. */
  readonly maxScope: 'off' | TokenScope
  /** The types that scope `records` allows. */
  readonly types: readonly string[]
  /** Record sets of a name, challenges included. */
  readonly limit: number
  /** A lower TTL is raised to it. */
  readonly minTtlSeconds: number
}

/** What a client sees of a token: never the token itself. */
export interface TokenInfo {
  /** A UUID. */
  readonly id: string
  readonly scope: TokenScope
  readonly owner: string
  /** RFC 3339. */
  readonly createdAt: string
  readonly expiresAt?: string
  /** The day of the last write, `YYYY-MM-DD`. */
  readonly lastUsedAt?: string
}

export interface MintedToken extends TokenInfo {
  /** `pdr_` and 43 characters of base64url. It is in this result, and in that of a repetition under the same key, only. */
  readonly token: string
  readonly fqdn: string
}

/** One of the two hashes, or none of them for an operator. */
export interface HolderProof {
  /** SHA-256 of the reservation token. */
  readonly tokenHash?: Buffer | undefined
  /** SHA-256 of the token of the deployment that holds the name. */
  readonly deploymentTokenHash?: Buffer | undefined
}

export interface MintCommand extends PoolName, HolderProof {
  readonly scope: TokenScope
  /** 1 to 63 of `a-z0-9-`. */
  readonly owner: string
  readonly expiresInDays?: number | undefined
}

export interface DeleteTokenCommand extends PoolName, HolderProof {
  readonly id: string
  /** Whether the records of the token's owner are deleted too. */
  readonly withRecords: boolean
}

type Kind<Name extends string> = { readonly kind: Name }

export type MintOutcome =
  | { readonly kind: 'minted'; readonly minted: MintedToken }
  | { readonly kind: 'not-supported'; readonly detail: string }
  | Kind<'not-found' | 'token-mismatch' | 'too-many-tokens' | 'idempotency-key-reused'>
  | NameRejection

export type ListTokensOutcome =
  | { readonly kind: 'listed'; readonly tokens: readonly TokenInfo[] }
  | Kind<'not-found'>
  | NameRejection

export type DeleteTokenOutcome = Kind<'deleted' | 'not-found' | 'token-mismatch'> | NameRejection

/**
 * `name` is absolute, lower case, without the final dot. `values` are in normal form, sorted: names without their final dot, the
 * text of TXT as one quoted character-string or several.
 */
export interface TenantRecordSet {
  readonly name: string
  readonly type: string
  /** Seconds. */
  readonly ttl: number
  readonly values: readonly string[]
  readonly owner: string
  /** False: data of the tenant's tool, which is stored and returned, and never in the zone. */
  readonly isPublished: boolean
  /** A challenge of ACME, which a tool that manages all records of an owner must not see. */
  readonly isChallenge?: true
}

/** A change as the tenant sends it: names in any case, with or without the final dot. */
export type SetChange =
  /** Without a `ttl`: that of the template. */
  | {
      readonly kind: 'put'
      readonly name: string
      readonly type: string
      readonly ttl?: number | undefined
      readonly values: readonly string[]
      readonly isPublished?: boolean
    }
  | { readonly kind: 'delete'; readonly name: string; readonly type: string }
  /** `name` is that of the TXT record itself. */
  | { readonly kind: 'add-challenge'; readonly name: string; readonly value: string }
  | { readonly kind: 'remove-challenge'; readonly name: string; readonly value: string }

/** The code of the response. */
export type RefusalKind =
  | 'outside-scope'
  | 'not-active'
  | 'record-conflict'
  | 'template-record'
  | 'delegated'
  | 'invalid-record'
  | 'type-not-allowed'
  | 'too-many-records'

export interface Refusal {
  readonly kind: RefusalKind
  /** For the tenant: what is wrong, then what to do. */
  readonly detail: string
  /** As it was sent. */
  readonly change: SetChange
}

/** The name of a valid token, and what its holder has. */
export interface ReadOutcome {
  readonly kind: 'read'
  readonly name: PoolName
  readonly fqdn: string
  readonly scope: TokenScope
  readonly owner: string
  readonly state: 'reserved' | 'active'
  /** Of all owners, by name and type. */
  readonly sets: readonly TenantRecordSet[]
  readonly dns: DnsState
}

/** Unknown, deleted, expired, of an earlier reservation, or records are off: one answer. */
export type Unauthorized = Kind<'unauthorized'>

export interface ChangeOptions {
  /** `all`: one refusal refuses everything. `each`: the others are applied. */
  readonly mode: 'all' | 'each'
  /** How long to wait for the provider; null: until the database has the changes. */
  readonly waitMs: number | null
}

export type ReviewOutcome =
  | Unauthorized
  | {
      readonly kind: 'reviewed'
      /** In their normal form, as a later `read` returns them; a TTL is given. In the order in which they were sent. */
      readonly accepted: readonly SetChange[]
      readonly refusals: readonly Refusal[]
    }

export type ChangeOutcome =
  | Unauthorized
  | { readonly kind: 'rate-limited'; readonly retryAfterSeconds: number }
  /** Nothing was changed. */
  | { readonly kind: 'refused'; readonly refusals: readonly [Refusal, ...Refusal[]] }
  /** `dns` is `published` once the provider has the changes. Without a wait, it is as it was when they were stored. */
  | { readonly kind: 'changed'; readonly refusals: readonly Refusal[]; readonly dns: DnsState }

/** The records that tenants set themselves, with tokens that the holder of a name mints. */
export interface TenantRecords {
  mintToken(command: MintCommand, caller: Caller, idempotencyKey: string | undefined): Promise<MintOutcome>
  listTokens(name: PoolName): Promise<ListTokensOutcome>
  deleteToken(command: DeleteTokenCommand, caller: Caller): Promise<DeleteTokenOutcome>
  /** The records of a name, for operators. */
  listRecords(name: PoolName): Promise<readonly TenantRecordSet[]>
  /** `tokenDigest` is the `hashRecordToken` of what the tenant sent. */
  read(tokenDigest: Buffer): Promise<Unauthorized | ReadOutcome>
  /**
   * Which of the changes would be refused if they were all that the owner has, apart from challenges. It writes nothing.
   */
  review(tokenDigest: Buffer, changes: readonly SetChange[]): Promise<ReviewOutcome>
  change(
    tokenDigest: Buffer,
    changes: readonly SetChange[],
    options: ChangeOptions,
    caller: Caller,
  ): Promise<ChangeOutcome>
}

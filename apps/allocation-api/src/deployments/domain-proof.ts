import { hash, hkdfSync, randomBytes } from 'node:crypto'
import { type DomainChallenge, MAX_PROVABLE_DOMAIN_LENGTH, toChallengeName } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { timeSql } from '@pool/runtime/database/time-sql'
import { withTimeout } from '@pool/runtime/database/with-timeout'
import { hashIdempotencyKey } from '../idempotency/sealed-token.ts'
import type { DeploymentSpec, RejectionWithDetail } from './domain/types.ts'
import type { LookUpTxt } from './txt-resolver.ts'

export interface DomainProofOptions {
  readonly sql: Sql
  readonly isRequired: boolean
  readonly lookUpTxt: LookUpTxt
  readonly timeoutMs: number
}

/** The challenges that a TXT record answers. The statement that claims the FQDN binds them to the lineage. */
export interface Proof {
  readonly valueHashes: readonly string[]
}

/** Who has to prove a domain. */
export interface Claimant {
  readonly spec: Pick<DeploymentSpec, 'name' | 'sovereignFQDN'>
  /** Null: a new lineage. */
  readonly lineageId: string | null
  readonly idempotencyKey: string | undefined
}

export type ProofOutcome =
  /** `proof` is null if none is needed. */
  | { readonly kind: 'proven'; readonly proof: Proof | null }
  | RejectionWithDetail<'domain-not-proven' | 'dns-unavailable'>

/** Long enough for a change of DNS that a person has to request from another company. */
const CHALLENGE_TTL_MS = 7 * 86_400_000
const VALUE_BYTES = 32
/** A name with more TXT records than this is not looked at further. */
const MAX_TEXTS = 100
/** Expired challenges that each new one deletes. */
const DELETED_PER_CHALLENGE = 10

const hashValue = (value: string): string => hash('sha256', value, 'hex')

/**
 * Under an Idempotency-Key, a repeated request gets the same value. Without one, each request gets another value. Only the
 * requester knows it until it is published, and the table has its hash only.
 */
const createValue = (domain: string, key: string | undefined): string =>
  key === undefined
    ? randomBytes(VALUE_BYTES).toString('base64url')
    : Buffer.from(hkdfSync('sha256', key, domain, 'domain-challenge', VALUE_BYTES)).toString('base64url')

export type DomainProof = ReturnType<typeof createDomainProof>

/**
 * Proves with a TXT record that a client controls a domain of its own. Challenges are in the database, so every replica
 * accepts those of every other one.
 */
export const createDomainProof = ({ sql, isRequired, lookUpTxt, timeoutMs }: DomainProofOptions) => {
  const { now, milliseconds } = timeSql(sql)

  const findProof = async (
    { spec, lineageId, idempotencyKey }: Claimant,
    texts: readonly string[],
  ): Promise<Proof | null> => {
    const keyHash = idempotencyKey === undefined ? null : hashIdempotencyKey(idempotencyKey)
    const rows = await withTimeout(
      sql<{ valueHash: string }[]>`
        select texts.hash as "valueHash"
        from jsonb_array_elements_text(${sql.json(texts.slice(0, MAX_TEXTS).map(hashValue))}) as texts (hash)
        join domain_challenges c on c.value_hash = decode(texts.hash, 'hex')
        where c.domain = ${spec.sovereignFQDN} and c.expires_at > ${now} and case
          when c.lineage_id is null then c.key_hash is null or c.key_hash = ${keyHash}::bytea
          else c.lineage_id = ${lineageId}::uuid end`,
      timeoutMs,
    )
    return rows.length > 0 ? { valueHashes: rows.map(({ valueHash }) => valueHash) } : null
  }

  return {
    /**
     * A new challenge. With an Idempotency-Key, only a deployment that is created under the same key can use it: the value
     * is public as soon as it is in DNS.
     */
    async createChallenge(domain: string, key: string | undefined): Promise<DomainChallenge> {
      const value = createValue(domain, key)
      const [row] = await withTimeout(
        sql<{ expiresAt: Date }[]>`
          with expired as (
            delete from domain_challenges where value_hash in (
              select value_hash from domain_challenges where expires_at <= ${now}
              order by expires_at limit ${DELETED_PER_CHALLENGE} for update skip locked
            )
          )
          insert into domain_challenges (value_hash, domain, key_hash, expires_at)
          values (decode(${hashValue(value)}, 'hex'), ${domain}, ${key === undefined ? null : hashIdempotencyKey(key)},
            ${now} + ${milliseconds(CHALLENGE_TTL_MS)})
          on conflict (value_hash) do update set expires_at = excluded.expires_at
          returning expires_at as "expiresAt"`,
        timeoutMs,
      )
      if (!row) throw new Error('the challenge was not stored')
      return { domain, name: toChallengeName(domain), type: 'TXT', value, expiresAt: row.expiresAt.toISOString() }
    },

    /** Whether the client that claims an FQDN controls the domain. A name of a pool needs no proof. */
    async prove(claimant: Claimant): Promise<ProofOutcome> {
      const { name, sovereignFQDN } = claimant.spec
      if (!isRequired || name) return { kind: 'proven', proof: null }
      if (sovereignFQDN.length > MAX_PROVABLE_DOMAIN_LENGTH) {
        const detail = `sovereignFQDN must have at most ${MAX_PROVABLE_DOMAIN_LENGTH} characters, so that the name of its TXT record is not too long.`
        return { kind: 'domain-not-proven', detail }
      }
      const record = toChallengeName(sovereignFQDN)
      const lookup = await lookUpTxt(record)
      if (lookup.kind === 'failed') {
        const detail = `The TXT record ${record} could not be looked up (${lookup.reason}); check the name servers of the domain, or retry later.`
        return { kind: 'dns-unavailable', detail }
      }
      const proof = lookup.kind === 'found' ? await findProof(claimant, lookup.texts) : null
      if (proof) return { kind: 'proven', proof }
      const detail = `Prove that you control ${sovereignFQDN}: create the TXT record ${record} with the value from POST /api/v1/domains/challenge, then retry.`
      return { kind: 'domain-not-proven', detail }
    },
  }
}

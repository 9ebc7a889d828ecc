import { hash, hkdfSync, randomBytes } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { type DomainChallenge, MAX_PROVABLE_DOMAIN_LENGTH, toChallengeName } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import type { RenewCommand } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import { hashIdempotencyKey, hashToken } from '../lib/token.ts'
import type { Caller } from '../naming/naming.ts'
import type { DeploymentSpec, RejectionWithDetail } from './domain/types.ts'

// How a deployment gets its FQDN: it reserves a name of a pool, or its client proves control of a domain of its own.

export type ReservationOperations = Pick<
  AllocationService,
  'reserve' | 'retake' | 'commit' | 'update' | 'release' | 'renew' | 'isActiveWithToken'
>

export type NameCommit =
  /** If `isPublished` is false, the reconciler publishes the records later. */
  { readonly kind: 'committed'; readonly isPublished: boolean } | { readonly kind: 'lost'; readonly reason: string }

/** The deployment that a name belongs to. */
export interface Holder {
  readonly id: string
  readonly spec: DeploymentSpec
  readonly lineageId: string
  readonly reservationTokenHash: Buffer | null
}

/** The history shows the id of the deployment as the id of the request. */
const toCaller = (id: string): Caller => ({ actor: 'deployment', address: null, requestId: id })

const toReservation = ({ spec, reservationTokenHash: tokenHash }: Holder): RenewCommand | null =>
  spec.name && tokenHash ? { ...spec.name, tokenHash } : null

const toCreatedBy = ({ orgName }: DeploymentSpec): string => `deployment of ${orgName}`

export type NameReservation =
  /** The hash is null without a name. */
  { readonly kind: 'reserved'; readonly tokenHash: Buffer | null } | { readonly kind: 'subdomain-conflict' }

/**
 * The reservation of a deployment's name. Each call can be repeated after a crash. Without a name, each does nothing.
 */
export class ReservationClient {
  readonly #allocations: ReservationOperations

  constructor(allocations: ReservationOperations) {
    this.#allocations = allocations
  }

  /** Reserves the name of a new deployment. A repeated key returns the same reservation. */
  async reserve(spec: DeploymentSpec, caller: Caller, key: string | undefined): Promise<NameReservation> {
    if (!spec.name) return { kind: 'reserved', tokenHash: null }
    const command = { ...spec.name, createdBy: toCreatedBy(spec) }
    const outcome = await this.#allocations.reserve(command, caller, key)
    // All other rejections concern the form of the name, which has been validated.
    return outcome.kind === 'granted'
      ? { kind: 'reserved', tokenHash: hashToken(outcome.reservationToken) }
      : { kind: 'subdomain-conflict' }
  }

  /**
   * Takes the name again if it was freed. The hash of the new token derives from that of the former one and from the
   * generation, so a repetition takes the same reservation, and no text is a token with this hash.
   */
  async retake(holder: Holder & { readonly generation: number }, caller: Caller): Promise<NameReservation> {
    const reservation = toReservation(holder)
    if (!reservation) return { kind: 'reserved', tokenHash: null }
    const { tokenHash: formerTokenHash, ...name } = reservation
    const tokenHash = hash('sha256', Buffer.concat([formerTokenHash, Buffer.from(`${holder.generation}`)]), 'buffer')
    const { lineageId, spec } = holder
    const command = { ...name, tokenHash, formerTokenHash, lineageId, createdBy: toCreatedBy(spec) }
    const { kind } = await this.#allocations.retake(command, caller)
    if (kind === 'granted') return { kind: 'reserved', tokenHash }
    return kind === 'held' ? { kind: 'reserved', tokenHash: formerTokenHash } : { kind: 'subdomain-conflict' }
  }

  /** Points the name at the load balancer. The records of an active name change in one write. */
  async commit(holder: Holder, loadBalancerIP: string): Promise<NameCommit> {
    const reservation = toReservation(holder)
    if (!reservation) return { kind: 'committed', isPublished: true }
    const { sovereignFQDN } = holder.spec
    const command = { ...reservation, sovereignFQDN, target: { loadBalancerIP } }
    const outcome = await this.#allocations.commit(command, toCaller(holder.id), undefined)
    if (outcome.kind === 'committed') {
      return { kind: 'committed', isPublished: outcome.allocation.dns.status === 'published' }
    }
    // Committed by an earlier operation, or by an earlier run that crashed.
    const update = { ...reservation, change: { loadBalancerIP } }
    const moved =
      outcome.kind === 'already-active' ? await this.#allocations.update(update, toCaller(holder.id), undefined) : null
    if (moved?.kind === 'updated')
      return { kind: 'committed', isPublished: moved.allocation.dns.status === 'published' }
    const cause = 'detail' in outcome ? outcome.detail : 'It was released by another client, or it expired.'
    return {
      kind: 'lost',
      reason: `The infrastructure is up, but the name could not be committed (${outcome.kind}). ${cause}`,
    }
  }

  /** False if the name no longer belongs to this deployment. */
  async renew(holder: Holder): Promise<boolean> {
    const reservation = toReservation(holder)
    if (!reservation) return true
    const { kind } = await this.#allocations.renew(reservation)
    if (kind === 'already-active') return this.#allocations.isActiveWithToken(reservation, reservation.tokenHash)
    return kind === 'renewed'
  }

  /** Releases the name if it still belongs to this deployment. `requester`: who asked for it; by default, its run. */
  async release(holder: Holder, requester?: Caller): Promise<void> {
    const reservation = toReservation(holder)
    const caller = { ...(requester ?? toCaller(holder.id)), actor: 'deployment' as const }
    if (reservation) await this.#allocations.release(reservation, caller, undefined)
  }
}

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
          when c.lineage_id is null then c.key_hash is null or c.key_hash = decode(${keyHash}::text, 'hex')
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
          values (decode(${hashValue(value)}, 'hex'), ${domain},
            decode(${key === undefined ? null : hashIdempotencyKey(key)}::text, 'hex'),
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

export type TxtLookup =
  /** The texts of the TXT records of the name, each with its character strings joined (RFC 7208 section 3.3). */
  | { readonly kind: 'found'; readonly texts: readonly string[] }
  /** The name does not exist, or has no TXT record. */
  | { readonly kind: 'absent' }
  /** No resolver gave an answer about the name. `reason`: an error code, for people. */
  | { readonly kind: 'failed'; readonly reason: string }

export type LookUpTxt = (name: string) => Promise<TxtLookup>

export interface TxtResolverOptions {
  /** Addresses, with ports if they are not 53; empty: those of the operating system. */
  readonly servers: readonly string[]
  /** Milliseconds for the whole lookup. */
  readonly timeoutMs: number
}

const ATTEMPTS = 2

/** What a resolver answers if there is no such name or no such record. Every other error says nothing about the name. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

const toCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'

/** Looks TXT records up with the protocol of DNS only: an entry in a hosts file proves nothing. Nothing is cached here. */
export const createTxtResolver =
  ({ servers, timeoutMs }: TxtResolverOptions): LookUpTxt =>
  async name => {
    // One resolver per lookup, so that a cancellation does not affect others.
    const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / ATTEMPTS), tries: ATTEMPTS })
    if (servers.length > 0) resolver.setServers(servers)
    // Several servers, each with its attempts, could take longer.
    const deadline = setTimeout(() => resolver.cancel(), timeoutMs)
    try {
      // Absolute: the search list of the operating system must not apply.
      const records = await resolver.resolveTxt(`${name}.`)
      return { kind: 'found', texts: records.map(strings => strings.join('')) }
    } catch (error) {
      const code = toCode(error)
      if (ABSENT.includes(code)) return { kind: 'absent' }
      return { kind: 'failed', reason: code === 'ECANCELLED' ? 'ETIMEOUT' : code }
    } finally {
      clearTimeout(deadline)
    }
  }

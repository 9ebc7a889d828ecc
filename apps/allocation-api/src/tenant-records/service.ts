import { randomBytes, randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { DnsState } from '@pool/contract'
import { NotWrittenError } from '@pool/runtime/database/errors'
import type { Writer } from '@pool/runtime/database/writer'
import { toSharedWrite } from '../allocation/sql.ts'
import { type Idempotency, isDuplicate } from '../idempotency/idempotency.ts'
import { createRateLimiter } from '../lib/rate-limiter.ts'
import { hashRecordToken, toRecordToken } from '../lib/token.ts'
import { type Caller, type PoolName, type Pools, toFqdn, validatePool } from '../naming/naming.ts'
import { toDnsState } from '../reconciler/domain/status.ts'
import type { WaitUntilApplied } from '../reconciler/reconciler.ts'
import { type ChangeResult, changeRecords, limitScope, type RecordRules } from '../records/domain/change.ts'
import { deriveRecords, sameRecords } from '../records/domain/derive.ts'
import { describeChanges, toTenantSets } from '../records/domain/describe.ts'
import { dropOldChallenges, findNextExpiry, type StoredRecords } from '../records/domain/stored.ts'
import type { MintCommand, MintOutcome, SetChange, TenantRecords } from '../records/domain/types.ts'
import type { NameRecords, RecordsReader, TokenRecords } from './reader.ts'
import { toTokenInfo } from './sql.ts'
import { deleteTokenStatement } from './statements/delete-token.ts'
import { mintStatement } from './statements/mint.ts'
import { type WriteDecision, writeStatement } from './statements/write.ts'

export interface TenantRecordsOptions {
  readonly writer: Writer
  readonly reader: RecordsReader
  readonly idempotency: Idempotency
  readonly rules: Omit<RecordRules, 'pools'>
  readonly pools: () => Pools
  readonly waitUntilApplied: WaitUntilApplied
  /** How long a write is decided again because another one came first, in milliseconds. */
  readonly timeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Writing requests of a name in a minute: the API of a DNS provider has limits too. */
const WRITES_PER_MINUTE = 60
const MAX_LIMITED_NAMES = 10_000
/** 256 bits. */
const TOKEN_BYTES = 32
/** Names whose values have become too old, in one run of the job. */
const DUE_BATCH = 1_000

const SERVICE: Caller = { actor: 'sweeper', address: null, requestId: '' }
const UNAUTHORIZED = { kind: 'unauthorized' } as const

/** What the service does by itself. */
export interface TenantRecordJobs {
  /** Removes the values of challenges that are too old, and derives records again that an older build has left out. */
  settleDue(signal: AbortSignal): Promise<void>
}

export const createTenantRecords = ({
  writer,
  reader,
  idempotency,
  pools,
  waitUntilApplied,
  timeoutMs,
  now,
  ...options
}: TenantRecordsOptions): TenantRecords & TenantRecordJobs => {
  const { maxScope, template } = options.rules
  const challengeTtl = template.challengeTtl ?? template.ttl
  const rules = (): RecordRules => ({ ...options.rules, pools: pools().known })
  const mint = writer.share(toSharedWrite(mintStatement))
  const deleteToken = writer.share(toSharedWrite(deleteTokenStatement))
  const write = writer.share(toSharedWrite(writeStatement))
  const limitWrites = createRateLimiter({ perMinute: WRITES_PER_MINUTE, maxCallers: MAX_LIMITED_NAMES })
  const needsProof = ({ actor }: Caller) => actor !== 'operator'

  const findByToken = (tokenDigest: Buffer) => (maxScope === 'off' ? null : reader.findByToken(tokenDigest))

  const decide = (name: TokenRecords, changes: readonly SetChange[], records = name.records): ChangeResult =>
    changeRecords(records, changes, { ...name, fqdn: toFqdn(name.poolDomain, name.subdomain) }, rules())

  /** Stores the records that were decided on `name`. */
  const store = async (
    name: NameRecords,
    records: StoredRecords,
    { tokenDigest = null, caller, isDue = false }: { tokenDigest?: Buffer | null; caller: Caller; isDue?: boolean },
  ): Promise<WriteDecision> => {
    const derived = deriveRecords(toFqdn(name.poolDomain, name.subdomain), name.target, records, template)
    const desired = sameRecords(derived, name.desired) ? null : derived
    if (!isDue && desired === null && isDeepStrictEqual(records, name.records))
      return { kind: 'changed', version: null }
    const decision = await write({
      poolDomain: name.poolDomain,
      subdomain: name.subdomain,
      caller,
      expected: name,
      tokenDigest,
      records,
      dueAt: findNextExpiry(records),
      desired,
      detail: desired && (describeChanges(name.records, records) ?? 'derived again'),
    })
    if (isDuplicate(decision)) throw new Error('a write without an Idempotency-Key returned duplicate-request')
    return decision
  }

  /** Repeats what another write came first of. */
  const untilDecided = async <Result>(attempt: () => Promise<Result | null>): Promise<Result> => {
    for (const deadline = now() + timeoutMs; ; ) {
      const result = await attempt()
      if (result !== null) return result
      if (now() >= deadline) throw new NotWrittenError('the records of the name change too often')
    }
  }

  const minted = (command: MintCommand, token: string, info: ReturnType<typeof toTokenInfo>): MintOutcome => ({
    kind: 'minted',
    minted: { ...info, token, fqdn: toFqdn(command.poolDomain, command.subdomain) },
  })

  /** Removes what an owner has set. Null: another client has the name since. */
  const removeOwner = (name: PoolName, owner: string, reservationHash: Buffer, caller: Caller) =>
    untilDecided(async () => {
      const found = await reader.findByName(name)
      if (!found?.reservationHash.equals(reservationHash)) return 'not-found'
      const isOther = (own: { readonly owner: string }) => own.owner !== owner
      const { sets, challenges } = found.records
      const records = { sets: sets.filter(isOther), challenges: challenges.filter(isOther) }
      if (found.state !== 'active') return 'removed'
      return (await store(found, records, { caller })).kind === 'changed' ? 'removed' : null
    })

  return {
    async mintToken(command, caller, idempotencyKey) {
      const { poolDomain, subdomain, tokenHash, deploymentTokenHash, scope, owner, expiresInDays } = command
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      if (maxScope === 'off' || limitScope(scope, maxScope) !== scope) {
        const detail =
          maxScope === 'off'
            ? 'This installation has no records of tenants.'
            : 'This installation has tokens of the scope acme only.'
        return { kind: 'not-supported', detail }
      }
      const hashes = [tokenHash, deploymentTokenHash].map(hash => hash?.toString('hex') ?? null)
      const content = ['mint-token', poolDomain, subdomain, ...hashes, scope, owner, expiresInDays ?? null]
      return idempotency.executeThenReplay<MintOutcome>(idempotencyKey, content, {
        execute: claim =>
          untilDecided(async () => {
            const token = toRecordToken(claim?.secret() ?? randomBytes(TOKEN_BYTES))
            const request = { ...command, caller, claim, needsProof: needsProof(caller) }
            const decision = await mint({ ...request, id: randomUUID(), tokenDigest: hashRecordToken(token) })
            if (decision.kind === 'minted') return minted(command, token, decision.info)
            return decision.kind === 'stale' ? null : isDuplicate(decision) ? decision : { kind: decision.kind }
          }),
        success: 'minted',
        replay: async (_, __, secret) => {
          const token = toRecordToken(secret())
          const row = await reader.findToken(hashRecordToken(token))
          return row && minted(command, token, toTokenInfo(row))
        },
      })
    },

    async listTokens(name) {
      const rejection = validatePool(name.poolDomain, pools())
      if (rejection) return rejection
      const tokens = await reader.listTokens(name)
      return tokens ? { kind: 'listed', tokens: tokens.map(toTokenInfo) } : { kind: 'not-found' }
    },

    async deleteToken({ withRecords, ...command }, caller) {
      const rejection = validatePool(command.poolDomain, pools())
      if (rejection) return rejection
      const found = withRecords ? await reader.findOwner(command, needsProof(caller)) : null
      if (found?.isOwn) await removeOwner(command, found.owner, found.reservationHash, caller)
      const decision = await deleteToken({ ...command, caller, needsProof: needsProof(caller) })
      if (isDuplicate(decision)) throw new Error('a deletion without an Idempotency-Key returned duplicate-request')
      return decision
    },

    async listRecords(name) {
      const found = await reader.findByName(name)
      return found ? toTenantSets(found.records, challengeTtl) : []
    },

    async read(tokenDigest) {
      const found = await findByToken(tokenDigest)
      if (!found) return UNAUTHORIZED
      const { poolDomain, subdomain, scope, owner, state, records } = found
      return {
        kind: 'read',
        name: { poolDomain, subdomain },
        fqdn: toFqdn(poolDomain, subdomain),
        scope: limitScope(scope, maxScope),
        owner,
        state,
        sets: toTenantSets(dropOldChallenges(records, found.now), challengeTtl),
        dns: toCurrentDns(found),
      }
    },

    async review(tokenDigest, changes) {
      const found = await findByToken(tokenDigest)
      if (!found) return UNAUTHORIZED
      const others = { ...found.records, sets: found.records.sets.filter(({ owner }) => owner !== found.owner) }
      const { accepted, refusals } = decide(found, changes, others)
      return { kind: 'reviewed', accepted, refusals }
    },

    async change(tokenDigest, changes, { mode, waitMs }, caller) {
      const first = await findByToken(tokenDigest)
      if (!first) return UNAUTHORIZED
      const limit = limitWrites(toFqdn(first.poolDomain, first.subdomain), now())
      if (limit.kind !== 'allowed') return { kind: 'rate-limited', retryAfterSeconds: limit.retryAfterSeconds }
      let found: TokenRecords | null = first
      const decided = await untilDecided(async () => {
        const name = found ?? (await findByToken(tokenDigest))
        found = null
        if (!name) return UNAUTHORIZED
        const { records, refusals } = decide(name, changes)
        const [refusal, ...others] = refusals
        if (refusal && (mode === 'all' || refusals.length === changes.length)) {
          return { kind: 'refused', refusals: [refusal, ...others] } as const
        }
        const decision = await store(name, records, { tokenDigest, caller: { ...caller, actor: 'tenant' } })
        return decision.kind === 'stale'
          ? null
          : ({ kind: 'stored', name, refusals, version: decision.version } as const)
      })
      if (decided.kind !== 'stored') return decided
      const { name, refusals } = decided
      const version = decided.version ?? name.version
      if (version === null) return { kind: 'changed', refusals, dns: { status: 'pending' } }
      const { poolDomain: zone, subdomain } = name
      // Starts the sync in any case.
      const applied = waitUntilApplied({ zone, subdomain, version, waitMs: waitMs ?? 0 })
      if (waitMs !== null) {
        const dns = await applied
        // A release also ends the wait: the provider has nothing of this holder then.
        const current = await reader.findByName(name)
        if (!current?.reservationHash.equals(name.reservationHash)) return UNAUTHORIZED
        return { kind: 'changed', refusals, dns }
      }
      return { kind: 'changed', refusals, dns: decided.version === null ? toCurrentDns(name) : { status: 'pending' } }
    },

    async settleDue(signal) {
      for (const due of await reader.listDue(DUE_BATCH)) {
        if (signal.aborted) return
        const name = await reader.findByName(due)
        // What is stale now is due at the next run.
        if (name?.state !== 'active') continue
        await store(name, dropOldChallenges(name.records, name.now), { caller: SERVICE, isDue: true })
      }
    },
  }
}

const toCurrentDns = ({ version, appliedVersion, lastError }: NameRecords): DnsState =>
  version === null || appliedVersion === null
    ? { status: 'pending' }
    : toDnsState({ version, appliedVersion, lastError })

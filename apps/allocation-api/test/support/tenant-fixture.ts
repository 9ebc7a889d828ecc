import type { Target, TargetChange } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { createAllocationService } from '../../src/allocation/service.ts'
import type { RecordTemplate } from '../../src/dns/domain/target.ts'
import { createIdempotency } from '../../src/idempotency/idempotency.ts'
import { hashRecordToken, hashToken } from '../../src/lib/token.ts'
import { type Caller, createPools } from '../../src/naming/naming.ts'
import type { WaitUntilApplied } from '../../src/reconciler/reconciler.ts'
import type { RecordsOptions, SetChange, TokenScope } from '../../src/records/domain/types.ts'
import { createRecordsReader } from '../../src/tenant-records/reader.ts'
import { createTenantRecords } from '../../src/tenant-records/service.ts'
import { createTestWriter } from './database.ts'

const timeoutMs = 20_000
export const inCluster: Caller = { actor: 'in-cluster', address: null, requestId: 'tenant' }
export const operator: Caller = { actor: 'operator', address: null, requestId: 'operator' }

export interface TenantSetup {
  readonly poolDomain?: string
  readonly waitUntilApplied?: WaitUntilApplied
  readonly options?: Partial<RecordsOptions>
  readonly template?: RecordTemplate
  readonly coolOffMs?: number
  readonly now?: () => number
}

export interface MintOptions {
  readonly scope?: TokenScope
  readonly owner?: string
  readonly expiresInDays?: number
  readonly key?: string
}

/** The allocation of names and the records of their tenants on one database, as a client of `pool.test` uses them. */
export const createTenants = (
  sql: Sql,
  {
    poolDomain = 'pool.test',
    waitUntilApplied = async () => ({ status: 'pending' }),
    options = {},
    template = { names: ['@', '*'], ttl: 60, challengeTtl: 1 },
    coolOffMs = 0,
    now = () => performance.now(),
  }: TenantSetup = {},
) => {
  const writer = createTestWriter(sql, { timeoutMs })
  const idempotency = createIdempotency(sql, { timeoutMs })
  const reader = createAllocationReader(sql, { timeoutMs })
  const pools = () => createPools([poolDomain, 'other.test'])
  const acceptsLoopback = false
  const allocations = createAllocationService({
    repository: createAllocationRepository(writer, {
      reservation: { ttlMs: 600_000, maxAgeMs: 86_400_000 },
      coolOffMs,
    }),
    reader,
    countByState: reader.countByState,
    idempotency,
    waitUntilApplied,
    pools,
    acceptsLoopback,
    canDelegate: true,
    recordTemplate: template,
    bucketPrefix: 'test',
    statementTimeoutMs: timeoutMs,
    now,
    onSwept() {},
  })
  const records = createTenantRecords({
    writer,
    reader: createRecordsReader(sql, { timeoutMs }),
    idempotency,
    rules: {
      maxScope: 'records',
      types: ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV', 'NS'],
      limit: 100,
      minTtlSeconds: 60,
      ...options,
      template,
      acceptsLoopback,
    },
    pools,
    waitUntilApplied,
    timeoutMs,
    now,
  })
  const toDigest = (token: string) => hashRecordToken(token)

  return {
    allocations,
    records,
    async reserve(subdomain: string, formerToken?: string): Promise<string> {
      const formerTokenHash = formerToken === undefined ? undefined : hashToken(formerToken)
      const granted = await allocations.reserve(
        { poolDomain, subdomain, createdBy: '', formerTokenHash },
        inCluster,
        undefined,
      )
      if (granted.kind !== 'granted') throw new Error(`${subdomain}: ${granted.kind}`)
      return granted.reservationToken
    },
    commit: (subdomain: string, token: string, target: Target = { loadBalancerIP: '192.0.2.1' }) =>
      allocations.commit(
        { poolDomain, subdomain, tokenHash: hashToken(token), sovereignFQDN: `${subdomain}.${poolDomain}`, target },
        inCluster,
        undefined,
      ),
    /** Reserves and commits a name. Returns its token. */
    async activate(subdomain: string, target?: Target): Promise<string> {
      const token = await this.reserve(subdomain)
      const committed = await this.commit(subdomain, token, target)
      if (committed.kind !== 'committed') throw new Error(`${subdomain}: ${committed.kind}`)
      return token
    },
    update: (subdomain: string, change: TargetChange) =>
      allocations.update({ poolDomain, subdomain, change }, operator, undefined),
    release: (subdomain: string) => allocations.release({ poolDomain, subdomain }, operator, undefined),
    tryMint: (
      subdomain: string,
      reservationToken: string | null,
      { scope = 'records', owner = 'default', expiresInDays, key }: MintOptions = {},
    ) =>
      records.mintToken(
        {
          poolDomain,
          subdomain,
          tokenHash: reservationToken === null ? undefined : hashToken(reservationToken),
          scope,
          owner,
          expiresInDays,
        },
        reservationToken === null ? operator : inCluster,
        key,
      ),
    /** Mints a token, and returns it. */
    async mint(subdomain: string, options?: MintOptions): Promise<string> {
      const outcome = await this.tryMint(subdomain, null, options)
      if (outcome.kind !== 'minted') throw new Error(`${subdomain}: ${outcome.kind}`)
      return outcome.minted.token
    },
    read: (token: string) => records.read(toDigest(token)),
    review: (token: string, ...changes: SetChange[]) => records.review(toDigest(token), changes),
    /** Without a wait for the provider. */
    change: (token: string, ...changes: SetChange[]) =>
      records.change(toDigest(token), changes, { mode: 'all', waitMs: null }, inCluster),
    changeEach: (token: string, ...changes: SetChange[]) =>
      records.change(toDigest(token), changes, { mode: 'each', waitMs: null }, inCluster),
    /** Waits until the provider has the changes. */
    publish: (token: string, ...changes: SetChange[]) =>
      records.change(toDigest(token), changes, { mode: 'all', waitMs: timeoutMs }, inCluster),
    async desired(subdomain: string): Promise<string[]> {
      const rows = await sql<{ text: string }[]>`
        select concat_ws(' ', item ->> 'name', item ->> 'type', (
          select string_agg(value, ' ' order by value) from jsonb_array_elements_text(item -> 'values') value)) as text
        from dns_names, jsonb_array_elements(desired) item where zone = ${poolDomain} and subdomain = ${subdomain} order by 1`
      return rows.map(({ text }) => text)
    },
  }
}

export type Tenants = ReturnType<typeof createTenants>

export const put = (name: string, type: string, ...values: string[]): SetChange => ({ kind: 'put', name, type, values })
export const remove = (name: string, type: string): SetChange => ({ kind: 'delete', name, type })
/** A value of a challenge that ends in `text`. */
export const toChallenge = (text: string): string => text.padStart(43, 'x')
export const present = (name: string, text: string): SetChange => ({
  kind: 'add-challenge',
  name: `_acme-challenge.${name}`,
  value: toChallenge(text),
})
export const cleanUp = (name: string, text: string): SetChange =>
  ({ ...present(name, text), kind: 'remove-challenge' }) as SetChange

import { randomUUID } from 'node:crypto'
import type { Sql } from '@pool/database/client'
import { createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import type { Config } from 'allocation-api/src/config/config.ts'
import { createRecords, type RecordSet } from 'allocation-api/src/dns/domain/rrset.ts'
import type { DnsProvider } from 'allocation-api/src/dns/provider.ts'
import { indexRecords, planName } from 'allocation-api/src/reconciler/domain/plan.ts'
import { createZoneStore } from 'allocation-api/src/reconciler/sync-repository.ts'
import type { Ended } from '../load/bursts.ts'
import type { Name } from './provider-names.ts'

interface Committed {
  readonly subdomain: string
  readonly version: number
  readonly desired: readonly RecordSet[]
}

export interface OneWriteOptions {
  readonly sql: Sql
  readonly zone: string
  readonly provider: Pick<DnsProvider, 'read' | 'apply' | 'hasZoneTtl'>
  readonly config: Config
  readonly recordNames: readonly string[]
}

/** Longer than any call here takes. */
const DEADLINE_MS = 30_000

/** Work that is done one at a time, in the order in which it was asked for. */
const createTurns = () => {
  let last: Promise<unknown> = Promise.resolve()
  return <Result>(work: () => Promise<Result>): Promise<Result> => {
    const next = last.then(work)
    last = next.catch(() => undefined)
    return next
  }
}

/** Commits as they would be without passes that are shared: each writes its own records, when it is its turn. */
export const createOneWrite = ({ sql, zone, provider, config, recordNames }: OneWriteOptions) => {
  const { timeoutMs } = config.database
  const store = createAllocationRepository(sql, { timeoutMs })
  const zones = createZoneStore(sql, { timeoutMs })
  const hasZoneTtl = provider.hasZoneTtl ?? false
  const inTurn = createTurns()

  const decide = async ({ subdomain, reservationToken, address }: Name): Promise<Committed> => {
    const sovereignFQDN = `${subdomain}.${zone}`
    const loadBalancerIP = address()
    const desired = createRecords(sovereignFQDN, loadBalancerIP, {
      names: recordNames,
      ttl: config.dns.recordTtlSeconds,
    })
    const command = { poolDomain: zone, subdomain, reservationToken, sovereignFQDN, loadBalancerIP }
    const caller = { actor: 'in-cluster' as const, address: '127.0.0.1', requestId: randomUUID() }
    const decision = await store.commit(command, desired, caller)
    if (decision.kind !== 'committed') throw new Error(`not committed: ${decision.kind}`)
    return { subdomain, version: decision.version, desired }
  }

  /** Reads, subtracts, applies and remembers: what a pass does, for `names` alone. */
  const write = async (names: readonly Committed[]): Promise<void> => {
    const owners = names.map(({ subdomain }) => `${subdomain}.${zone}`)
    const read = await provider.read(zone, owners, AbortSignal.timeout(DEADLINE_MS))
    if (read.kind === 'unavailable') throw new Error(read.reason)
    const current = indexRecords(read.records)
    const changes = names.flatMap(({ subdomain, desired }) => {
      const name = { subdomain, desired, owned: desired, previous: [], hasInFlightWrite: false }
      const plan = planName(current, name, { zone, hasZoneTtl: hasZoneTtl })
      if (plan.kind === 'conflict') throw new Error(plan.reason)
      return plan.changes
    })
    const applied = await provider.apply(zone, changes, AbortSignal.timeout(DEADLINE_MS))
    if (applied.kind === 'unavailable') throw new Error(applied.reason)
    const [refused] = applied.refused
    if (refused) throw new Error(`${refused.name} was refused: ${refused.reason}`)
    await zones.applied(
      zone,
      names.map(name => ({ ...name, event: 'published', detail: null })),
    )
  }

  return {
    async commit(name: Name, isOver: () => boolean): Promise<Ended> {
      const committed = await decide(name)
      return inTurn(async () => {
        if (isOver()) return 'given up'
        await write([committed])
        name.moved()
        return 'done'
      })
    },
    /** All of them with one write: how they come there before anything is measured. */
    async publish(names: readonly Name[]): Promise<void> {
      await write(await Promise.all(names.map(decide)))
      for (const name of names) name.moved()
    },
  }
}

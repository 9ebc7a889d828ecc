import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import pLimit from 'p-limit'
import type { ZoneCheck } from '../dns/domain/result.ts'
import type { DnsProvider } from '../dns/provider.ts'
import { explainHidden, toWantedRecords } from '../reconciler/domain/plan.ts'
import { createReconcilerRepository } from '../reconciler/repository.ts'

export interface ZoneCheckOptions {
  readonly zones: readonly string[]
  /** Milliseconds for one zone. */
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

export interface CheckedZone {
  readonly zone: string
  readonly result: ZoneCheck
}

const MAX_PARALLEL_CHECKS = 4

/** Calls the provider for each zone. A provider that hangs or throws makes its zones unusable. */
export const checkZones = async (
  provider: Pick<DnsProvider, 'checkZone' | 'concurrency'>,
  { zones, timeoutMs, signal }: ZoneCheckOptions,
): Promise<readonly CheckedZone[]> => {
  const limit = pLimit(provider.concurrency ?? MAX_PARALLEL_CHECKS)
  const check = async (zone: string): Promise<ZoneCheck> => {
    const deadline = AbortSignal.timeout(timeoutMs)
    const ended = signal ? AbortSignal.any([signal, deadline]) : deadline
    try {
      // A provider can ignore its signal.
      return await withTimeout(provider.checkZone(zone, ended), timeoutMs + 100)
    } catch {
      const reason = `The DNS provider did not answer for ${zone} within ${timeoutMs / 1_000} s.`
      return { kind: 'unusable', reason, advice: 'check the network between this machine and the provider' }
    }
  }
  return Promise.all(zones.map(zone => limit(async () => ({ zone, result: await check(zone) }))))
}

/** Names of a pool that are compared with the zones of the provider. */
const MAX_NAMES = 1_000

/** Why resolvers do not get the records of the pool, or of some of its names. Rejects if the database fails. */
export const findHiddenNames = async (
  provider: Pick<DnsProvider, 'read'>,
  sql: Sql,
  pool: string,
  timeoutMs: number,
): Promise<readonly string[]> => {
  const names = await createReconcilerRepository(sql, { timeoutMs }).listNames(pool, '', MAX_NAMES)
  const read = await provider.read(pool, toWantedRecords(pool, names), AbortSignal.timeout(timeoutMs))
  if (read.kind === 'unavailable') return []
  const ofPool = [{ name: pool, type: 'A' }]
  const all = [ofPool, ...names.map(({ desired }) => desired)]
  return [...new Set(all.flatMap(desired => explainHidden(desired, read.hiding) ?? []))]
}

export interface UnusableZones {
  readonly zones: readonly string[]
  readonly reason: string
  readonly advice: string
}

/** One entry for each cause: a wrong key concerns every zone. */
export const groupUnusable = (checked: readonly CheckedZone[]): readonly UnusableZones[] => {
  const unusable = checked.flatMap(({ zone, result }) =>
    result.kind === 'unusable' ? [{ zone, cause: result.reason.replaceAll(zone, '<zone>'), ...result }] : [],
  )
  return [...Map.groupBy(unusable, ({ cause }) => cause).values()].map(group => ({
    zones: group.map(({ zone }) => zone),
    reason: group.length === 1 ? (group[0]?.reason ?? '') : (group[0]?.cause ?? ''),
    advice: group[0]?.advice ?? '',
  }))
}

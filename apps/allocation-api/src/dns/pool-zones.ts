import { isHostName } from '@pool/contract'
import type { EnvReader } from '@pool/runtime/service/env'
import type { Unavailable, ZonePart, ZoneSearch } from './domain/result.ts'
import { hidesPool, isAtOrBelow, namesUpTo, type RecordSet, toOwnerName } from './domain/rrset.ts'
import type { DnsProvider, ZoneOf } from './provider.ts'

const VARIABLE = 'DNSPROVIDER_ZONES'

/** The zones of pools, from `pool=zone` items. */
export const readPoolZones = (env: EnvReader): ReadonlyMap<string, string> => {
  const zones = new Map<string, string>()
  for (const item of env.list(VARIABLE) ?? []) {
    const [pool = '', zone = '', ...others] = item.split('=').map(domain => domain.replace(/\.$/, ''))
    const isValid = others.length === 0 && [pool, zone].every(domain => isHostName(`name.${domain}`))
    if (!isValid) env.addIssue(VARIABLE, `must be a list of pool=zone, which "${item}" is not`)
    else if (!isAtOrBelow(pool, zone)) env.addIssue(VARIABLE, `must not have ${item}: the pool is not in that zone`)
    else if (zones.has(pool)) env.addIssue(VARIABLE, `must have one zone for the pool ${pool}`)
    else zones.set(pool, zone)
  }
  return zones
}

/** A zone can be created, or deleted. */
const MAX_AGE_MS = 600_000

/** For so long, a pool without a zone is not searched for again. A zone of its own name is found at once. */
const MAX_ABSENT_MS = 30_000

/** Which zone of the provider has the names of each pool: the configured one, else the longest one that it has. */
export class PoolZones {
  readonly #configured: ReadonlyMap<string, string>
  /** `foundAt`: of `performance.now`. */
  readonly #found = new Map<string, { readonly zone: string; readonly foundAt: number }>()

  /** By pool, of `performance.now`: when the provider had no zone for it. */
  readonly #absentAt = new Map<string, number>()

  constructor(configured: ReadonlyMap<string, string>) {
    this.#configured = configured
  }

  readonly zoneOf: ZoneOf = pool => this.#configured.get(pool) ?? this.#found.get(pool)?.zone ?? pool

  isKnown(pool: string): boolean {
    const foundAt = this.#found.get(pool)?.foundAt
    return this.#configured.has(pool) || (foundAt !== undefined && performance.now() - foundAt < MAX_AGE_MS)
  }

  /** Finds the zone of the pool if necessary. Without one, the provider says that it has no zone of the pool's name. */
  async find(pool: string, hasZone: (name: string) => Promise<boolean | Unavailable>): Promise<Unavailable | null> {
    const absentAt = this.#absentAt.get(pool)
    if (this.isKnown(pool) || (absentAt !== undefined && performance.now() - absentAt < MAX_ABSENT_MS)) return null
    const [, ...labels] = pool.split('.')
    for (const name of [pool, ...labels.map((_, i) => labels.slice(i).join('.'))]) {
      const answer = await hasZone(name)
      if (typeof answer !== 'boolean') return answer
      if (!answer) continue
      this.#found.set(pool, { zone: name, foundAt: performance.now() })
      return null
    }
    this.#found.delete(pool)
    this.#absentAt.set(pool, performance.now())
    return null
  }

  forget(pool: string): void {
    this.#found.delete(pool)
  }
}

/** A list of all zones is used for as many times as long as it took. */
const LIST_USE = 20

/** Names per drift check whose zones are asked for one by one. The next check continues after them. */
const MAX_ASKED_NAMES = 5_000

/**
 * Limits a provider to the names of the pools: no result has a record of the zone outside of the pool, no change reaches one,
 * and each read says what hides names of the pool: other zones of the provider, and records at or above the pool.
 */
export const withinPools = (provider: DnsProvider, zones: PoolZones): DnsProvider => {
  const { zoneOf } = zones
  const lists = new Map<string, { readonly search: ZoneSearch; readonly usableUntil: number }>()
  /** By pool: where the next drift check continues. */
  const starts = new Map<string, number>()

  const find = async (pool: string, signal: AbortSignal): Promise<Unavailable | null> =>
    provider.hasZone ? zones.find(pool, async name => provider.hasZone?.(name, signal) ?? false) : null

  const inPool = (pool: string, sets: readonly RecordSet[]) => sets.filter(({ name }) => isAtOrBelow(name, pool))

  /** The zones that answer for some of `names`, or for the whole pool. */
  const findHiding = async (pool: string, names: Iterable<string>, signal: AbortSignal, onProgress?: () => void) => {
    if (!provider.findZones) return { kind: 'found' as const, zones: new Map<string, 'zone'>(), isAll: true }
    const zone = zoneOf(pool)
    const asked = new Set([pool, ...names].flatMap(name => namesUpTo(name.replace(/^\*\./, ''), zone)))
    asked.delete(zone)
    const startedAt = performance.now()
    const list = lists.get(pool)
    const isUsable = list && startedAt < list.usableUntil
    const search = isUsable ? list.search : await provider.findZones(pool, [...asked], signal, onProgress)
    if (search.kind === 'unavailable') return search
    const now = performance.now()
    if (!isUsable && search.isAll) lists.set(pool, { search, usableUntil: now + LIST_USE * (now - startedAt) })
    const hides = (other: string) =>
      other !== zone && isAtOrBelow(other, zone) && (isAtOrBelow(other, pool) || isAtOrBelow(pool, other))
    const found = new Map(search.zones.filter(hides).map(other => [other, 'zone'] as const))
    // The zone of the pool is that one now, unless the configuration says otherwise.
    if ([...found.keys()].some(other => isAtOrBelow(pool, other))) zones.forget(pool)
    return { kind: 'found' as const, zones: found, isAll: search.isAll }
  }

  /** The record sets at or above the pool that hide all of its names. */
  const findAbove = (pool: string, zone: string, sets: readonly RecordSet[]) =>
    sets.filter(set => hidesPool(set, pool, zone)).map(({ name, type }) => [name, type] as const)

  return {
    ...provider,

    async read(pool, wanted, signal, onProgress) {
      const failure = await find(pool, signal)
      if (failure) return failure
      const named = [...wanted.names, ...wanted.branches]
      // What is at and below a branch is known after the read.
      const early = wanted.branches.length === 0 ? findHiding(pool, named, signal, onProgress) : undefined
      const zone = zoneOf(pool)
      const withAbove = { ...wanted, names: [...wanted.names, ...namesUpTo(pool, zone)] }
      const [result] = await Promise.all([provider.read(pool, withAbove, signal, onProgress), early])
      if (result.kind === 'unavailable') {
        if (result.scope === 'zone' && !result.isTransient) zones.forget(pool)
        return result
      }
      const records = inPool(pool, result.records)
      const below = () =>
        records.map(({ name }) => name).filter(name => wanted.branches.some(top => isAtOrBelow(name, top)))
      const hiding = await (early ?? findHiding(pool, [...named, ...below()], signal, onProgress))
      if (hiding.kind === 'unavailable') return hiding
      const { isFullZone, unserved, ...others } = result
      return {
        ...others,
        records,
        hiding: new Map([...findAbove(pool, zone, result.records), ...hiding.zones]),
        ...(unserved ? { unserved: inPool(pool, unserved) } : {}),
        // Of names that are added after the read, it is not known whether another zone answers for them.
        ...(isFullZone && hiding.isAll ? { isFullZone } : {}),
      }
    },

    async *readZone(pool, signal, onProgress): AsyncGenerator<ZonePart | Unavailable, void> {
      const failure = await find(pool, signal)
      if (failure) return yield failure
      const zone = zoneOf(pool)
      const start = starts.get(pool) ?? 0
      const above = new Map<string, string>()
      const names = new Set<string>()
      let count = 0
      let last = ''
      for await (const part of provider.readZone(pool, signal, onProgress)) {
        if (part.kind === 'unavailable') return yield part
        if (part.kind === 'restart') {
          names.clear()
          above.clear()
          count = 0
          yield part
          continue
        }
        for (const [name, type] of findAbove(pool, zone, part.records)) above.set(name, type)
        const records = inPool(pool, part.records)
        for (const { name } of records) {
          if (name === last) continue
          last = name
          if (count >= start && names.size < MAX_ASKED_NAMES) names.add(name)
          count += 1
        }
        yield { ...part, records, ...(part.unserved ? { unserved: inPool(pool, part.unserved) } : {}) }
      }
      starts.set(pool, start + MAX_ASKED_NAMES < count ? start + MAX_ASKED_NAMES : 0)
      const hiding = await findHiding(pool, names, signal, onProgress)
      if (hiding.kind === 'unavailable') return yield hiding
      yield { kind: 'part', records: [], hiding: new Map([...above, ...hiding.zones]) }
    },

    // In the zone of the read on which it is planned.
    async apply(pool, changes, signal, onProgress) {
      const [own = [], outside = []] = [true, false].map(isOwn =>
        changes.filter(change => isAtOrBelow(toOwnerName(change), pool) === isOwn),
      )
      const result = await provider.apply(pool, own, signal, onProgress)
      if (result.kind === 'unavailable' || outside.length === 0) return result
      const reason = `the name is not in the pool ${pool}`
      return {
        ...result,
        rejected: [...result.rejected, ...outside.map(change => ({ name: toOwnerName(change), reason }))],
      }
    },

    async checkZone(pool, signal) {
      // The check of the pool has a better reason than a failure to find its zone.
      await find(pool, signal)
      const result = await provider.checkZone(pool, signal)
      if (result.kind === 'unusable') return result
      const hiding = await findHiding(pool, [], signal)
      if (hiding.kind === 'unavailable') return result
      const around = [...hiding.zones.keys()].find(other => isAtOrBelow(pool, other))
      if (around === undefined) return result
      const reason = `The zone ${around} answers for the pool ${pool} instead of ${zoneOf(pool)}.`
      return { kind: 'unusable', reason, advice: `delete one of the two zones, or correct ${VARIABLE}` }
    },
  }
}

import type { Unavailable } from '../dns/domain/result.ts'
import { type Caller, canBeGranted } from '../naming/naming.ts'
import { Listing } from './domain/listing.ts'
import type { Orphan } from './domain/orphan.ts'
import type { LockedZone } from './locked-zone.ts'

/** What a call does with the orphans, or would do. */
export type OrphanAction = 'adopt' | 'remove'

export interface ChangeOrphansOptions {
  readonly action: OrphanAction
  /** Null: a dry run, which changes nothing. */
  readonly caller: Caller | null
  /** Only these names; null: all. */
  readonly subdomains: readonly string[] | null
}

/** The orphans of a zone. */
export interface OrphanList {
  /** The first `MAX_LISTED`, by name. */
  readonly orphans: readonly Orphan[]
  readonly orphanCount: number
}

export interface OrphanChange extends OrphanList {
  /** Those that were changed. 0 in a dry run. The others got records, or a holder, in the meantime. */
  readonly changedCount: number
}

/** The change of the orphans of a zone, or its plan. */
export interface OrphanChangeOutcome extends OrphanChange {
  readonly kind: 'orphans'
}

/** Names per statement. */
export const NAMES_PER_STATEMENT = 500

/** Those of `orphans`, names without a row at the read of the zone, that a client could have and that still have none. */
export const findOrphans = async <Found extends Pick<Orphan, 'subdomain'>>(
  { name: zone, tools: { repository, pools } }: LockedZone,
  orphans: readonly Found[],
): Promise<Found[]> => {
  const grantable = orphans.filter(({ subdomain }) => canBeGranted(zone, subdomain, pools()))
  if (grantable.length === 0) return []
  const rows = await repository.findNames(
    zone,
    grantable.map(({ subdomain }) => subdomain),
  )
  const known = new Set(rows.map(({ subdomain }) => subdomain))
  return grantable.filter(({ subdomain }) => !known.has(subdomain))
}

/**
 * Adopts the orphans of a zone as allocations, or has their records deleted; without a `caller`, only lists them. The
 * records themselves change in the next sync. Repeating it changes nothing.
 */
export const changeOrphans = async (
  zone: LockedZone,
  { action, caller, subdomains }: ChangeOrphansOptions,
): Promise<OrphanChangeOutcome | Unavailable> => {
  const wanted = subdomains && new Set(subdomains)
  const listing = new Listing<Orphan>()
  let changedCount = 0
  for await (const page of zone.scan()) {
    if (page.kind === 'unavailable') return page
    const found = await findOrphans(zone, page.orphans)
    const orphans = wanted ? found.filter(({ subdomain }) => wanted.has(subdomain)) : found
    listing.add(orphans)
    if (!caller) continue
    for (let i = 0; i < orphans.length; i += NAMES_PER_STATEMENT) {
      const batch = orphans.slice(i, i + NAMES_PER_STATEMENT)
      changedCount += (await zone.tools.operations[action](zone.name, batch, caller, zone.lease)).length
    }
  }
  return { kind: 'orphans', orphans: listing.items, orphanCount: listing.count, changedCount }
}

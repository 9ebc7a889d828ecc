import type { Unavailable } from '../dns/domain/result.ts'
import type { RecordSet } from '../dns/domain/rrset.ts'
import { canBeOfTarget, type RecordTemplate, toTargetText } from '../dns/domain/target.ts'
import { type Caller, canBeGranted } from '../naming/naming.ts'
import { Listing } from './domain/listing.ts'
import { type Orphan, OrphanCandidate } from './domain/orphan.ts'
import { indexRecords, type PlanOptions, planName } from './domain/plan.ts'
import { decideAction, type ResumeAction, type Trust, type TrustedName, type ZoneDifference } from './domain/resume.ts'
import type { ScannedName } from './domain/scan-entry.ts'
import { maxSerial, type StopCause } from './domain/zone-marker.ts'
import type { LockedZone } from './locked-zone.ts'
import { findOrphans } from './orphans.ts'

export interface ResumeOptions {
  readonly trust: Trust
  /** Null: a dry run, which changes nothing. */
  readonly caller: Caller | null
}

/** What a resume changes, or would change. */
export interface StoppedZoneChanges {
  readonly stopCause: StopCause
  /** As `Listing` chooses them: names with a row, by name, then names without one. */
  readonly differences: readonly ZoneDifference[]
  readonly differenceCount: number
}

export interface ResumePlan extends StoppedZoneChanges {
  readonly kind: 'planned'
}

export interface NotStopped {
  readonly kind: 'not-stopped'
}

/** A name with a row whose records differ from those that the database wants. */
interface NameDifference extends TrustedName {
  readonly isApplied: boolean
}

/** The differences of one page of the scan: of names with a row, or of names without one. */
interface DifferencePage {
  readonly kind: 'page'
  readonly names: readonly NameDifference[]
  readonly orphans: readonly Orphan[]
  /** What a resume does with all of these. */
  readonly decided: readonly ZoneDifference[]
}

const TRUSTED_ACTIONS: readonly ResumeAction[] = ['adopt', 'readdress', 'release']

/** A change is committed this long before its sync can find that the zone must be stopped. */
const MAX_STOP_DELAY_MS = 60_000

interface DifferenceOptions {
  readonly trust: Trust
  readonly stoppedMsAgo: number
  readonly plan: PlanOptions
}

/** Without what a tenant has set. */
const toDatabaseText = (desired: readonly RecordSet[], fqdn: string, template: RecordTemplate): string | null =>
  toTargetText(desired.filter(set => canBeOfTarget(set, fqdn, template)))

/** None if the zone has what the database wants. */
const findDifference = (
  { name: zone, tools: { pools, recordTemplate } }: LockedZone,
  { name, records, unserved, isAsDesired }: ScannedName,
  { trust, stoppedMsAgo, plan: options }: DifferenceOptions,
): NameDifference[] => {
  if (isAsDesired) return []
  const plan = planName(indexRecords(zone, { records, unserved }), { ...name, hasInFlightWrite: false }, options)
  if (plan.kind === 'changes' && plan.changes.length === 0) return []
  const { subdomain, version, desired, isApplied } = name
  const fqdn = `${subdomain}.${zone}`
  const candidate = new OrphanCandidate(fqdn, recordTemplate)
  for (const set of records) candidate.add(set, { isServed: true })
  // Null: the zone does not have all records of a target.
  const found = candidate.toOrphan(subdomain)
  const sides = {
    databaseAddress: toDatabaseText(desired, fqdn, recordTemplate),
    zoneAddress: toTargetText(found?.records ?? []),
  }
  const wasPublished = isApplied || name.isDriftRepair
  const isNewer = !wasPublished && name.changedMsAgo < stoppedMsAgo + MAX_STOP_DELAY_MS
  const canBeAdopted = canBeGranted(zone, subdomain, pools())
  const action = decideAction(trust, { ...sides, hasRecords: records.length > 0, wasPublished, isNewer, canBeAdopted })
  const trusted = action === 'release' ? [] : (found?.records ?? [])
  return [{ subdomain, version, ...sides, action, target: found?.target ?? null, desired: trusted, isApplied }]
}

const decideOrphan = ({ subdomain, records }: Orphan, trust: Trust): ZoneDifference => {
  const sides = { databaseAddress: null, zoneAddress: toTargetText(records) }
  const unknown = { hasRecords: true, wasPublished: false, isNewer: false, canBeAdopted: true }
  return { subdomain, ...sides, action: decideAction(trust, { ...sides, ...unknown }) }
}

const toListed = ({ subdomain, databaseAddress, zoneAddress, action }: ZoneDifference): ZoneDifference => ({
  subdomain,
  databaseAddress,
  zoneAddress,
  action,
})

async function* findDifferences(
  zone: LockedZone,
  trust: Trust,
  stoppedMsAgo: number,
): AsyncGenerator<DifferencePage | Unavailable, void> {
  for await (const page of zone.scan()) {
    if (page.kind === 'unavailable') return yield page
    const plan = await zone.planOptions(page.names.map(({ name }) => name))
    const names = page.names.flatMap(scanned => findDifference(zone, scanned, { trust, stoppedMsAgo, plan }))
    const orphans = await findOrphans(zone, page.orphans)
    const decided = [...names.map(toListed), ...orphans.map(orphan => decideOrphan(orphan, trust))]
    yield { kind: 'page', names, orphans, decided }
  }
}

/** What the names get: of those that changed since, what the database decides now. */
const recheck = async (
  { name: zone, tools: { repository, recordTemplate } }: LockedZone,
  decided: readonly ZoneDifference[],
  done: ReadonlySet<string>,
): Promise<ZoneDifference[]> => {
  const same = decided.filter(({ subdomain }) => done.has(subdomain))
  const changed = decided.filter(({ subdomain }) => !done.has(subdomain))
  if (changed.length === 0) return same
  const rows = await repository.findNames(
    zone,
    changed.map(({ subdomain }) => subdomain),
  )
  const bySubdomain = new Map(rows.map(row => [row.subdomain, row]))
  const current = changed.map(({ subdomain, zoneAddress }): ZoneDifference => {
    const desired = bySubdomain.get(subdomain)?.desired ?? []
    const databaseAddress = toDatabaseText(desired, `${subdomain}.${zone}`, recordTemplate)
    return { subdomain, databaseAddress, zoneAddress, action: databaseAddress === null ? 'withdraw' : 'publish' }
  })
  return [...same, ...current.filter(({ databaseAddress, zoneAddress }) => databaseAddress !== zoneAddress)]
}

/** Changes the names of a page as decided, and returns what they get. */
const settle = async (
  zone: LockedZone,
  { names, orphans, decided }: DifferencePage,
  trust: Trust,
  caller: Caller,
): Promise<ZoneDifference[]> => {
  const { repository, operations } = zone.tools
  const trusted = names.filter(({ action }) => TRUSTED_ACTIONS.includes(action))
  const others = names.filter(({ action }) => !TRUSTED_ACTIONS.includes(action))
  const drifted = others.filter(({ isApplied }) => isApplied)
  const done = new Set(others.map(({ subdomain }) => subdomain))
  const addDone = (subdomains: readonly string[]) => {
    for (const subdomain of subdomains) done.add(subdomain)
  }
  if (trusted.length > 0) addDone(await operations.trustZone(zone.name, trusted, caller, zone.lease))
  if (drifted.length > 0) await repository.markDrifted(zone.name, drifted, zone.lease)
  if (orphans.length > 0)
    addDone(await operations[trust === 'zone' ? 'adopt' : 'remove'](zone.name, orphans, caller, zone.lease))
  return recheck(zone, decided, done)
}

/**
 * Writes the marker of this database with a number above that of the zone, and ends the stop. The marker comes first: with
 * that of another database in the zone, the next sync would stop it again.
 */
const endStop = async (zone: LockedZone, zoneSerial: number): Promise<Unavailable | null> => {
  const { operations, repository } = zone.tools
  await operations.catchUpSerial(zone.name, zoneSerial, zone.lease)
  const result = await zone.writeMarker()
  if (result.kind === 'unavailable') return result
  const [rejection] = result.rejected
  if (rejection) {
    const reason = `The DNS provider rejected ${rejection.name}: ${rejection.reason}. Make room for it, then resume again.`
    return { kind: 'unavailable', scope: 'zone', reason }
  }
  await operations.resumeWrites(zone.name, zone.lease)
  await repository.retryNow(zone.name, zone.lease)
  return null
}

/**
 * Compares a stopped zone with the database, makes one of them like the other, name by name, and starts the writes again.
 * Names that the database wants otherwise than the zone has them become due. If it is interrupted, the zone stays stopped;
 * a repetition does the rest. Without a `caller`, it only lists what it would do.
 */
export const resumeZone = async (
  zone: LockedZone,
  { trust, caller }: ResumeOptions,
): Promise<ResumePlan | NotStopped | Unavailable> => {
  const otherProvider = await zone.findOtherProvider()
  if (otherProvider) return otherProvider
  const read = await zone.readMarkers()
  if (read.kind === 'unavailable') return read
  const { stopCause, stoppedMsAgo } = await zone.checkMarkers(read.markers, caller ? 'apply' : 'dry-run')
  if (!stopCause) return { kind: 'not-stopped' }
  const listing = new Listing<ZoneDifference>(({ action }) => action === 'withdraw' || action === 'release')
  for await (const page of findDifferences(zone, trust, stoppedMsAgo ?? 0)) {
    if (page.kind === 'unavailable') return page
    listing.add(caller ? await settle(zone, page, trust, caller) : page.decided)
  }
  const failure = caller ? await endStop(zone, maxSerial(read.markers)) : null
  return failure ?? { kind: 'planned', stopCause, differences: listing.items, differenceCount: listing.count }
}

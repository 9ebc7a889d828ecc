import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { Unavailable } from '../dns/domain/result.ts'
import type { RecordSet } from '../dns/domain/rrset.ts'
import type { Caller } from '../naming/caller.ts'
import { canBeGranted } from '../naming/naming.ts'
import { findOtherProvider, type MarkerContext, stopZone, writeMarker } from './check-markers.ts'
import { MAX_LISTED } from './diff-zone.ts'
import { OrphanCandidate } from './domain/orphan.ts'
import { indexRecords, type PlanOptions, planName } from './domain/plan.ts'
import { decideAction, type ResumeAction, type Trust, type ZoneDifference } from './domain/resume.ts'
import { findStopCause, maxSerial, parseMarkers, type StopCause, toMarkerName } from './domain/zone-marker.ts'
import { newVersionColumns } from './new-version.ts'
import {
  adoptNames,
  endedReservations,
  findOrphans,
  type OrphanContext,
  statementTime,
  unknownToken,
} from './orphans.ts'
import type { ProviderClient } from './provider-client.ts'
import type { ReconcilerRepository } from './repository.ts'
import { toPlanOptions } from './sync-zone.ts'
import { type Busy, holdDuring, type WithZoneLock, type ZoneLock } from './zone-lock.ts'
import { type ScannedName, scanZone } from './zone-scan.ts'
import type { ZoneWritesRepository } from './zone-writes.ts'

export interface ResumeContext extends OrphanContext, Omit<MarkerContext, 'provider' | 'zoneWrites'> {
  readonly repository: OrphanContext['repository'] &
    Pick<ReconcilerRepository, 'listZones' | 'markDrifted' | 'retryNow'>
  readonly provider: OrphanContext['provider'] & Pick<ProviderClient, 'read' | 'apply'>
  readonly zoneWrites: ZoneWritesRepository
  readonly resumeRepository: ResumeRepository
  readonly hasZoneTtl: boolean
  readonly withZoneLock: WithZoneLock
}

export interface ResumeOptions {
  readonly trust: Trust
  /** Null: a dry run, which changes nothing. */
  readonly caller: Caller | null
}

export interface ResumePlan {
  readonly kind: 'planned'
  readonly stopCause: StopCause
  /** The first `MAX_LISTED`: names with a row, by name, then names without one. */
  readonly differences: readonly ZoneDifference[]
  readonly differenceCount: number
}

export interface NotStopped {
  readonly kind: 'not-stopped'
}

/** A name that the database changes to what the zone has. */
interface TrustedName extends ZoneDifference {
  readonly version: number
  /** The record sets that the zone has, or none. */
  readonly desired: readonly RecordSet[]
}

export type ResumeRepository = ReturnType<typeof createResumeRepository>

export const createResumeRepository = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  /**
   * Changes names to what the zone has, unless they have changed since these versions. Their tokens are no longer valid. It
   * locks allocations before desired records, as every other statement. Returns the names that it changed.
   */
  async trustZone(zone: string, names: readonly TrustedName[], caller: Caller): Promise<string[]> {
    const items = names.map(({ subdomain, version, action, zoneAddress, desired }) => ({
      ...{ subdomain, version, action, desired },
      address: zoneAddress,
    }))
    const newToken = unknownToken(sql)
    const now = statementTime(sql)
    const rows = await withTimeout(
      sql<{ subdomain: string }[]>`
        with item as (
            select * from jsonb_to_recordset(${sql.json(items as never)}) as item
              (subdomain text, version bigint, action text, address text, desired jsonb)
          ),
          held as (
            select a.* from item join pool_allocations a on a.pool_domain = ${zone} and a.subdomain = item.subdomain
            order by a.subdomain for update of a
          ),
          changed as (
            update dns_names d set
              -- What else the zone has below the name is its holder's.
              purge_version = 0,
              ${newVersionColumns(sql, sql`item.desired`, sql`statement_timestamp()`)}
            from item left join held using (subdomain)
            where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version
              and case when item.action = 'adopt'
                then held.state is null or held.state in ('reserved', 'released')
                else held.state = 'active' end
            returning d.subdomain, item.action, item.address::inet as address, held.created_by, held.lineage_id,
              host(held.load_balancer_ip) as former_address
          ),
          readdressed as (
            update pool_allocations a set load_balancer_ip = changed.address, token_hash = ${newToken}, former_token_hash = null
            from changed where changed.action = 'readdress' and a.pool_domain = ${zone} and a.subdomain = changed.subdomain
          ),
          kept as (
            update pool_allocations a set state = 'released', cool_off_until = ${now}, token_hash = ${newToken},
              former_token_hash = null
            from changed where changed.action = 'release' and changed.lineage_id is not null
              and a.pool_domain = ${zone} and a.subdomain = changed.subdomain
          ),
          released as (
            delete from pool_allocations a using changed
            where changed.action = 'release' and changed.lineage_id is null
              and a.pool_domain = ${zone} and a.subdomain = changed.subdomain
          ),
          adopted as (${adoptNames(sql, zone, sql`changed where action = 'adopt'`)}),
          transition (action, event, from_state, to_state) as (
            values ('readdress', 'updated', 'active', 'active'), ('release', 'released', 'active', 'none'),
              ('adopt', 'adopted', 'none', 'active')
          ),
          transitions as (
            select 1 as step, ended.*, null as detail from (${endedReservations(sql, sql`adopted`, sql`held`)}) ended
            union all
            select 2, subdomain, event, from_state, to_state,
              case when action = 'adopt' then 'operator' else created_by end, null, null,
              case action when 'readdress' then former_address || ' replaced by ' || host(changed.address) || ', as in the zone'
                when 'release' then 'the zone has no records' end
            from changed join transition using (action)
          )
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, renewal_count, renewed_until, detail, actor,
            address, request_id)
        select ${zone}, subdomain, event, from_state, to_state, created_by, renewal_count, renewed_until, detail,
          ${caller.actor}, ${caller.address}, ${caller.requestId}
        from transitions order by subdomain collate "C", step
        returning subdomain`,
      timeoutMs,
    )
    return rows.map(({ subdomain }) => subdomain)
  },
})

const TRUSTED_ACTIONS: readonly ResumeAction[] = ['adopt', 'readdress', 'release']

/** The records of the template at the name, if the zone has all of them with one address. */
const findTemplateRecords = (
  { subdomain, records }: { subdomain: string; records: readonly RecordSet[] },
  zone: string,
  { recordTemplate }: Pick<ResumeContext, 'recordTemplate'>,
) => {
  const candidate = new OrphanCandidate(`${subdomain}.${zone}`, recordTemplate)
  for (const set of records) candidate.add(set, { isServed: true })
  return candidate.toOrphan(subdomain)
}

/** A change is committed this long before its sync can find that the zone must be stopped. */
const MAX_STOP_DELAY_MS = 60_000

interface DifferenceOptions {
  readonly trust: Trust
  readonly stoppedMsAgo: number
  readonly plan: PlanOptions
}

/** Null if the zone has what the database wants. */
const findDifference = (
  context: ResumeContext,
  zone: string,
  { name, records, unserved, isAsDesired }: ScannedName,
  { trust, stoppedMsAgo, plan: options }: DifferenceOptions,
): TrustedName | null => {
  if (isAsDesired) return null
  const plan = planName(indexRecords(zone, { records, unserved }), { ...name, hasInFlightWrite: false }, options)
  if (plan.kind === 'changes' && plan.changes.length === 0) return null
  const { subdomain, version, desired } = name
  const found = findTemplateRecords({ subdomain, records }, zone, context)
  const sides = { databaseAddress: desired[0]?.values[0] ?? null, zoneAddress: found?.address ?? null }
  const wasPublished = name.isApplied || name.isDriftRepair
  const isNewer = !wasPublished && name.changedMsAgo < stoppedMsAgo + MAX_STOP_DELAY_MS
  const canBeAdopted = canBeGranted(zone, subdomain, context.pools())
  const action = decideAction(trust, { ...sides, hasRecords: records.length > 0, wasPublished, isNewer, canBeAdopted })
  return { subdomain, version, ...sides, action, desired: action === 'release' ? [] : (found?.records ?? []) }
}

/**
 * Writes the marker of this database with a number above that of the zone, and ends the stop. The marker comes first: with
 * that of another database in the zone, the next sync would stop it again.
 */
const endStop = async (
  context: ResumeContext,
  zone: string,
  lock: ZoneLock,
  zoneSerial: number,
): Promise<Unavailable | null> => {
  const { zoneWrites, repository } = context
  await zoneWrites.catchUp(zone, zoneSerial)
  const result = await writeMarker(context, zone, lock)
  if (result.kind === 'unavailable') return result
  const [rejection] = result.rejected
  if (rejection) {
    const reason = `The DNS provider rejected ${rejection.name}: ${rejection.reason}. Make room for it, then resume again.`
    return { kind: 'unavailable', scope: 'zone', reason }
  }
  await zoneWrites.resume(zone)
  await repository.retryNow(zone)
  return null
}

/**
 * Compares a stopped zone with the database, makes one of them like the other, name by name, and starts the writes again.
 * Names that the database wants otherwise than the zone has them become due. If it is interrupted, the zone stays stopped;
 * a repetition does the rest. Without a `caller`, it only lists what it would do.
 */
export const resumeZone = async (
  context: ResumeContext,
  zone: string,
  { trust, caller }: ResumeOptions,
): Promise<ResumePlan | NotStopped | Unavailable | Busy> => {
  const { repository, orphanRepository, resumeRepository, zoneWrites, provider, withZoneLock } = context
  const differences: ZoneDifference[] = []
  let differenceCount = 0
  const list = (found: readonly ZoneDifference[]): void => {
    differenceCount += found.length
    const listed = found.slice(0, MAX_LISTED - differences.length)
    differences.push(
      ...listed.map(({ subdomain, databaseAddress, zoneAddress, action }) => ({
        ...{ subdomain, databaseAddress, zoneAddress, action },
      })),
    )
  }

  /** Lists what the names get after a change of those in `done`. The others changed during the call, so the database decides. */
  const listOutcome = async (found: readonly ZoneDifference[], done: readonly string[]): Promise<void> => {
    const isDone = new Set(done)
    const { same = [], changed = [] } = Object.groupBy(found, ({ subdomain }) =>
      isDone.has(subdomain) ? 'same' : 'changed',
    )
    list(same)
    if (changed.length === 0) return
    const rows = await repository.findNames(
      zone,
      changed.map(({ subdomain }) => subdomain),
    )
    const bySubdomain = new Map(rows.map(row => [row.subdomain, row]))
    list(
      changed.flatMap(({ subdomain, zoneAddress }) => {
        const databaseAddress = bySubdomain.get(subdomain)?.desired[0]?.values[0] ?? null
        const action = databaseAddress === null ? 'withdraw' : 'publish'
        return databaseAddress === zoneAddress ? [] : [{ subdomain, databaseAddress, zoneAddress, action }]
      }),
    )
  }

  const resumeNames = async (names: readonly ScannedName[], stoppedMsAgo: number): Promise<void> => {
    const plan = await toPlanOptions(
      context,
      zone,
      names.map(({ name }) => name),
    )
    const different = names.flatMap(scanned => {
      const difference = findDifference(context, zone, scanned, { trust, stoppedMsAgo, plan })
      return difference ? [{ ...difference, isApplied: scanned.name.isApplied }] : []
    })
    if (!caller) return list(different)
    const { trusted = [], others = [] } = Object.groupBy(different, ({ action }) =>
      TRUSTED_ACTIONS.includes(action) ? 'trusted' : 'others',
    )
    const drifted = others.filter(({ isApplied }) => isApplied)
    const done = trusted.length > 0 ? await resumeRepository.trustZone(zone, trusted, caller) : []
    if (drifted.length > 0) await repository.markDrifted(zone, drifted)
    await listOutcome(different, [...done, ...others.map(({ subdomain }) => subdomain)])
  }

  const work = async (lock: ZoneLock): Promise<ResumePlan | NotStopped | Unavailable> => {
    const otherProvider = await findOtherProvider(context, zone)
    if (otherProvider) return otherProvider
    const read = await provider.read(zone, { names: [toMarkerName(zone)], branches: [] })
    if (read.kind === 'unavailable') return read
    const markers = parseMarkers(zone, read.records)
    const writes = await zoneWrites.find(zone)
    const stopCause = findStopCause(markers, writes)
    if (!stopCause) return { kind: 'not-stopped' }
    if (caller) await stopZone(context, zone, stopCause)
    for await (const page of scanZone(context, zone)) {
      if (page.kind === 'unavailable') return page
      await resumeNames(page.names, writes.stoppedMsAgo ?? 0)
      const orphans = await findOrphans(context, zone, page.orphans)
      const found = orphans.map(({ subdomain, address }) => {
        const sides = { databaseAddress: null, zoneAddress: address }
        const unknown = { ...sides, hasRecords: true, wasPublished: false, isNewer: false, canBeAdopted: true }
        return { subdomain, ...sides, action: decideAction(trust, unknown) }
      })
      if (!caller) list(found)
      else if (orphans.length > 0)
        await listOutcome(found, await orphanRepository[trust === 'zone' ? 'adopt' : 'remove'](zone, orphans, caller))
      await lock.assertHeld()
    }
    const failure = caller ? await endStop(context, zone, lock, maxSerial(markers)) : null
    return failure ?? { kind: 'planned', stopCause, differences, differenceCount }
  }
  return (await withZoneLock(zone, lock => holdDuring(lock, () => work(lock)))) ?? { kind: 'busy' }
}

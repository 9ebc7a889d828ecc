import { untilAborted } from '@pool/runtime/database/time'
import type { Sql } from 'postgres'
import type { Unavailable, ZonePart } from '../../domain/result.ts'
import {
  changeKey,
  groupByOwner,
  isAtOrBelow,
  type RecordChange,
  type RecordSet,
  recordKey,
  toApplyResult,
  toOwnerName,
} from '../../domain/rrset.ts'
import type { DnsProvider } from '../../provider.ts'
import { isName, isRecordValue } from '../../wire/rdata.ts'
import type { ZoneView } from './domain/resolve.ts'

/** Why the local server cannot store `change`; undefined: it can. */
export const validateChange = (zone: string, change: RecordChange): string | undefined => {
  if (change.kind === 'delete') return undefined
  const { name, type, ttl, values } = change.set
  if (!isAtOrBelow(name, zone) || !isName(name)) return 'the name is not a name of this zone'
  if (type === 'SOA' || (type === 'NS' && name === zone))
    return 'the local DNS server creates the NS and SOA records of the zone itself'
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  if (values.length === 0) return 'the record set has no value'
  if (values.some(value => !isRecordValue(type, value)))
    return `the local DNS server does not support this ${type} record`
  if (type === 'CNAME' && values.length > 1) return 'a name can have only one CNAME'
  return undefined
}

/** Owner names that would have a CNAME and another type after `changes` (forbidden by RFC 1034 section 3.6.2). */
export const findCnameConflicts = (existing: readonly RecordSet[], changes: readonly RecordChange[]): Set<string> => {
  const after = new Map(existing.map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  for (const change of changes) {
    const { name, type } = change.kind === 'upsert' ? change.set : change
    if (change.kind === 'upsert') after.set(recordKey({ name, type }), { name, type })
    else after.delete(recordKey({ name, type }))
  }
  const byName = Map.groupBy(after.values(), ({ name }) => name)
  const conflicts = [...byName].filter(([, sets]) => sets.length > 1 && sets.some(({ type }) => type === 'CNAME'))
  return new Set(conflicts.map(([name]) => name))
}

interface RecordKey {
  readonly name: string
  readonly type: string
}

interface ZonePage {
  readonly records: readonly RecordSet[]
  /** The key after which the next page begins; null: this is the last page. */
  readonly next: RecordKey | null
}

export interface ZoneTable {
  /** Every record set at or below each of `branches` and at each of `names`, each once, and the zone's serial. */
  read(zone: string, branches: readonly string[], names?: readonly string[]): Promise<ZoneView>
  /** Up to `limit` record sets of the zone after the key. Another page can show a later state of the zone. */
  readPage(zone: string, after: RecordKey | null, limit: number): Promise<ZonePage>
  /**
   * Applies all of `changes` or none; of several changes to one name and type the last applies. Returns the new serial,
   * or null, without a change, if the serial is not `expected`: a late write that timed out cannot overwrite a newer one.
   */
  apply(zone: string, changes: readonly RecordChange[], expected: number): Promise<number | null>
  /** The view that `resolve` needs for `name`. The number of rows does not depend on the size of the zone. */
  lookup(zone: string, name: string): Promise<ZoneView>
}

// A type and not an interface: only a type alias is assignable to the library's JSON value.
type Row = {
  reversed_name: string
  type: string
  ttl: number
  record_values: string[]
}

/**
 * `test.pool.acme` for `acme.pool.test`. In collation "C" all names below a name are between `key + '.'` and
 * `key + '/'` ('/' is the octet after '.'), so a subtree is one range of the primary key.
 */
const toReversedName = (name: string): string => name.split('.').reverse().join('.')

const toRecordSet = (row: Row): RecordSet => ({
  name: toReversedName(row.reversed_name),
  type: row.type,
  ttl: row.ttl,
  values: row.record_values,
})

/** A record set, or only the serial if there is none. */
type ViewRow = { serial: string; reversed_name: string | null } & Omit<Row, 'reversed_name'>

/** The serial as text, because the driver's type for a bigint is configurable. 0: the zone has not changed yet. */
const selectSerial = (sql: Sql, zone: string) =>
  sql`coalesce((select serial from local_dns_zones where zone = ${zone}), 0)::text as serial`

const toZoneView = (rows: readonly ViewRow[]): ZoneView => ({
  serial: Number(rows[0]?.serial ?? 0),
  records: rows.flatMap(({ reversed_name, ...row }) =>
    reversed_name === null ? [] : [toRecordSet({ ...row, reversed_name })],
  ),
})

/** `name` and its ancestors up to the apex, each with the wildcard below it: the only sources of an answer. */
const candidates = (zone: string, name: string): string[] => {
  const below = name === zone ? [] : name.slice(0, -zone.length - 1).split('.')
  const nodes = [...below.map((_, i) => `${below.slice(i).join('.')}.${zone}`), zone]
  return nodes.flatMap(node => [node, `*.${node}`])
}

export const createZoneTable = (sql: Sql): ZoneTable => ({
  async read(zone, branches, names = []) {
    // `offset 0` makes the planner use the index for each range. `distinct` drops duplicates of nested names.
    return toZoneView(
      await sql<ViewRow[]>`
        select ${selectSerial(sql, zone)}, f.reversed_name, f.type, f.ttl, to_jsonb(f.record_values) as record_values
        from (select) as always left join (
          select distinct r.* from jsonb_array_elements_text(${sql.json([...names, ...branches].map(toReversedName))}) as wanted (key),
            lateral (
              select reversed_name, type, ttl, record_values from local_dns_record_sets
              where zone = ${zone} and reversed_name = wanted.key offset 0) as r
          union
          select distinct r.* from jsonb_array_elements_text(${sql.json(branches.map(toReversedName))}) as wanted (key),
            lateral (
              select reversed_name, type, ttl, record_values from local_dns_record_sets
              where zone = ${zone} and reversed_name >= wanted.key || '.' and reversed_name < wanted.key || '/' offset 0) as r
        ) as f on true order by f.reversed_name, f.type`,
    )
  },

  async readPage(zone, after, limit) {
    const rows = await sql<Row[]>`
      select reversed_name, type, ttl, to_jsonb(record_values) as record_values from local_dns_record_sets
      where zone = ${zone} and (reversed_name, type) > (${after ? toReversedName(after.name) : ''}, ${after?.type ?? ''})
      order by reversed_name, type limit ${limit}`
    const records = rows.map(toRecordSet)
    const last = records.at(-1)
    return { records, next: last && records.length === limit ? { name: last.name, type: last.type } : null }
  },

  async apply(zone, changes, expected) {
    const last = new Map(changes.map(change => [changeKey(change), change]))
    const upserts: Row[] = []
    const deletes: Pick<Row, 'reversed_name' | 'type'>[] = []
    for (const change of last.values()) {
      if (change.kind === 'delete') deletes.push({ reversed_name: toReversedName(change.name), type: change.type })
      else {
        const { name, type, ttl, values } = change.set
        upserts.push({ reversed_name: toReversedName(name), type, ttl, record_values: [...values] })
      }
    }
    const [version] = await sql<{ serial: string }[]>`
      with new_version as (
        insert into local_dns_zones as stored (zone, serial) values (${zone}, 1)
        on conflict on constraint local_dns_zones_pkey do update set serial = stored.serial % 4294967295 + 1
          where stored.serial = ${expected}
        returning serial
      ), upserted as (
        insert into local_dns_record_sets as stored (zone, reversed_name, type, ttl, record_values)
        select ${zone}, reversed_name, type, ttl, record_values
        from new_version, jsonb_to_recordset(${sql.json(upserts)})
          as wanted (reversed_name text, type text, ttl integer, record_values text[])
        on conflict on constraint local_dns_record_sets_pkey do update
          set ttl = excluded.ttl, record_values = excluded.record_values
          where (stored.ttl, stored.record_values) is distinct from (excluded.ttl, excluded.record_values)
      ), deleted as (
        -- Offset 0 keeps one index lookup per unwanted row: without statistics a join reads the whole zone.
        delete from local_dns_record_sets where ctid = any (array(
          select stored.ctid
          from new_version, jsonb_to_recordset(${sql.json(deletes)}) as unwanted (reversed_name text, type text),
            lateral (
              select ctid from local_dns_record_sets
              where zone = ${zone} and reversed_name = unwanted.reversed_name and type = unwanted.type offset 0
            ) as stored
        ))
      )
      select serial::text from new_version`
    return version ? Number(version.serial) : null
  },

  async lookup(zone, name) {
    // One row below a candidate is enough: it proves that the name exists (RFC 4592 section 2.2.2).
    return toZoneView(
      await sql<ViewRow[]>`
        with found as (
          select below.* from jsonb_array_elements_text(${sql.json(candidates(zone, name).map(toReversedName))}) as wanted (key), lateral (
            (select reversed_name, type, ttl, record_values from local_dns_record_sets
             where zone = ${zone} and reversed_name = wanted.key)
            union all
            (select reversed_name, type, ttl, record_values from local_dns_record_sets
             where zone = ${zone} and reversed_name >= wanted.key || '.' and reversed_name < wanted.key || '/'
             order by reversed_name limit 1)
          ) as below
        )
        select ${selectSerial(sql, zone)}, f.reversed_name, f.type, f.ttl, to_jsonb(f.record_values) as record_values
        from (select) as always left join (select distinct * from found) as f on true
        order by f.reversed_name, f.type`,
    )
  },
})

export interface LocalProviderOptions {
  readonly table: ZoneTable
  /** Closed with the provider. Absent where another process serves the same table. */
  readonly server?: { close(): Promise<void> }
  /** Reports database errors to the log; they are never part of a result. */
  readonly onError: (error: unknown) => void
}

const unavailable: Unavailable = {
  kind: 'unavailable',
  reason: 'The database of the local DNS server did not respond.',
}

const serialConflict: Unavailable = {
  kind: 'unavailable',
  reason: 'Zone serial conflict: the zone was modified concurrently.',
  scope: 'zone',
  isTransient: true,
}

/** Record sets per statement of a read of the whole zone. */
const PAGE_SIZE = 5_000

/** For development: the zone is a table, so every replica serves the same records, also after a restart. */
export const createLocalProvider = ({ table, server, onError }: LocalProviderOptions): DnsProvider => {
  /** The serial of the last read, on which the next apply is planned. */
  const serials = new Map<string, number>()

  const attempt = async <T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | Unavailable> => {
    if (signal.aborted) return unavailable
    try {
      return await untilAborted(work(), signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
      return unavailable
    }
  }

  return {
    isDatabase: true,

    read: (zone, wanted, signal) =>
      attempt(async () => {
        const { serial, records } = await table.read(zone, wanted.branches, wanted.names)
        // After an abort the next write is planned on the next read.
        if (!signal.aborted) serials.set(zone, serial)
        return { kind: 'read' as const, records }
      }, signal),

    async *readZone(zone, signal): AsyncGenerator<ZonePart | Unavailable, void> {
      let after: RecordKey | null = null
      do {
        const start: RecordKey | null = after
        const page: ZonePage | Unavailable = await attempt(() => table.readPage(zone, start, PAGE_SIZE), signal)
        if ('kind' in page) return yield page
        yield { kind: 'part', records: page.records }
        after = page.next
      } while (after !== null)
    },

    apply: (zone, changes, signal) =>
      attempt(async () => {
        const { owners, rejected } = groupByOwner(changes, change => validateChange(zone, change))
        const valid = owners.flatMap(owner => owner.changes)
        const upserts = valid.filter(({ kind }) => kind === 'upsert')
        const existing = await table.read(zone, [], upserts.map(toOwnerName))
        for (const name of findCnameConflicts(existing.records, valid)) {
          rejected.set(name, 'a CNAME must be the only record at its name')
        }
        const accepted = valid.filter(change => !rejected.has(toOwnerName(change)))
        if (accepted.length > 0) {
          const expected = serials.get(zone) ?? existing.serial
          const serial = await table.apply(zone, accepted, expected)
          if (serial === null) return serialConflict
          if (!signal.aborted) serials.set(zone, serial)
        }
        return toApplyResult(rejected, [])
      }, signal),

    async checkZone() {
      return { kind: 'writable' }
    },

    async close() {
      await server?.close()
    },
  }
}

import type { Sql } from 'postgres'
import type { RecordChange, RecordSet } from '../record-set.ts'
import { recordKey } from '../record-set.ts'
import type { ZoneView } from './resolve.ts'

export interface ZoneTable {
  /** Creates what is missing; any number of processes may do so at once. */
  install(): Promise<void>
  /** Every record set at or below each of `owners` (`'all'`: of the zone), each once. */
  read(zone: string, owners: readonly string[] | 'all'): Promise<RecordSet[]>
  /**
   * All of `changes` or none; of several changes to one name and type the last counts. The serial rises by one when
   * something changed. An abort that comes before the commit is sent undoes everything, however late the database is.
   */
  apply(zone: string, changes: readonly RecordChange[], signal?: AbortSignal): Promise<void>
  /** What `resolve` needs to answer for `name`: a handful of rows, however large the zone. */
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
 * `test.pool.acme` for `acme.pool.test`. In "C" order all that is below a name lies between `key + '.'` and
 * `key + '/'` ('/' is the octet after '.'), so that a subtree is one range of the primary key.
 */
const reversed = (name: string): string => name.split('.').reverse().join('.')

const recordSet = (row: Row): RecordSet => ({
  name: reversed(row.reversed_name),
  type: row.type,
  ttl: row.ttl,
  values: row.record_values,
})

/** `name` and its ancestors down to the zone, each with the wildcard below it: the only places an answer comes from. */
const candidates = (zone: string, name: string): string[] => {
  const below = name === zone ? [] : name.slice(0, -zone.length - 1).split('.')
  const nodes = [...below.map((_, i) => `${below.slice(i).join('.')}.${zone}`), zone]
  return nodes.flatMap(node => [node, `*.${node}`])
}

export const createZoneTable = (sql: Sql): ZoneTable => ({
  async install() {
    await sql.begin(async tx => {
      // `if not exists` looks before it leaps: two creators at once can still meet in pg_type (23505).
      await tx`select pg_advisory_xact_lock(hashtextextended('local_dns', 0))`
      await tx`set local client_min_messages = warning`
      await tx`
        create table if not exists local_dns_zones (
          zone text collate "C" not null,
          serial bigint not null,
          constraint local_dns_zones_pkey primary key (zone),
          constraint local_dns_zones_serial_is_uint32 check (serial between 1 and 4294967295)
        )`
      await tx`
        create table if not exists local_dns_record_sets (
          zone text collate "C" not null,
          reversed_name text collate "C" not null,
          type text collate "C" not null,
          ttl integer not null,
          record_values text[] not null,
          constraint local_dns_record_sets_pkey primary key (zone, reversed_name, type),
          constraint local_dns_record_sets_name_is_lower_case check (reversed_name = lower(reversed_name)),
          constraint local_dns_record_sets_ttl_is_not_negative check (ttl >= 0),
          constraint local_dns_record_sets_has_values check (cardinality(record_values) > 0)
        )`
    })
  },

  async read(zone, owners) {
    const rows =
      owners === 'all'
        ? await sql<Row[]>`
            select reversed_name, type, ttl, record_values from local_dns_record_sets
            where zone = ${zone} order by reversed_name, type`
        : // Two joins and not one with `or`: each is an index scan, and `union` drops what overlapping owners repeat.
          await sql<Row[]>`
            with wanted as (select key from unnest(${owners.map(reversed)}::text[]) as owner (key))
            select r.reversed_name, r.type, r.ttl, r.record_values
            from wanted join local_dns_record_sets r on r.zone = ${zone} and r.reversed_name = wanted.key
            union
            select r.reversed_name, r.type, r.ttl, r.record_values
            from wanted join local_dns_record_sets r
              on r.zone = ${zone} and r.reversed_name >= wanted.key || '.' and r.reversed_name < wanted.key || '/'
            order by reversed_name, type`
    return rows.map(recordSet)
  },

  async apply(zone, changes, signal) {
    const last = new Map(changes.map(change => [recordKey(change.kind === 'upsert' ? change.set : change), change]))
    const upserts: Row[] = []
    const deletes: Pick<Row, 'reversed_name' | 'type'>[] = []
    for (const change of last.values()) {
      if (change.kind === 'delete') deletes.push({ reversed_name: reversed(change.name), type: change.type })
      else {
        const { name, type, ttl, values } = change.set
        upserts.push({ reversed_name: reversed(name), type, ttl, record_values: [...values] })
      }
    }
    if (last.size === 0) return
    await sql.begin(async tx => {
      signal?.throwIfAborted()
      await tx`
        with upserted as (
          insert into local_dns_record_sets as kept (zone, reversed_name, type, ttl, record_values)
          select ${zone}, reversed_name, type, ttl, record_values
          from jsonb_to_recordset(${tx.json(upserts)})
            as wanted (reversed_name text, type text, ttl integer, record_values text[])
          on conflict on constraint local_dns_record_sets_pkey do update
            set ttl = excluded.ttl, record_values = excluded.record_values
            where (kept.ttl, kept.record_values) is distinct from (excluded.ttl, excluded.record_values)
          returning 1
        ), deleted as (
          delete from local_dns_record_sets as kept
          using jsonb_to_recordset(${tx.json(deletes)}) as unwanted (reversed_name text, type text)
          where kept.zone = ${zone} and kept.reversed_name = unwanted.reversed_name and kept.type = unwanted.type
          returning 1
        )
        insert into local_dns_zones as kept (zone, serial)
        select ${zone}, 1 where exists (select from upserted) or exists (select from deleted)
        on conflict on constraint local_dns_zones_pkey do update
          set serial = kept.serial % 4294967295 + 1`
      // Thrown in here it rolls back: a caller that gave up must not be overtaken by its own write.
      signal?.throwIfAborted()
    })
  },

  async lookup(zone, name) {
    // Of what lies below a candidate one row is enough: it proves that the name exists (RFC 4592 section 2.2.2).
    const rows = await sql<(Omit<Row, 'reversed_name'> & { serial: string; reversed_name: string | null })[]>`
      with found as (
        select below.* from unnest(${candidates(zone, name).map(reversed)}::text[]) as wanted (key), lateral (
          (select reversed_name, type, ttl, record_values from local_dns_record_sets
           where zone = ${zone} and reversed_name = wanted.key)
          union all
          (select reversed_name, type, ttl, record_values from local_dns_record_sets
           where zone = ${zone} and reversed_name >= wanted.key || '.' and reversed_name < wanted.key || '/'
           order by reversed_name limit 1)
        ) as below
      )
      select state.serial::text, f.reversed_name, f.type, f.ttl, f.record_values
      from (select coalesce(max(serial), 0) as serial from local_dns_zones where zone = ${zone}) as state
      left join (select distinct * from found) as f on true
      order by f.reversed_name, f.type`
    const records = rows.flatMap(({ reversed_name, ...row }) =>
      reversed_name === null ? [] : [recordSet({ ...row, reversed_name })],
    )
    return { serial: Number(rows[0]?.serial ?? 0), records }
  },
})

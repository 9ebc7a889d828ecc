import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { MARKER_LABEL, type StopCause, type ZoneWrites } from './domain/zone-marker.ts'

/**
 * Raises the number of the zone's last write and returns it as `serial`, with the cause of a stop. It is committed before the
 * write.
 */
export const raiseSerial = (sql: Sql, zone: string, providerKind: string) => sql`
  insert into dns_zone_writes as w (zone, serial, provider_kind) values (${zone}, 1, ${providerKind})
  on conflict (zone) do update set serial = w.serial + 1, provider_kind = coalesce(w.provider_kind, excluded.provider_kind)
  returning serial, stopped_cause`

/** The columns of a `ZoneWrites`. */
export const selectWrites = (sql: Sql, zone: string) => sql`
  select i.id as installation, coalesce(w.serial, 0) as serial, w.provider_kind as "providerKind",
    w.stopped_cause as "stoppedCause",
    extract(epoch from statement_timestamp() - w.stopped_at)::float8 * 1000 as "stoppedMsAgo"
  from installation i left join dns_zone_writes w on w.zone = ${zone}`

/** `row` is the first one of `selectWrites`. */
export const assertInstallation = <Row>(row: Row | undefined): Row => {
  if (!row) throw new Error('the table installation is empty; restore its row')
  return row
}

/** A record set that a provider had when the zone was moved to another one. */
export interface FormerRecord {
  readonly provider: string
  readonly name: string
  readonly type: string
  /** The values that were written last; null: unknown. */
  readonly data: string[] | null
}

export type ZoneWritesRepository = ReturnType<typeof createZoneWritesRepository>

/** The number of the last write of each zone, and whether writes are stopped. */
export const createZoneWritesRepository = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => {
  const isAmong = (zones: readonly string[]) => sql`zone in (select jsonb_array_elements_text(${sql.json([...zones])}))`

  return {
    async find(zone: string): Promise<ZoneWrites> {
      const [row] = await withTimeout(sql<ZoneWrites[]>`${selectWrites(sql, zone)}`, timeoutMs)
      return assertInstallation(row)
    },

    /** Returns the new number. */
    async raise(zone: string, providerKind: string): Promise<number> {
      const [row] = await withTimeout(sql<{ serial: number }[]>`${raiseSerial(sql, zone, providerKind)}`, timeoutMs)
      return row?.serial ?? 0
    },

    /** Stops all writes to the zone, from every replica. Returns false if they are stopped already. */
    async stop(zone: string, cause: StopCause): Promise<boolean> {
      const stopped = await withTimeout(
        sql`
        insert into dns_zone_writes as w (zone, stopped_cause, stopped_at)
        values (${zone}, ${cause}, statement_timestamp())
        on conflict (zone) do update set stopped_cause = excluded.stopped_cause, stopped_at = excluded.stopped_at
          where w.stopped_cause is null
        returning zone`,
        timeoutMs,
      )
      return stopped.length > 0
    },

    /** Raises the number to that of a zone which another state of the database wrote. */
    async catchUp(zone: string, serial: number): Promise<void> {
      await withTimeout(
        sql`update dns_zone_writes set serial = greatest(serial, ${serial}) where zone = ${zone}`,
        timeoutMs,
      )
    },

    /** Ends a stop. */
    async resume(zone: string): Promise<void> {
      await withTimeout(
        sql`update dns_zone_writes set stopped_cause = null, stopped_at = null where zone = ${zone}`,
        timeoutMs,
      )
    },

    /** Which of the zones were published with a provider of another kind, and still have names. */
    async listOtherProviders(
      zones: readonly string[],
      kind: string,
    ): Promise<{ zone: string; providerKind: string }[]> {
      return withTimeout(
        sql<{ zone: string; providerKind: string }[]>`
        select zone, provider_kind as "providerKind" from dns_zone_writes w
        where ${isAmong(zones)} and provider_kind <> ${kind}
          and exists (select from dns_names n where n.zone = w.zone)
        order by zone`,
        timeoutMs,
      )
    },

    async listFormerRecords(zone: string, offset: number, limit: number): Promise<FormerRecord[]> {
      return withTimeout(
        sql<FormerRecord[]>`
          select provider_kind as provider, name, type, record_values as data from dns_former_records
          where zone = ${zone} order by provider_kind, name, type offset ${offset} limit ${limit}`,
        timeoutMs,
      )
    },

    /**
     * Declares that the zones are published with a provider of this kind from now on. Every name that was published with
     * another one is due again, and the records that this service wrote there are listed in dns_former_records. Returns how
     * many names are due.
     */
    async moveTo(kind: string, zones: readonly string[]): Promise<number> {
      const [row] = await sql<{ names: number }[]>`
      with moved as (
        update dns_zone_writes w set provider_kind = ${kind}
        from (select zone, provider_kind from dns_zone_writes where ${isAmong(zones)} order by zone for update) former
        where w.zone = former.zone and former.provider_kind <> ${kind}
        returning w.zone, former.provider_kind
      ), markers as (
        select zone, provider_kind, ${MARKER_LABEL} || '.' || zone as name, 'TXT', null::jsonb from moved
      ), written as (
        select distinct on (n.zone, item.key->>'name', item.key->>'type')
          n.zone, provider_kind, item.key->>'name' as name, item.key->>'type' as type, record_set->'values' as record_values
        from dns_names n join moved using (zone)
          cross join lateral jsonb_array_elements(n.owned ||
            case when n.attempted_version > n.applied_version then n.desired else '[]' end) as item (key)
          left join lateral jsonb_array_elements(n.previous_records || n.desired)
            with ordinality as latest (record_set, position)
            on record_set->'name' = item.key->'name' and record_set->'type' = item.key->'type'
        order by n.zone, item.key->>'name', item.key->>'type', position desc nulls last
      ), listed as (
        insert into dns_former_records (zone, provider_kind, name, type, record_values) select * from written union all select * from markers
        on conflict (zone, provider_kind, name, type) do update set record_values = excluded.record_values
      ), kept as (
        delete from dns_former_records f using moved where f.zone = moved.zone and f.provider_kind = ${kind}
      ), due as (
        update dns_names n set version = nextval('dns_version'), owned = '[]', previous_records = '[]',
          attempted_version = 0, attempts = 0, failure = null, last_error = null, is_drift_repair = false,
          changed_at = statement_timestamp(), next_attempt_at = statement_timestamp()
        from moved where n.zone = moved.zone returning n.zone
      )
      select count(*) as names from due`
      return row?.names ?? 0
    },
  }
}

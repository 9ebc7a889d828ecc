import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { MARKER_LABEL } from './domain/zone-marker.ts'

/** A record set that a provider had when the zone was moved to another one. */
export interface FormerRecord {
  readonly provider: string
  readonly name: string
  readonly type: string
  /** The values that were written last; null: unknown. */
  readonly data: string[] | null
}

/** The moves of zones to a provider of another kind, and what they leave at the former one. */
export const createProviderMoves = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => {
  const isAmong = (zones: readonly string[]) => sql`zone in (select jsonb_array_elements_text(${sql.json([...zones])}))`

  return {
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
        update dns_zone_writes w set provider_kind = ${kind}, confirmed_at = null
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
          attempted_version = 0, attempts = 0, failure = null, last_error = null, leftover = null, is_drift_repair = false,
          changed_at = statement_timestamp(), next_attempt_at = statement_timestamp()
        from moved where n.zone = moved.zone returning n.zone
      )
      select count(*) as names from due`
      return row?.names ?? 0
    },
  }
}

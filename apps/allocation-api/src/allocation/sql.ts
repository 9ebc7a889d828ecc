import type { Sql } from '@pool/database/client'
import type { PendingQuery, Row } from 'postgres'
import type { RecordSet } from '../dns/domain/rrset.ts'
import type { Caller, IdempotencyClaim } from './domain/types.ts'

type Fragment = PendingQuery<Row[]>

/** Record sets that are remembered of a name whose records change all the time: the latest. */
const MAX_PREVIOUS_RECORDS = 120

/** Any text can come as a token; one that is no UUID equals none, and the database need not see it. */
export const asUuid = (token: string | undefined): string | null =>
  token !== undefined && /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(token) ? token : null

/** The parts that the statements over `pool_allocations` (alias `a`) share. */
export const fragmentsOf = (sql: Sql) => {
  /** The database's clock, cut to the milliseconds that the wire shows. */
  const clock = sql`date_trunc('milliseconds', statement_timestamp())`
  const columns = sql`
    a.pool_domain as "poolDomain", a.subdomain, a.state, a.reserved_at as "reservedAt", a.expires_at as "expiresAt",
    a.created_by as "createdBy", a.sovereign_fqdn as "sovereignFQDN", host(a.load_balancer_ip) as "loadBalancerIP",
    a.committed_at as "committedAt"`
  return {
    clock,
    columns,
    milliseconds: (ms: number) => sql`${ms}::float8 * interval '1 millisecond'`,
    named: (name: { poolDomain: string; subdomain: string }) =>
      sql`a.pool_domain = ${name.poolDomain} and a.subdomain = ${name.subdomain}`,
    /** An expired reservation is free, whether or not the sweeper has been there. */
    isLive: sql`(a.state = 'active' or a.expires_at > ${clock})`,
    /** The columns and the progress of the records, from `a` joined with `dns_names` as `d`. */
    columnsWithProgress: sql`
      ${columns}, d.version, d.applied_version as "appliedVersion", d.last_error as "lastError"`,
    /**
     * One row for whoever may decide: always without a key; with one, when the key is new, forgotten, or still at the
     * attempt that was seen. To be the first part of the statement, named `turn`.
     */
    takeTurn: (turn: IdempotencyClaim | null) =>
      turn
        ? sql`
          insert into idempotency_keys as k (key, fingerprint, expires_at)
          values (${turn.key}, ${turn.fingerprint},
            ${clock} + ${turn.keyTtlMs}::float8 * interval '1 millisecond')
          on conflict (key) do update set
            fingerprint = excluded.fingerprint, revision = k.revision + 1, expires_at = excluded.expires_at
          where k.revision = ${turn.seenAttempt} or k.expires_at <= ${clock}
          returning k.key`
        : sql`select null::text as key`,
    /** Tells what `said` says, and writes it down under the key of the turn. To be the end of the statement. */
    decideAndRemember: sql`
      decided as (
        select turn.key, to_jsonb(said) as decision from turn, said
      ), remembered as (
        insert into idempotency_results (key, result) select key, decision from decided where key is not null
        on conflict (key) do update set result = excluded.result
      )
      select decision from decided`,
    /**
     * States the records that the names of `rows` must have from now on. An upsert, because the row in `dns_names` may be
     * newer than this statement: of a commit that a release has just waited for.
     */
    stateDesired: (rows: Fragment, desired: readonly RecordSet[]) => sql`
      insert into dns_names as d (zone, subdomain, version, desired, changed_at, next_attempt_at)
      select pool_domain, subdomain, nextval('dns_version'), ${sql.json(desired as never)}, now(), now() from ${rows}
      on conflict (zone, subdomain) do update set
        version = excluded.version, desired = excluded.desired, changed_at = excluded.changed_at,
        previous_records = (
          select coalesce(jsonb_agg(one), '[]') from (
            select one from jsonb_array_elements(d.previous_records || d.desired) with ordinality as t (one, position)
            order by position desc limit ${MAX_PREVIOUS_RECORDS}
          ) latest),
        attempts = 0, failure = null, last_error = null, is_drift_repair = false, next_attempt_at = excluded.next_attempt_at
      returning version`,
    /**
     * One history row for each of `rows`; `transition` is three values: event, from, to. `by` the caller, or whom each
     * row names: `actor`, `address`, `request_id`.
     */
    history: (rows: Fragment, transition: Fragment, by: Caller | 'sweeper' | 'whom-it-names') => {
      const { actor, address, requestId } = typeof by === 'object' ? by : { actor: by, address: null, requestId: null }
      const who = by === 'whom-it-names' ? sql`actor, address, request_id` : sql`${actor}, ${address}, ${requestId}`
      return sql`
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id)
        select pool_domain, subdomain, ${transition}, created_by, ${who} from ${rows}`
    },
  }
}

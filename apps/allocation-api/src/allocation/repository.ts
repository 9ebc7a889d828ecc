import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { RecordSet } from '../dns/domain/rrset.ts'
import {
  type CommitSaid,
  commitDecisionOf,
  type ReleaseSaid,
  type RenewSaid,
  type ReserveSaid,
  releaseDecisionOf,
  renewDecisionOf,
  reserveDecisionOf,
} from './domain/decision.ts'
import type {
  Caller,
  CommitCommand,
  CommitDecision,
  DuplicateRequest,
  IdempotencyClaim,
  ReleaseCommand,
  ReleaseDecision,
  RenewCommand,
  RenewDecision,
  ReserveCommand,
  ReserveDecision,
  ReserveRequest,
} from './domain/types.ts'
import { asUuid, fragmentsOf } from './sql.ts'

export interface StoreOptions {
  /** Milliseconds after which an unanswered statement is given up (its effect is then unknown). */
  readonly timeoutMs: number
}

const keyTaken: DuplicateRequest = { kind: 'key-taken' }

export type Store = ReturnType<typeof createStore>

/**
 * Every write to `pool_allocations`. One statement decides each verb, with the compare inside the write: `for update`
 * waits for whoever holds the row and then sees it as they left it, so that no decision rests on an older state. The
 * database's clock decides. What happened goes to the history, how the zone must look to `dns_names`, and the decision
 * to its Idempotency-Key, all by the same statement: there is no transaction to be left half done.
 */
export const createStore = (sql: Sql, { timeoutMs }: StoreOptions) => {
  const {
    clock,
    columns,
    columnsWithProgress,
    decideAndRemember,
    history,
    isLive,
    milliseconds,
    named,
    stateDesired,
    takeTurn,
  } = fragmentsOf(sql)

  /** The reservation that a token is about, locked, and why it cannot be had, if so; else `outcome`. */
  const heldByToken = (command: RenewCommand, outcome: 'committed' | 'renewed') => sql`
    select case
      when state = 'active' then 'already-active'
      when expires_at <= ${clock} then 'reservation-expired'
      when reservation_token is distinct from ${asUuid(command.reservationToken)}::uuid then 'token-mismatch'
      else ${outcome}
    end as outcome
    from turn, pool_allocations a where ${named(command)} for update of a`

  /**
   * Of each request whether it takes its name, in their order, by one statement: a name that several of them want goes
   * to the first. None when the turn is refused. Rows are taken in the order of the names, so that statements which want
   * the same ones, of whatever replica, wait for each other one way round only.
   */
  const reserveAll = async (
    requests: readonly ReserveRequest[],
    ttlMs: number,
    turn: IdempotencyClaim | null = null,
  ): Promise<ReserveDecision[]> => {
    const asked = requests.map(({ command, caller }, position) => ({ position, ...command, ...caller }))
    // What expired was its owner's: each row has the createdBy of the reservation that it is about. Of one that came and
    // went while this statement waited for the row, nothing is seen: it has none.
    const steps = sql`(
      select pool_domain, subdomain, event, from_state, to_state, actor, address, request_id, position, nth,
        case event when 'expired' then coalesce(expired_of, '') else created_by end as created_by
      from granted, (values (1, 'expired', 'reserved', 'none'), (2, 'reserved', 'none', 'reserved'))
        as step (nth, event, from_state, to_state)
      where took_over or nth = 2
    ) as steps order by position, nth`
    const rows = await withTimeout(
      sql<{ decision: ReserveSaid & { readonly position: number } }[]>`
        with turn as (${takeTurn(turn)}), asked as (
          select r.*, row_number() over (partition by "poolDomain", "subdomain" order by position) = 1 as is_first
          from turn, jsonb_to_recordset(${sql.json(asked as never)}) as r (
            position int, "poolDomain" text, "subdomain" text, "createdBy" text,
            "actor" text, "address" text, "requestId" text)
        ), won as (
          insert into pool_allocations as a
            (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
          select "poolDomain", "subdomain", 'reserved', ${clock}, ${clock} + ${milliseconds(ttlMs)}, gen_random_uuid(),
            "createdBy"
          from asked where is_first order by "poolDomain" collate "C", "subdomain" collate "C"
          on conflict (pool_domain, subdomain) do update set
            reserved_at = excluded.reserved_at, expires_at = excluded.expires_at,
            reservation_token = excluded.reservation_token, created_by = excluded.created_by
          where a.state = 'reserved' and a.expires_at <= ${clock}
          returning a.*, a.xmax <> 0 as took_over
        ), granted as (
          select won.*, position, "actor" as actor, "address" as address, "requestId" as request_id, expired_of
          from won join asked on is_first and pool_domain = "poolDomain" and won.subdomain = asked."subdomain"
            left join lateral (
              select b.created_by as expired_of from pool_allocations b
              where took_over and b.pool_domain = won.pool_domain and b.subdomain = won.subdomain limit 1
            ) b on true
        ), written as (
          ${history(steps, sql`event, from_state, to_state`, 'whom-it-names')}
        ), said as (
          select asked.position, case when a.state is null then 'conflict' else 'granted' end as outcome, ${columns},
            a.reservation_token as "reservationToken"
          from asked left join granted a using (position)
        ), ${decideAndRemember}`,
      timeoutMs,
    )
    const decisions = rows.map(({ decision }) => decision).sort((one, other) => one.position - other.position)
    return decisions.map(reserveDecisionOf)
  }

  return {
    reserveAll,

    /** Takes the name when nobody holds it; an expired reservation is taken over. */
    async reserve(
      command: ReserveCommand,
      ttlMs: number,
      caller: Caller,
      turn: IdempotencyClaim | null = null,
    ): Promise<ReserveDecision | DuplicateRequest> {
      const [decision] = await reserveAll([{ command, caller }], ttlMs, turn)
      return decision ?? keyTaken
    },

    /** Makes the reservation of this token active and states the records that it must have. */
    async commit(
      command: CommitCommand,
      desired: readonly RecordSet[],
      caller: Caller,
      turn: IdempotencyClaim | null = null,
    ): Promise<CommitDecision | DuplicateRequest> {
      const [row] = await withTimeout(
        sql<{ decision: CommitSaid }[]>`
          with turn as (${takeTurn(turn)}), held as (${heldByToken(command, 'committed')}), done as (
            update pool_allocations a set
              state = 'active', expires_at = null, committed_at = greatest(${clock}, reserved_at),
              sovereign_fqdn = ${command.sovereignFQDN}, load_balancer_ip = ${command.loadBalancerIP}::inet
            from held
            where held.outcome = 'committed' and ${named(command)}
            returning a.*
          ), stated as (
            ${stateDesired(sql`done`, desired)}
          ), written as (
            ${history(sql`done`, sql`'committed', 'reserved', 'active'`, caller)}
          ), said as (
            select coalesce(held.outcome, 'not-found') as outcome, ${columns}, version
            from turn left join held on true left join done a on true left join stated on true
          ), ${decideAndRemember}`,
        timeoutMs,
      )
      return row ? commitDecisionOf(row.decision) : keyTaken
    },

    /** Extends the reservation of this token to `ttlMs` from now, but not past `maxAgeMs` after it was made. */
    async renew(
      command: RenewCommand,
      limits: { ttlMs: number; maxAgeMs: number },
      caller: Caller,
    ): Promise<RenewDecision> {
      const [row] = await withTimeout(
        sql<RenewSaid[]>`
          with turn as (${takeTurn(null)}), held as (${heldByToken(command, 'renewed')}), done as (
            update pool_allocations a set
              expires_at = greatest(a.expires_at, least(
                ${clock} + ${milliseconds(limits.ttlMs)}, a.reserved_at + ${milliseconds(limits.maxAgeMs)}))
            from held
            where held.outcome = 'renewed' and ${named(command)}
            returning a.*
          ), written as (
            ${history(sql`done`, sql`'renewed', 'reserved', 'reserved'`, caller)}
          )
          select held.outcome, ${columns} from held left join done a on true`,
        timeoutMs,
      )
      return renewDecisionOf(row ?? { outcome: 'not-found' })
    },

    /** Frees the name and, when it was active, states that it must have no records. */
    async release(
      command: ReleaseCommand,
      caller: Caller,
      turn: IdempotencyClaim | null = null,
    ): Promise<ReleaseDecision | DuplicateRequest> {
      const token = command.reservationToken
      const [row] = await withTimeout(
        sql<{ decision: ReleaseSaid }[]>`
          with turn as (${takeTurn(turn)}), held as (
            select case
              when ${token === undefined}::boolean or reservation_token = ${asUuid(token)}::uuid then 'released'
              else 'token-mismatch'
            end as outcome
            from turn, pool_allocations a where ${named(command)} and ${isLive} for update of a
          ), gone as (
            delete from pool_allocations a using held
            where held.outcome = 'released' and ${named(command)}
            returning a.*
          ), stated as (
            ${stateDesired(sql`gone where state = 'active'`, [])}
          ), written as (
            ${history(sql`gone`, sql`'released', state, 'none'`, caller)}
          ), said as (
            select coalesce(held.outcome, 'not-found') as outcome, ${columnsWithProgress},
              stated.version as withdrawal
            from turn left join held on true left join gone a on true left join stated on true
              left join dns_names d on a.state = 'active' and d.zone = a.pool_domain and d.subdomain = a.subdomain
          ), ${decideAndRemember}`,
        timeoutMs,
      )
      return row ? releaseDecisionOf(row.decision) : keyTaken
    },

    /** Deletes up to `limit` expired reservations that nobody else holds at the moment; how many it deleted. */
    async deleteExpired(limit: number): Promise<number> {
      const [row] = await withTimeout(
        sql<{ deleted: number }[]>`
          with due as (
            select pool_domain, subdomain from pool_allocations
            where state = 'reserved' and expires_at <= ${clock}
            order by expires_at limit ${limit}
            for update skip locked
          ), gone as (
            delete from pool_allocations a using due
            where a.pool_domain = due.pool_domain and a.subdomain = due.subdomain
            returning a.*
          ), written as (
            ${history(sql`gone`, sql`'expired', 'reserved', 'none'`, 'sweeper')}
          )
          select count(*) as deleted from gone`,
        timeoutMs,
      )
      return row?.deleted ?? 0
    },
  }
}

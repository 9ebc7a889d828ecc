import type { Sql } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import { type CoveringName, createPools, type Pools, toCoveringNames, toFqdn } from '../naming/naming.ts'
import { IS_LAPSED, IS_LIVE, insertHistory, SWEEPER } from './sql.ts'

export interface PoolRegistryOptions {
  readonly managedDomains: readonly string[]
  /** Milliseconds. */
  readonly timeoutMs: number
}

/** A pool of the configuration is at or below a name that a client holds. */
export interface CoveredPool {
  readonly pool: string
  /** The FQDN of that name. */
  readonly name: string
}

/** A pool is another replica's while that replica has confirmed it within this time. */
const REGISTRATION_TTL_MS = 600_000
/** A row is confirmed again after this time, so that most refreshes write nothing. */
const CONFIRMATION_MS = 60_000

/** Labels that a client can have. The check constraint of the table has the same rule. */
const LABEL = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const canBeReserved = ({ subdomain }: CoveringName): boolean => LABEL.test(subdomain) && !/^..--/.test(subdomain)

/** The names that cover a pool. */
const createCoveringNames = (sql: Sql, { managedDomains, timeoutMs }: PoolRegistryOptions) => {
  const { now, milliseconds } = timeSql(sql)
  /** Rows of which no client and no lineage has the name. */
  const isUnheld = sql.unsafe(`(a.state <> 'pool' and a.lineage_id is null and ${IS_LAPSED})`)

  const toRows = (names: readonly CoveringName[]) => sql`
    jsonb_to_recordset(${sql.json(
      names.map(({ poolDomain, subdomain, coveredPool }) => ({
        pool_domain: poolDomain,
        subdomain,
        covered_pool: coveredPool,
      })),
    )}) as covering (pool_domain text, subdomain text, covered_pool text)`

  /** Blocks the labels of known pools that cover a known pool. A granted name stays as it is. */
  const blockLabels = async ({ known }: Pools): Promise<void> => {
    const names = known.flatMap(toCoveringNames).filter(name => known.includes(name.poolDomain) && canBeReserved(name))
    if (names.length === 0) return
    // In the order of the key, as every statement that locks several rows.
    await withTimeout(
      sql`
        with blocked as (
          insert into pool_allocations as a (pool_domain, subdomain, state, reserved_at, token_hash, created_by)
          select distinct on (pool_domain collate "C", subdomain collate "C")
            pool_domain, subdomain, 'pool', ${now}, sha256(gen_random_uuid()::text::bytea), ''
          from ${toRows(names)} order by pool_domain collate "C", subdomain collate "C"
          on conflict (pool_domain, subdomain) do update set
            state = excluded.state, reserved_at = excluded.reserved_at, token_hash = excluded.token_hash,
            created_by = excluded.created_by, replaced_state = nullif(a.state, excluded.state),
            expires_at = null, cool_off_until = null, former_token_hash = null, sovereign_fqdn = null,
            load_balancer_ip = null, target = null, committed_at = null
          where (a.state = 'pool' and a.reserved_at < ${now} - ${milliseconds(CONFIRMATION_MS)}) or ${isUnheld}
          returning a.*
        ),
        ended as (select * from blocked where replaced_state = 'reserved')
        ${sql.unsafe(insertHistory('ended', `'expired', 'reserved', 'none'`, { origin: SWEEPER }))}`,
      timeoutMs,
    )
  }

  /** The granted names that cover a pool of the configuration, in whatever pool they are. */
  const findCovered = async (): Promise<readonly CoveredPool[]> => {
    const rows = await withTimeout(
      sql<(CoveringName & { coveredPool: string })[]>`
        select a.pool_domain as "poolDomain", a.subdomain, covered_pool as "coveredPool"
        from ${toRows(managedDomains.flatMap(toCoveringNames))} join pool_allocations a using (pool_domain, subdomain)
        where a.state <> 'pool' and (${sql.unsafe(IS_LIVE)} or a.lineage_id is not null) order by covered_pool, a.subdomain`,
      timeoutMs,
    )
    return rows.map(({ poolDomain, subdomain, coveredPool }) => ({
      pool: coveredPool,
      name: toFqdn(poolDomain, subdomain),
    }))
  }

  return { blockLabels, findCovered }
}

export type PoolRegistry = ReturnType<typeof createPoolRegistry>

/**
 * The pools of all replicas, and the names that would cover one of them.
 *
 * A name at or above a pool must not be granted: its holder would control every name of the pool. During the rollout of a
 * longer list, replicas have different lists. Therefore the label that covers a pool gets a row in the state `pool`, which
 * no statement replaces. It replaces an expired reservation, and a name in its cool-off, which then cannot be taken back.
 * The primary key orders that insert and any reservation of the same label: either the label is blocked, or the replica
 * with the new pool finds it granted and does not start.
 */
export const createPoolRegistry = (sql: Sql, { managedDomains, timeoutMs }: PoolRegistryOptions) => {
  const { now, milliseconds } = timeSql(sql)
  const { blockLabels, findCovered } = createCoveringNames(sql, { managedDomains, timeoutMs })
  const expiredBefore = sql`${now} - ${milliseconds(REGISTRATION_TTL_MS)}`
  const managed = managedDomains.toSorted()
  let current = createPools(managedDomains)

  /** The domains as rows, passed as one JSON parameter. */
  const toDomains = (domains: readonly string[]) =>
    sql`jsonb_array_elements_text(${sql.json([...domains])}) as listed (domain)`

  /** Returns the pools that no replica had registered. */
  const register = async (): Promise<readonly string[]> => {
    const rows = await withTimeout(
      sql<{ domain: string; isNew: boolean }[]>`
        insert into pools as p (domain, listed_at) select domain, ${now} from ${toDomains(managed)}
        on conflict (domain) do update set listed_at = excluded.listed_at where p.listed_at < ${now} - ${milliseconds(CONFIRMATION_MS)}
        returning p.domain, p.xmax = 0 as "isNew"`,
      timeoutMs,
    )
    return rows.filter(({ isNew }) => isNew).map(({ domain }) => domain)
  }

  /** One index lookup per pool, however many names it has. */
  const load = async (): Promise<Pools> => {
    const rows = await withTimeout(
      sql<{ domain: string; isRegistered: boolean; isUsed: boolean }[]>`
        with recursive allocated as (
          select min(pool_domain) as domain from pool_allocations
          union all
          select (select min(pool_domain) from pool_allocations where pool_domain > allocated.domain)
          from allocated where allocated.domain is not null
        ), recorded as (
          select min(zone) as domain from dns_names
          union all
          select (select min(zone) from dns_names where zone > recorded.domain)
          from recorded where recorded.domain is not null
        ), candidates as (
          select domain from allocated union select domain from recorded union select domain from pools
        )
        select domain,
          exists (select from pools p where p.domain = c.domain and p.listed_at > ${expiredBefore}) as "isRegistered",
          exists (select from recorded r where r.domain = c.domain)
            or exists (select from pool_allocations a where a.pool_domain = c.domain and a.state <> 'pool') as "isUsed"
        from candidates c where domain is not null and domain not in (select domain from ${toDomains(managed)})
        order by domain`,
      timeoutMs,
    )
    return createPools(managedDomains, {
      draining: rows.filter(({ isUsed }) => isUsed).map(({ domain }) => domain),
      registered: rows.filter(({ isRegistered }) => isRegistered).map(({ domain }) => domain),
    })
  }

  /**
   * Deletes what remains of pools that no replica lists, that have no names and no records: their registration, their
   * zone, and the labels that were blocked for them. A withdrawal that was never attempted, because the zone is not
   * there, has written no record: it ends.
   */
  const forgetUnused = async (pools: Pools): Promise<void> => {
    const registered = sql`select domain from pools where listed_at > ${expiredBefore}`
    await withTimeout(sql`delete from pools where listed_at <= ${expiredBefore}`, timeoutMs)
    await withTimeout(
      sql`
        delete from dns_names n
        where n.zone in (select domain from ${toDomains(pools.draining)}) and n.zone not in (${registered})
          and n.desired = '[]' and n.attempted_version = 0 and n.owned = '[]' and n.failure = 'zone'
          and not exists (select from pool_allocations a where a.pool_domain = n.zone and a.state <> 'pool')`,
      timeoutMs,
    )
    await withTimeout(
      sql`
        delete from dns_zones z
        where z.zone not in (select domain from ${toDomains(pools.managed)}) and z.zone not in (${registered})
          and not exists (select from dns_names n where n.zone = z.zone)
          and not exists (select from pool_allocations a where a.pool_domain = z.zone and a.state <> 'pool')`,
      timeoutMs,
    )
    await withTimeout(
      sql`delete from pool_allocations where state = 'pool' and reserved_at <= ${expiredBefore}`,
      timeoutMs,
    )
  }

  return {
    /** As of the last refresh, so that no request queries them. */
    pools: (): Pools => current,

    /** Registers the pools of the configuration. Returns those that must not be served; then nothing is registered. */
    async start(): Promise<readonly CoveredPool[]> {
      const added = await register()
      await blockLabels(await load())
      const covered = await findCovered()
      if (covered.length > 0) {
        const rejected = covered.map(({ pool }) => pool).filter(pool => added.includes(pool))
        await withTimeout(sql`delete from pools where domain in (select domain from ${toDomains(rejected)})`, timeoutMs)
        return covered
      }
      current = await load()
      return []
    },

    /** Confirms the pools of this replica, reads those of the others, and forgets unused ones. */
    async refresh(): Promise<void> {
      await register()
      current = await load()
      await blockLabels(current)
      await forgetUnused(current)
    },
  }
}

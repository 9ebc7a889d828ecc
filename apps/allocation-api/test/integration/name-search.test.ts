import type { ListedName, NamesQuery } from '@pool/contract'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { beforeAll, expect, test } from 'vitest'
import { formatNamePosition } from '../../src/allocation/domain/name-filter.ts'
import { createNameSearch } from '../../src/allocation/name-search.ts'
import { useTestDatabase } from '../support/database.ts'

const NAMES = proofSize(1_000_000, 20_000)
/** Blocks of 8 KiB. A page reads at most 2,000 rows of an index for each pool, and finds each of them in two tables. */
const MAX_BLOCKS = 60_000
const POOLS = ['a.test', 'b.test', 'c.test']

// One, so that the statistics are those of the searches.
const database = await useTestDatabase({ connections: 1 })
const { sql } = database
const search = createNameSearch(sql, { timeoutMs: 60_000, listPools: () => POOLS })

/**
 * Names n0, n1, … in turn in each pool: every 10th reserved, every 100th in its cool-off, every 7,000th held; of the active
 * ones every 10th pending, and every 1,000th failing.
 */
beforeAll(async () => {
  await sql`
    insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, cool_off_until, lineage_id,
      token_hash, created_by, sovereign_fqdn, load_balancer_ip, committed_at)
    select pool, 'n' || i, state, now(), case when state = 'reserved' then now() + interval '1 day' end,
      case when state = 'released' then now() + interval '1 day' end,
      case when i % 7000 = 6999 then gen_random_uuid() end, sha256(i::text::bytea), 'team-' || i % 50,
      case when state = 'active' then 'n' || i || '.' || pool end,
      case when state = 'active' then '10.0.0.0'::inet + i % 65536 end, case when state = 'active' then now() end
    from (
      select i, (string_to_array(${POOLS.join(' ')}, ' '))[i % 3 + 1] as pool,
        case when i % 10 = 3 then 'reserved' when i % 100 = 7 or i % 7000 = 6999 then 'released' else 'active' end as state
      from generate_series(0, ${NAMES - 1}::int) i
    ) names`
  await sql`
    insert into dns_names (zone, subdomain, version, desired, changed_at, applied_version, next_attempt_at, attempts, failure, last_error)
    select pool_domain, subdomain, number, '[]', now(), case when is_failing or number % 10 = 1 then 0 else number end, now(),
      is_failing::int, case when is_failing then 'rejected' end, case when is_failing then 'not accepted' end
    from (
      select pool_domain, subdomain, number, state, number % 1000 = 5 as is_failing
      from (select *, substr(subdomain, 2)::bigint as number from pool_allocations) numbered
      where state = 'active' and number > 0
    ) active`
  await sql`vacuum analyze pool_allocations`
  await sql`vacuum analyze dns_names`
})

const readAll = async (query: NamesQuery): Promise<ListedName[]> => {
  const names: ListedName[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await search({ ...query, ...(cursor === undefined ? {} : { cursor }) })
    if (page.kind !== 'found') throw new Error(page.kind)
    names.push(...page.names)
    if (page.next === null) return names
    cursor = page.next
  }
}

const count = async (condition: (i: number) => boolean): Promise<number> =>
  Array.from({ length: NAMES }, (_, i) => i).filter(condition).length

test.each<readonly [query: NamesQuery, condition: (i: number) => boolean]>([
  [{ q: 'n12' }, i => String(i).startsWith('12')],
  [{ q: 'n12.b.' }, i => i === 12 && i % 3 === 1],
  [{ pool: 'c.test', state: 'reserved' }, i => i % 3 === 2 && i % 10 === 3],
  [{ state: 'cooling-off' }, i => i % 10 !== 3 && i % 100 === 7],
  [{ createdBy: 'team-17', state: 'cooling-off' }, () => false],
  [{ createdBy: 'team-7', state: 'cooling-off' }, i => i % 50 === 7 && i % 100 === 7],
  [{ address: '10.0.1', state: 'active' }, i => Math.floor((i % 65_536) / 256) === 1 && i % 10 !== 3 && i % 100 !== 7],
  [{ dns: 'failing' }, i => i % 1_000 === 5],
  [{ state: 'held' }, i => i % 7_000 === 6_999],
  [{ state: 'held', q: 'n1', pool: 'b.test' }, i => i % 7_000 === 6_999 && i % 3 === 1 && String(i).startsWith('1')],
  [{ dns: 'pending', pool: 'a.test' }, i => i % 10 === 1 && i % 3 === 0],
  [{ dns: 'failing', q: 'n1', createdBy: 'team-5' }, i => i % 1_000 === 5 && String(i).startsWith('1')],
])('%j finds exactly the names that meet it, whatever the size of a page', async (query, condition) => {
  const names = await readAll({ ...query, limit: 1_000 })
  const keys = names.map(({ poolDomain, subdomain }) => `${subdomain}.${poolDomain}`)
  expect(new Set(keys).size).toBe(keys.length)
  expect(keys.length).toBe(await count(condition))
})

test.each<NamesQuery>([
  { state: 'held' },
  { state: 'held', q: 'n' },
  { state: 'held', pool: 'b.test' },
  { state: 'held', createdBy: 'team-49' },
  { state: 'cooling-off', q: 'n' },
  { state: 'reserved', q: 'n1' },
  { dns: 'failing' },
  { dns: 'failing', q: 'n2' },
])('%j: the first page has few names among many', async query => {
  const page = await search({ ...query, limit: 1 })
  expect(page.kind === 'found' && page.names.length).toBe(1)
})

test('a name that exists throughout is listed once, while others come and go between the pages', async () => {
  const [row] = await sql`select count(*)::int as names from pool_allocations where subdomain like 'n77%'`
  const seen: string[] = []
  for (let cursor: string | undefined, page = 0; ; page += 1) {
    const result = await search({ q: 'n77', limit: 7, ...(cursor === undefined ? {} : { cursor }) })
    if (result.kind !== 'found') throw new Error(result.kind)
    seen.push(...result.names.map(({ poolDomain, subdomain }) => `${subdomain}.${poolDomain}`))
    await sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      select pool, 'n77x' || ${page}::int, 'reserved', now(), now() + interval '1 day', sha256('x'), '' from string_to_table(${POOLS.join(' ')}, ' ') pool`
    await sql`delete from pool_allocations where subdomain = ${`n77x${page - 1}`}`
    if (result.next === null) break
    cursor = result.next
  }
  const throughout = seen.filter(name => !name.includes('x'))
  expect(new Set(throughout).size).toBe(throughout.length)
  expect(throughout.length).toBe(row?.names)
  await sql`delete from pool_allocations where subdomain like 'n77x%'`
})

const queries: readonly NamesQuery[] = [
  {},
  { q: 'n5' },
  { q: 'n777777' },
  { q: 'n55.b.te' },
  { q: 'zzz' },
  { pool: 'b.test', q: 'n4' },
  { address: '10.0' },
  { address: '10.0.77.7' },
  { address: '192.0.2' },
  { createdBy: 'team-4' },
  { createdBy: 'team-49', state: 'cooling-off' },
  { createdBy: 'unknown' },
  { state: 'active' },
  { state: 'reserved' },
  { state: 'cooling-off' },
  { state: 'held' },
  { state: 'held', q: 'n' },
  { state: 'cooling-off', q: 'n77' },
  { dns: 'failing' },
  { dns: 'failing', q: 'n777777' },
  { dns: 'pending' },
  { dns: 'published' },
  { dns: 'published', state: 'reserved' },
  { dns: 'failing', createdBy: 'team-5' },
]

const readBlocks = async () => {
  await sql`select pg_stat_force_next_flush()`
  const [row] = await sql<{ blocks: number }[]>`
    select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::float8 as blocks
    from pg_statio_user_tables where relname in ('pool_allocations', 'dns_names')`
  return row?.blocks ?? 0
}

test.each<NamesQuery>([{}, { pool: 'c.test' }, { q: 'n' }, { state: 'reserved', pool: 'c.test' }])(
  'a later page of %j reads as much as the first one',
  async query => {
    const countBlocks = async (cursor: object) => {
      const before = await readBlocks()
      await search({ ...query, ...cursor, limit: 10 })
      return (await readBlocks()) - before
    }
    const first = await countBlocks({})
    const order = query.state === undefined ? 'name' : 'state'
    const later = await countBlocks({ cursor: formatNamePosition({ order, keys: ['c.test', 'n8'] }) })
    expect(later).toBeLessThan(1.5 * first)
  },
)

test('no page reads more than a bounded part of the tables', async () => {
  const durations: number[] = []
  for (const query of queries) {
    const before = await readBlocks()
    const startedAt = performance.now()
    const page = await search({ ...query, limit: 100 })
    durations.push(performance.now() - startedAt)
    expect(page.kind).toBe('found')
    expect((await readBlocks()) - before, JSON.stringify(query)).toBeLessThan(MAX_BLOCKS)
  }
  const sorted = durations.toSorted((a, b) => a - b)
  const p95 = sorted[Math.floor(sorted.length * 0.95)] ?? 0
  reportProof(
    `search of ${NAMES} names, ${queries.length} queries: p95 ${p95.toFixed(1)} ms, max ${(sorted.at(-1) ?? 0).toFixed(1)} ms`,
  )
})

import type { ReservedAllocation } from '@pool/contract'
import { proofSize } from '@pool/test-kit/proof-size.ts'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Caller } from '../../src/allocation/domain/types.ts'
import { type AllocationReader, createAllocationReader } from '../../src/allocation/reader.ts'
import { type AllocationRepository, createAllocationRepository } from '../../src/allocation/repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'model' }
const TTL = 60_000
const MAX_AGE = 130_000
/** Time advances in steps of 25 s, so that no expiry (60 s, 130 s) falls within seconds of a step. */
const STEPS = [25_000, 50_000]

/** The specified behaviour of the repository, in plain TypeScript. */
class Model {
  now = 0
  rows = new Map<string, { token: string; at: number; until: number; active: boolean }>()
  live = (name: string) => {
    const row = this.rows.get(name)
    return row && (row.active || row.until > this.now) ? row : undefined
  }
  reserve = (name: string, token: string) => {
    if (this.live(name)) return 'conflict'
    this.rows.set(name, { token, at: this.now, until: this.now + TTL, active: false })
    return 'granted'
  }
  reject = (name: string, token: string) => {
    const row = this.rows.get(name)
    if (!row) return 'not-found'
    if (row.active) return 'already-active'
    if (row.until <= this.now) return 'reservation-expired'
    return row.token === token ? null : 'token-mismatch'
  }
  commit = (name: string, token: string) => {
    const rejection = this.reject(name, token)
    const row = this.rows.get(name)
    if (!rejection && row) row.active = true
    return rejection ?? 'committed'
  }
  renew = (name: string, token: string) => {
    const rejection = this.reject(name, token)
    const row = this.rows.get(name)
    if (!rejection && row) row.until = Math.max(row.until, Math.min(this.now + TTL, row.at + MAX_AGE))
    return rejection ?? 'renewed'
  }
  release = (name: string, token: string | undefined) => {
    const row = this.live(name)
    if (!row) return 'not-found'
    if (token !== undefined && row.token !== token) return 'token-mismatch'
    this.rows.delete(name)
    return 'released'
  }
  sweep = () => {
    const expired = [...this.rows.keys()].filter(name => !this.live(name))
    for (const name of expired) this.rows.delete(name)
    return expired.length
  }
}

interface Real {
  readonly store: AllocationRepository
  readonly pool: string
  readonly advance: (ms: number) => Promise<void>
  /** All tokens of each name, the latest last. */
  readonly tokens: Map<string, string[]>
}

type Step = fc.AsyncCommand<Model, Real>
type TokenChoice = 'own' | 'older' | 'foreign' | 'garbage'

let database: TestDatabase
let reader: AllocationReader
let steps = 0
let pools = 0

const pickToken = (real: Real, name: string, choice: TokenChoice): string => {
  const own = real.tokens.get(name) ?? []
  const none = '00000000-0000-4000-8000-000000000000'
  if (choice === 'garbage') return 'not-a-uuid'
  if (choice === 'own') return own.at(-1) ?? none
  if (choice === 'older') return own.at(-2) ?? none
  return [...real.tokens].find(([other]) => other !== name)?.[1].at(-1) ?? none
}

/** Real time passes too, but far less than one step. */
const expectLifetime = (actual: ReservedAllocation, expected: { at: number; until: number } | undefined) => {
  const lifetime = Date.parse(actual.expiresAt) - Date.parse(actual.reservedAt)
  expect(Math.abs(lifetime - ((expected?.until ?? 0) - (expected?.at ?? 0)))).toBeLessThan(4_000)
}

/** Executes the step on both sides and compares the results, the list of the pool, and the desired records. */
const step = (
  label: string,
  run: (model: Model, real: Real) => Promise<[actual: unknown, expected: unknown]>,
): Step => ({
  check: () => true,
  toString: () => label,
  run: async (model, real) => {
    steps += 1
    const [actual, expected] = await run(model, real)
    expect(actual, label).toEqual(expected)
    const listed = await reader.list(real.pool, { after: '', limit: 100 })
    const live = [...model.rows.keys()].filter(name => model.live(name)).sort()
    expect(listed.map(row => [row.subdomain, row.state])).toEqual(
      live.map(name => [name, model.rows.get(name)?.active ? 'active' : 'reserved']),
    )
    const published = await database.sql<{ subdomain: string }[]>`
      select subdomain from dns_names where zone = ${real.pool} and desired <> '[]' order by 1`
    expect(published.map(row => row.subdomain)).toEqual(live.filter(name => model.rows.get(name)?.active))
  },
})

const name = fc.constantFrom('a', 'b', 'c')
const choice = fc.constantFrom<TokenChoice>('own', 'own', 'own', 'older', 'foreign', 'garbage')

const anyStep: fc.Arbitrary<Step>[] = [
  name.map(n =>
    step(`reserve ${n}`, async (model, { store, pool, tokens }) => {
      const outcome = await store.reserve({ poolDomain: pool, subdomain: n, createdBy: '' }, caller)
      const token = outcome.kind === 'granted' ? outcome.reservationToken : ''
      if (token) tokens.set(n, [...(tokens.get(n) ?? []), token])
      const expected = model.reserve(n, token)
      if (outcome.kind === 'granted') expectLifetime(outcome.allocation, model.rows.get(n))
      return [outcome.kind, expected]
    }),
  ),
  fc.tuple(name, choice).map(([n, which]) =>
    step(`commit ${n} with ${which}`, async (model, real) => {
      const reservationToken = pickToken(real, n, which)
      const sovereignFQDN = `${n}.${real.pool}`
      const outcome = await real.store.commit(
        { poolDomain: real.pool, subdomain: n, reservationToken, sovereignFQDN, loadBalancerIP: '192.0.2.1' },
        [{ name: sovereignFQDN, type: 'A', ttl: 60, values: ['192.0.2.1'] }],
        caller,
      )
      return [outcome.kind, model.commit(n, reservationToken)]
    }),
  ),
  fc.tuple(name, choice).map(([n, which]) =>
    step(`renew ${n} with ${which}`, async (model, real) => {
      const reservationToken = pickToken(real, n, which)
      const command = { poolDomain: real.pool, subdomain: n, reservationToken }
      const outcome = await real.store.renew(command, caller)
      const expected = model.renew(n, reservationToken)
      if (outcome.kind === 'renewed') expectLifetime(outcome.allocation, model.rows.get(n))
      return [outcome.kind, expected]
    }),
  ),
  fc.tuple(name, fc.option(choice, { nil: undefined })).map(([n, which]) =>
    step(`release ${n} with ${which ?? 'no token'}`, async (model, real) => {
      const reservationToken = which && pickToken(real, n, which)
      const outcome = await real.store.release({ poolDomain: real.pool, subdomain: n, reservationToken }, caller)
      return [outcome.kind, model.release(n, reservationToken)]
    }),
  ),
  name.map(n =>
    step(`check ${n}`, async (model, { pool }) => {
      const row = model.live(n)
      const [state] = await reader.findStates([{ poolDomain: pool, subdomain: n }])
      return [state, row ? (row.active ? 'active' : 'reserved') : null]
    }),
  ),
  fc.constant(step('sweep', async (model, { store }) => [await store.deleteExpired(100), model.sweep()])),
  fc.constantFrom(...STEPS).map(ms =>
    step(`${ms / 1_000} s later`, async (model, { advance }) => {
      await advance(ms)
      model.now += ms
      return [null, null]
    }),
  ),
]

/** Runs random commands against the repository and the model. Each run uses its own pool. */
const property = (createRepository: (pool: string) => AllocationRepository) =>
  fc.asyncProperty(fc.commands(anyStep, { maxCommands: 100, size: 'max' }), commands => {
    pools += 1
    const pool = `run${pools}.test`
    const { sql } = database
    const real: Real = {
      store: createRepository(pool),
      pool,
      tokens: new Map(),
      advance: async ms => {
        const shift = sql`${ms}::float8 * interval '1 millisecond'`
        await sql`
          update pool_allocations set reserved_at = reserved_at - ${shift}, expires_at = expires_at - ${shift},
            committed_at = committed_at - ${shift} where pool_domain = ${pool}`
      },
    }
    return fc.asyncModelRun(() => ({ model: new Model(), real }), commands)
  })

const realRepository = (pool: string, reservation = { ttlMs: TTL, maxAgeMs: MAX_AGE }): AllocationRepository => {
  const store = createAllocationRepository(database.sql, { reservation, timeoutMs: 5_000 })
  // All runs share the table, but time advances in one pool only, so a sweep counts the rows of its own pool.
  return {
    ...store,
    deleteExpired: async limit => {
      const [before] = await database.sql`select count(*)::int as n from pool_allocations where pool_domain = ${pool}`
      await store.deleteExpired(limit)
      const [after] = await database.sql`select count(*)::int as n from pool_allocations where pool_domain = ${pool}`
      return before?.n - after?.n
    },
  }
}

/** Bugs that the comparison with the model must find. */
const seeded: Readonly<Record<string, (pool: string) => Partial<AllocationRepository>>> = {
  'an expired reservation is not free': pool => ({
    reserve: async (command, by) => {
      const rows = await database.sql`
        select from pool_allocations where pool_domain = ${pool} and subdomain = ${command.subdomain}`
      return rows.length > 0 ? { kind: 'conflict' } : realRepository(pool).reserve(command, by)
    },
  }),
  'commit accepts any token': pool => ({
    commit: async (command, desired, by) => {
      const [row] = await database.sql`
        select reservation_token from pool_allocations
        where pool_domain = ${pool} and subdomain = ${command.subdomain}`
      const reservationToken: string = row?.reservation_token ?? command.reservationToken
      return realRepository(pool).commit({ ...command, reservationToken }, desired, by)
    },
  }),
  'commit revives an expired reservation': pool => ({
    commit: async (command, desired, by) => {
      await database.sql`
        update pool_allocations set expires_at = now() + interval '1 minute'
        where pool_domain = ${pool} and subdomain = ${command.subdomain} and state = 'reserved'`
      return realRepository(pool).commit(command, desired, by)
    },
  }),
  'commit sets no records': pool => ({
    commit: async (command, _, by) => realRepository(pool).commit(command, [], by),
  }),
  'renew exceeds the maximum age': pool => ({
    renew: (command, by) => realRepository(pool, { ttlMs: TTL, maxAgeMs: 10 * MAX_AGE }).renew(command, by),
  }),
  'renew extends nothing': pool => ({
    renew: (command, by) => realRepository(pool, { ttlMs: 0, maxAgeMs: MAX_AGE }).renew(command, by),
  }),
  'release accepts any token': pool => ({
    release: (command, by) => realRepository(pool).release({ ...command, reservationToken: undefined }, by),
  }),
  'release keeps the records': pool => ({
    release: async (command, by) => {
      const outcome = await realRepository(pool).release(command, by)
      await database.sql`
        update dns_names set desired = '[{"name":"x","type":"A","ttl":1,"values":["192.0.2.1"]}]'
        where zone = ${pool} and subdomain = ${command.subdomain}`
      return outcome
    },
  }),
  'the sweeper deletes live reservations': pool => ({
    deleteExpired: async () => {
      const gone = await database.sql`delete from pool_allocations where pool_domain = ${pool} and state = 'reserved'`
      return gone.count
    },
  }),
}

describe('the repository behaves like its model', () => {
  beforeAll(async () => {
    database = await createTestDatabase({ connections: 4 })
    reader = createAllocationReader(database.sql, { timeoutMs: 5_000 })
  })
  afterAll(() => database.drop())

  const runs = proofSize(300, 30)
  test(`in ${runs} runs of at least 25 commands on average`, { timeout: 180_000 }, async () => {
    const outcome = await fc.check(property(realRepository), { numRuns: runs, endOnFailure: false })
    expect(outcome.failed, fc.defaultReportMessage(outcome)).toBe(false)
    expect(outcome.numRuns).toBe(runs)
    expect(steps).toBeGreaterThan(runs * 25)
  })

  test.each(Object.keys(seeded))('the model finds the seeded bug: %s', { timeout: 120_000 }, async bug => {
    const mutate = seeded[bug]
    const outcome = await fc.check(
      property(pool => ({ ...realRepository(pool), ...mutate?.(pool) })),
      { numRuns: 1_000, endOnFailure: true },
    )
    expect(outcome.failed).toBe(true)
  })
})

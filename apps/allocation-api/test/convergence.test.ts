import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Caller } from '../src/allocation/allocation.ts'
import { createStore, type Store } from '../src/allocation/store.ts'
import { connect } from '../src/database/connect.ts'
import { assembleDns, type Dns } from '../src/dns/assembly.ts'
import { createClaims } from '../src/dns/claim.ts'
import type { Compared } from '../src/dns/compare.ts'
import type { Unavailable } from '../src/dns/provider.ts'
import { recordsOf } from '../src/dns/record-set.ts'
import { createTestDatabase, lacksDsn, type TestDatabase, testDsn } from './support/database.ts'
import { ScriptedProvider } from './support/scripted-provider.ts'
import { until } from './support/until.ts'

const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }
const poolDomain = 'pool.test'
const down = { kind: 'unavailable', reason: 'The provider is down.' } as const
const template = { names: ['@', '*'], ttl: 60 }
const DRIFT_MS = 600_000

/** One replica: its own connections, convergence and nothing else. */
interface Replica {
  readonly convergence: Dns
  readonly errors: unknown[]
  close(): Promise<void>
}

describe.skipIf(!testDsn)(`convergence (${testDsn ? 'real Postgres' : lacksDsn})`, () => {
  let database: TestDatabase
  let provider: ScriptedProvider
  let store: Store
  const compared: (Compared | Unavailable)[] = []
  const replicas: Replica[] = []

  /** Milliseconds by which the replicas' own clock is ahead. */
  let aheadMs = 0
  /** Lets time pass for the database's rows and for the replicas. */
  const advance = async (ms: number) => {
    aheadMs += ms
    await database.advance(ms)
  }

  const replica = ({ waitMs = 10_000, callTimeoutMs = 5_000, random = () => 0.5 } = {}): Replica => {
    const sql = connect(database.url, { connections: 4, applicationName: 'replica', slowestMs: 5_000 })
    const claims = createClaims(database.url, { waitMs: 10_000, holdMs: 30_000, timeoutMs: 5_000 })
    const errors: unknown[] = []
    const convergence = assembleDns({
      provider,
      sql,
      claims,
      statementTimeoutMs: 5_000,
      callDeadlineMs: callTimeoutMs,
      commitWaitMs: waitMs,
      driftIntervalMs: DRIFT_MS,
      now: () => performance.now() + aheadMs,
      random,
      onCall: () => {},
      onCompared: (_, outcome) => compared.push(outcome),
      onDefect: error => errors.push(error),
      onError: (_, error) => errors.push(error),
    })
    const made = {
      convergence,
      errors,
      close: async () => {
        await convergence.stop()
        await Promise.all([claims.close(), sql.end({ timeout: 1 })])
      },
    }
    replicas.push(made)
    return made
  }

  const activate = async (subdomain: string, address = '192.0.2.1') => {
    const fqdn = `${subdomain}.${poolDomain}`
    const granted = await store.reserve({ poolDomain, subdomain, createdBy: '' }, 600_000, caller)
    if (granted.kind !== 'granted') throw new Error(`${subdomain} is taken`)
    const { reservationToken } = granted
    const command = { poolDomain, subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address }
    const committed = await store.commit(command, recordsOf(fqdn, address, template), caller)
    if (committed.kind !== 'committed') throw new Error(committed.kind)
    return { zone: poolDomain, subdomain, version: committed.version }
  }
  const free = async (subdomain: string) => {
    const released = await store.release({ poolDomain, subdomain }, caller)
    if (released.kind !== 'released' || released.version === null) throw new Error(released.kind)
    return { zone: poolDomain, subdomain, version: released.version }
  }
  const row = async (subdomain: string) => {
    const [found] = await database.sql`select * from dns_names where zone = ${poolDomain} and subdomain = ${subdomain}`
    return found
  }

  beforeAll(async () => {
    database = await createTestDatabase()
    store = createStore(database.sql, { timeoutMs: 5_000 })
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    provider = new ScriptedProvider()
    await database.sql`delete from pool_allocations`
    await database.sql`delete from dns_names`
    await database.sql`delete from dns_zones`
    compared.length = 0
  })
  afterEach(async () => {
    for (const one of replicas.splice(0)) await one.close()
  })

  test('publishes what a commit states and withdraws what a release leaves', async () => {
    const { convergence } = replica()
    expect(await convergence.settle(await activate('acme'))).toEqual({ status: 'published' })
    expect(provider.names()).toEqual(['*.acme.pool.test', 'acme.pool.test'])
    expect(await convergence.settle(await free('acme'))).toEqual({ status: 'published' })
    expect(provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
  })

  test('a hundred commits that wait while a write is under way go out in the next one', async () => {
    const { convergence } = replica()
    const gate = Promise.withResolvers<void>()
    provider.gate = gate.promise
    const first = convergence.settle(await activate('first'))
    await until('it has come about', () => provider.underWay === 1)
    const rest = await Promise.all(Array.from({ length: 100 }, (_, i) => activate(`n${i}`)))
    const settled = rest.map(stated => convergence.settle(stated))
    gate.resolve()
    for (const state of await Promise.all([first, ...settled])) expect(state.status).toBe('published')
    expect(provider.calls).toEqual(['read', 'apply', 'read', 'apply'])
    expect(provider.names()).toHaveLength(202)
  })

  test('one writer a zone at a time across replicas, and each of them gets its answer', async () => {
    provider.applyMs = 5
    const four = [replica(), replica(), replica(), replica()]
    const stated = await Promise.all(Array.from({ length: 40 }, (_, i) => activate(`n${i}`)))
    const states = await Promise.all(stated.map((one, i) => four[i % 4]?.convergence.settle(one)))
    for (const state of states) expect(state?.status).toBe('published')
    expect(provider.mostAtOnce).toBe(1)
    expect(provider.names()).toHaveLength(80)
  })

  test('a provider that is down: the caller learns it at once, and it is retried with growing pauses', async () => {
    const { convergence } = replica()
    provider.faults.push({ answer: down })
    expect(await convergence.settle(await activate('acme'))).toEqual({ status: 'failing', detail: down.reason })
    const pauses: number[] = []
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      const [{ pause }] = await database.sql<[{ pause: number }]>`
        select extract(epoch from next_attempt_at - statement_timestamp())::float8 as pause from dns_names`
      pauses.push(pause)
      provider.faults.push({ answer: down })
      await advance(pause * 1_000)
      await convergence.catchUp()
      await until('it has come about', async () => (await row('acme'))?.attempts === attempt + 1)
    }
    for (const [i, pause] of pauses.entries()) expect(Math.abs(pause - 0.5 * 2 ** i)).toBeLessThan(0.6)
    await advance(60_000)
    await convergence.catchUp()
    await until('it has come about', () => provider.names().length === 2)
    await until('it has come about', async () => (await row('acme'))?.last_error === null)
  })

  test('a name that is not due is left alone', async () => {
    const { convergence } = replica()
    provider.faults.push({ answer: down })
    await convergence.settle(await activate('acme'))
    const calls = provider.calls.length
    await database.sql`update dns_names set next_attempt_at = now() + interval '1 hour'`
    await convergence.catchUp()
    await convergence.settle(await activate('beta'))
    expect(provider.calls.slice(calls)).toEqual(['read', 'apply'])
    expect(provider.names()).toEqual(['*.beta.pool.test', 'beta.pool.test'])
  })

  test('Retry-After is heeded when it is longer than our own pause', async () => {
    const { convergence } = replica()
    provider.faults.push({ answer: { ...down, retryAfterMs: 90_000 } })
    await convergence.settle(await activate('acme'))
    const [{ pause }] = await database.sql<[{ pause: number }]>`
      select extract(epoch from next_attempt_at - statement_timestamp())::float8 as pause from dns_names`
    expect(pause).toBeGreaterThan(80)
  })

  test('a name that the provider refuses is set aside with the reason; the others go out', async () => {
    const { convergence } = replica()
    provider.refuses.add('*.bad.pool.test')
    const stated = await Promise.all(['good', 'bad', 'fine'].map(one => activate(one)))
    const [good, bad, fine] = await Promise.all(stated.map(convergence.settle))
    expect(good).toEqual({ status: 'published' })
    expect(fine).toEqual({ status: 'published' })
    expect(bad).toEqual({ status: 'failing', detail: 'The DNS provider refused *.bad.pool.test: not allowed' })
  })

  test("somebody else's record at a name is left as it is, and the name says so", async () => {
    const { convergence } = replica()
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example'] }
    provider.records.set('acme.pool.test CNAME', foreign)
    const state = await convergence.settle(await activate('acme'))
    expect(state).toMatchObject({ status: 'failing', detail: expect.stringContaining('acme.pool.test') })
    await convergence.settle(await free('acme'))
    expect([...provider.records.values()]).toEqual([foreign])
  })

  test('a provider that hangs is given up at its deadline; the caller is not held longer than its own', async () => {
    const { convergence } = replica({ callTimeoutMs: 200, waitMs: 100 })
    provider.faults.push(null, { answer: 'hang' })
    expect(await convergence.settle(await activate('acme'))).toEqual({ status: 'pending' })
    await until('it has come about', async () => (await row('acme'))?.attempts === 1)
    expect((await row('acme'))?.last_error).toBe('The DNS provider did not answer within 0.2 s.')
  })

  test('a provider that throws is a defect: told to the log, without its text on the wire', async () => {
    const one = replica()
    provider.faults.push({ answer: 'throw' })
    const state = await one.convergence.settle(await activate('acme'))
    expect(state.status).toBe('failing')
    expect(JSON.stringify(state)).not.toContain('secret')
    expect(one.errors).toHaveLength(1)
  })

  test('a time-out after the effect: the records are known as ours and are withdrawn later', async () => {
    const { convergence } = replica()
    provider.faults.push(null, { answer: down, after: true })
    const committed = await convergence.settle(await activate('acme'))
    expect(committed.status).toBe('failing')
    expect(provider.names()).toHaveLength(2)
    expect(await convergence.settle(await free('acme'))).toEqual({ status: 'published' })
    expect(provider.names()).toEqual([])
  })

  test('a withdrawal that still fails never undoes the publication of the next holder', async () => {
    const { convergence } = replica()
    await convergence.settle(await activate('acme', '192.0.2.1'))
    provider.faults.push({ answer: down })
    expect((await convergence.settle(await free('acme'))).status).toBe('failing')
    expect(await convergence.settle(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
    await advance(600_000)
    await convergence.catchUp()
    await convergence.settle(await activate('other'))
    expect(provider.records.get('acme.pool.test A')?.values).toEqual(['192.0.2.2'])
  })

  test('a commit and release while a pass is under way: the pass does not mark the newer version as applied', async () => {
    const { convergence } = replica()
    const gate = Promise.withResolvers<void>()
    provider.gate = gate.promise
    const publishing = convergence.settle(await activate('acme'))
    await until('it has come about', () => provider.underWay === 1)
    const withdrawing = convergence.settle(await free('acme'))
    gate.resolve()
    await publishing
    expect(await withdrawing).toEqual({ status: 'published' })
    expect(provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
  })

  test('what another process left due is found without being asked for', async () => {
    await activate('left')
    const { convergence } = replica()
    await convergence.catchUp()
    await until('it has come about', () => provider.names().length === 2)
  })

  test('more names than one pass takes are all published on one request', async () => {
    await database.sql`
      insert into dns_names (zone, subdomain, version, desired, desired_since, next_attempt_at)
      select ${poolDomain}, 'n' || n, nextval('dns_version'),
        jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1'))),
        now(), now()
      from generate_series(1, 2500) n`
    const { convergence } = replica()
    await convergence.settle(await activate('last'))
    await until('it has come about', () => provider.records.size === 2_502)
    expect(provider.calls).toHaveLength(6)
  })

  test('a writer whose connection dies loses its claim: another goes on, and it writes nothing more', async () => {
    const one = replica({ waitMs: 300 })
    const two = replica()
    const gate = Promise.withResolvers<void>()
    provider.readGate = gate.promise
    expect((await one.convergence.settle(await activate('acme'))).status).toBe('pending')
    expect(provider.reading).toBe(1)
    provider.readGate = Promise.resolve()
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'allocation-api zone' and state = 'idle in transaction'`

    expect(await two.convergence.settle(await free('acme'))).toEqual({ status: 'published' })
    const before = provider.calls.length
    gate.resolve()
    await until('it has come about', () => one.errors.length > 0)
    expect(String(one.errors[0])).toContain('the claim of pool.test was lost')
    expect(provider.calls.slice(before)).toEqual([])
    expect(provider.names()).toEqual([])
  })
})

import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { missingDsn, testDsn } from '../support/database.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

const down = { kind: 'unavailable', reason: 'The provider is down.' } as const

/** By how much a name comes later than the provider may be asked again, at the scene's even chance. */
const SPREAD_S = 0.125

/** That a pause can be of so many seconds. */
const expectPause = ({ least, most }: { readonly least: number; readonly most: number }, seconds: number) => {
  expect(least).toBeLessThanOrEqual(seconds)
  expect(most).toBeGreaterThanOrEqual(seconds)
}

describe.skipIf(!testDsn)(`convergence (${testDsn ? 'real Postgres' : missingDsn})`, () => {
  const scene = useDnsFixture()
  const { replica, activate, free, row, advance } = scene

  test('publishes what a commit states and withdraws what a release leaves', async () => {
    const { dns } = replica()
    expect(await dns.waitUntilApplied(await activate('acme'))).toEqual({ status: 'published' })
    expect(scene.provider.names()).toEqual(['*.acme.pool.test', 'acme.pool.test'])
    expect(await dns.waitUntilApplied(await free('acme'))).toEqual({ status: 'published' })
    expect(scene.provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
  })

  test('a hundred commits that wait while a write is under way go out in the next one', async () => {
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.gate = gate.promise
    const first = dns.waitUntilApplied(await activate('first'))
    await until('it has come about', () => scene.provider.underWay === 1)
    const rest = await Promise.all(Array.from({ length: 100 }, (_, i) => activate(`n${i}`)))
    const settled = rest.map(stated => dns.waitUntilApplied(stated))
    gate.resolve()
    for (const state of await Promise.all([first, ...settled])) expect(state.status).toBe('published')
    expect(scene.provider.calls).toEqual(['read', 'apply', 'read', 'apply'])
    expect(scene.provider.names()).toHaveLength(202)
  })

  test.each([
    { what: 'the whole zone: they go out in the same pass', isWhole: true, calls: ['read', 'apply'] },
    { what: 'only what it was asked for: in the next', isWhole: undefined, calls: ['read', 'apply', 'read', 'apply'] },
  ] as const)('commits that come while the provider shows $what', async ({ isWhole, calls }) => {
    if (isWhole) scene.provider.isFullZone = isWhole
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.readGate = gate.promise
    const first = dns.waitUntilApplied(await activate('first'))
    await until('it reads', () => scene.provider.reading === 1)
    const rest = await Promise.all(Array.from({ length: 20 }, (_, i) => activate(`n${i}`)))
    const settled = rest.map(stated => dns.waitUntilApplied(stated))
    scene.provider.readGate = Promise.resolve()
    gate.resolve()
    for (const state of await Promise.all([first, ...settled])) expect(state.status).toBe('published')
    expect(scene.provider.calls).toEqual(calls)
    expect(scene.provider.names()).toHaveLength(42)
  })

  test('a name that is released while the whole zone is read is not written at all', async () => {
    scene.provider.isFullZone = true
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.readGate = gate.promise
    const published = dns.waitUntilApplied(await activate('acme'))
    await until('it reads', () => scene.provider.reading === 1)
    const withdrawn = dns.waitUntilApplied(await free('acme'))
    gate.resolve()
    expect((await published).status).toBe('published')
    expect((await withdrawn).status).toBe('published')
    expect(scene.provider.calls).toEqual(['read'])
    expect(await scene.events('acme')).toEqual(['reserved', 'committed', 'released', 'withdrawn'])
  })

  test('one writer a zone at a time across replicas, and each of them gets its answer', async () => {
    scene.provider.applyMs = 5
    const four = [replica(), replica(), replica(), replica()]
    const stated = await Promise.all(Array.from({ length: 40 }, (_, i) => activate(`n${i}`)))
    const states = await Promise.all(stated.map((one, i) => four[i % 4]?.dns.waitUntilApplied(one)))
    for (const state of states) expect(state?.status).toBe('published')
    expect(scene.provider.mostAtOnce).toBe(1)
    expect(scene.provider.names()).toHaveLength(80)
  })

  test('a provider that is down: the caller learns it at once, and it is retried with growing pauses', async () => {
    const { dns } = replica()
    scene.provider.faults.push({ answer: down })
    const first = await activate('acme')
    const settle = async () => {
      expect(await dns.waitUntilApplied(first)).toEqual({ status: 'failing', detail: down.reason })
    }
    expectPause(await scene.pauseAfter(settle), 0.5 + SPREAD_S)
    for (const [i, seconds] of [1, 2, 4, 8].entries()) {
      scene.provider.faults.push({ answer: down })
      await advance((seconds / 2 + SPREAD_S) * 1_000)
      const attempt = async () => {
        await dns.syncDueZones()
        await until('it has come about', async () => (await row('acme'))?.attempts === i + 2)
      }
      expectPause(await scene.pauseAfter(attempt), seconds + SPREAD_S)
    }
    await advance(60_000)
    await dns.syncDueZones()
    await until('it has come about', () => scene.provider.names().length === 2)
    await until('it has come about', async () => (await row('acme'))?.last_error === null)
  })

  test('a name that is not due is left alone', async () => {
    const { dns } = replica()
    scene.provider.faults.push({ answer: down })
    await dns.waitUntilApplied(await activate('acme'))
    const calls = scene.provider.calls.length
    await scene.sql`update dns_names set next_attempt_at = now() + interval '1 hour'`
    await dns.syncDueZones()
    await dns.waitUntilApplied(await activate('beta'))
    expect(scene.provider.calls.slice(calls)).toEqual(['read', 'apply'])
    expect(scene.provider.names()).toEqual(['*.beta.pool.test', 'beta.pool.test'])
  })

  test('Retry-After is heeded when it is longer than our own pause', async () => {
    const { dns } = replica()
    scene.provider.faults.push({ answer: { ...down, retryAfterMs: 90_000 } })
    const stated = await activate('acme')
    expectPause(await scene.pauseAfter(() => dns.waitUntilApplied(stated)), 90 + SPREAD_S)
  })

  test('a name that the provider refuses is set aside with the reason; the others go out', async () => {
    const { dns } = replica()
    scene.provider.refuses.add('*.bad.pool.test')
    const stated = await Promise.all(['good', 'bad', 'fine'].map(one => activate(one)))
    const [good, bad, fine] = await Promise.all(stated.map(dns.waitUntilApplied))
    expect(good).toEqual({ status: 'published' })
    expect(fine).toEqual({ status: 'published' })
    expect(bad).toEqual({ status: 'failing', detail: 'The DNS provider rejected *.bad.pool.test: not allowed' })
  })

  test("somebody else's record at a name is left as it is, and the name says so", async () => {
    const { dns } = replica()
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example'] }
    scene.provider.records.set('acme.pool.test CNAME', foreign)
    const state = await dns.waitUntilApplied(await activate('acme'))
    expect(state).toMatchObject({ status: 'failing', detail: expect.stringContaining('acme.pool.test') })
    await dns.waitUntilApplied(await free('acme'))
    expect([...scene.provider.records.values()]).toEqual([foreign])
  })

  test('a provider that hangs is given up at its deadline; the caller is not held longer than its own', async () => {
    const { dns } = replica({ callTimeoutMs: 200, waitMs: 100 })
    scene.provider.faults.push(null, { answer: 'hang' })
    expect(await dns.waitUntilApplied(await activate('acme'))).toEqual({ status: 'pending' })
    await until('it has come about', async () => (await row('acme'))?.attempts === 1)
    expect((await row('acme'))?.last_error).toBe('The DNS provider did not answer within 0.2 s.')
  })

  test('a provider that throws is a defect: told to the log, without its text on the wire', async () => {
    const one = replica()
    scene.provider.faults.push({ answer: 'throw' })
    const state = await one.dns.waitUntilApplied(await activate('acme'))
    expect(state.status).toBe('failing')
    expect(JSON.stringify(state)).not.toContain('secret')
    expect(one.errors).toHaveLength(1)
  })

  test('a time-out after the effect: the records are known as ours and are withdrawn later', async () => {
    const { dns } = replica()
    scene.provider.faults.push(null, { answer: down, after: true })
    const committed = await dns.waitUntilApplied(await activate('acme'))
    expect(committed.status).toBe('failing')
    expect(scene.provider.names()).toHaveLength(2)
    expect(await dns.waitUntilApplied(await free('acme'))).toEqual({ status: 'published' })
    expect(scene.provider.names()).toEqual([])
  })

  test('a write that was not confirmed is said again, even where it shows: it might be undone by an older one', async () => {
    const { dns } = replica()
    scene.provider.faults.push(null, { answer: down, after: true })
    await dns.waitUntilApplied(await activate('acme'))
    const [unconfirmed] =
      await scene.sql`select attempted_version = version and applied_version = 0 as so from dns_names`
    expect(unconfirmed).toEqual({ so: true })
    await advance(1_000)
    await dns.syncDueZones()
    await until('it is published', async () => (await row('acme'))?.last_error === null)
    expect(scene.provider.calls).toEqual(['read', 'apply', 'read', 'apply'])
  })

  test("an order that was not carried out makes nobody else's record ours", async () => {
    const { dns } = replica()
    const foreign = { name: 'acme.pool.test', type: 'A', ttl: 60, values: ['198.51.100.9'] }
    scene.provider.records.set('acme.pool.test A', foreign)
    scene.provider.staleRead = []
    scene.provider.faults.push(null, { answer: { ...down, scope: 'zone' } })
    await dns.waitUntilApplied(await activate('acme'))
    expect(scene.provider.calls).toEqual(['read', 'apply'])
    await advance(1_000)
    await dns.syncDueZones()
    await until('it is in the way', async () => (await row('acme'))?.failure === 'foreign-record')
    await dns.waitUntilApplied(await free('acme'))
    expect([...scene.provider.records.values()]).toEqual([foreign])
  })

  test("a name with somebody's record in its way keeps that reason while the provider is down", async () => {
    const { dns } = replica()
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example.'] }
    scene.provider.records.set('acme.pool.test CNAME', foreign)
    scene.provider.faults.push(null, { answer: down })
    await Promise.all([await activate('acme'), await activate('other')].map(dns.waitUntilApplied))
    expect(await row('acme')).toMatchObject({ failure: 'foreign-record' })
    expect(await row('other')).toMatchObject({ failure: 'provider' })
  })

  test('a withdrawal that still fails never undoes the publication of the next holder', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme', '192.0.2.1'))
    scene.provider.faults.push({ answer: down })
    expect((await dns.waitUntilApplied(await free('acme'))).status).toBe('failing')
    expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
    await advance(600_000)
    await dns.syncDueZones()
    await dns.waitUntilApplied(await activate('other'))
    expect(scene.provider.records.get('acme.pool.test A')?.values).toEqual(['192.0.2.2'])
  })

  test('a commit and release while a pass is under way: the pass does not mark the newer version as applied', async () => {
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.gate = gate.promise
    const publishing = dns.waitUntilApplied(await activate('acme'))
    await until('it has come about', () => scene.provider.underWay === 1)
    const withdrawing = dns.waitUntilApplied(await free('acme'))
    gate.resolve()
    await publishing
    expect(await withdrawing).toEqual({ status: 'published' })
    expect(scene.provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
  })

  test('what another process left due is found without being asked for', async () => {
    await activate('left')
    const { dns } = replica()
    await dns.syncDueZones()
    await until('it has come about', () => scene.provider.names().length === 2)
  })

  test('more names than one pass takes are all published on one request', async () => {
    await scene.sql`
      insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
      select ${poolDomain}, 'n' || n, nextval('dns_version'),
        jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1'))),
        now(), now()
      from generate_series(1, 2500) n`
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('last'))
    await until('it has come about', () => scene.provider.records.size === 2_502)
    expect(scene.provider.calls).toHaveLength(6)
  })

  test('what the provider did not get to is neither published nor failed, and goes out in the next pass', async () => {
    const { dns } = replica()
    scene.provider.mostChanges = 5
    const stated = await Promise.all(['a', 'b', 'c', 'd'].map(name => activate(name)))
    for (const state of await Promise.all(stated.map(dns.waitUntilApplied)))
      expect(state).toEqual({ status: 'published' })
    expect(scene.provider.names()).toHaveLength(8)
    expect(await scene.events('d')).toEqual(['reserved', 'committed', 'published'])
  })

  test('nor does it wait for somebody to ask', async () => {
    const { dns } = replica()
    scene.provider.mostChanges = 5
    for (const name of ['a', 'b', 'c', 'd']) await activate(name)
    await dns.syncDueZones()
    await until('all are out', () => scene.provider.names().length === 8)
  })

  test('trouble of one zone keeps no other waiting, and its own names ever longer', async () => {
    const { dns } = replica()
    const noZone = { ...down, reason: 'There is no zone.', scope: 'zone' } as const
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      scene.provider.faults.push({ answer: noZone })
      const pause = await scene.pauseAfter(async () => {
        if (attempt === 1) await dns.waitUntilApplied(await activate('acme'))
        else await dns.syncDueZones()
        await until('it has been tried', async () => (await row('acme'))?.attempts === attempt)
      })
      expect(await row('acme')).toMatchObject({ failure: 'zone', last_error: 'There is no zone.' })
      const seconds = 0.5 * 2 ** (attempt - 1)
      expectPause(pause, seconds)
      await advance(seconds * 1_000)
    }
    expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.1', 'second.test'))).toEqual({
      status: 'published',
    })
  })

  test('while the provider is left alone a commit learns at once why, and nothing is asked', async () => {
    const { dns } = replica()
    scene.provider.faults.push({ answer: { ...down, retryAfterMs: 60_000 } })
    await dns.waitUntilApplied(await activate('first'))
    expect(await dns.waitUntilApplied(await activate('second'))).toEqual({
      status: 'failing',
      detail: 'The provider is down. Next attempt in 60 s.',
    })
    expect(scene.provider.calls).toEqual(['read'])
    expect(dns.isCircuitOpen()).toBe(true)
    await advance(61_000)
    await dns.syncDueZones()
    await until('both are out', () => scene.provider.names().length === 4)
  })

  test.each([1, undefined] as const)(
    'a provider that takes one call at a time (%s) has one, over zones and replicas',
    async only => {
      if (only) scene.provider.concurrency = only
      scene.provider.applyMs = 20
      const replicas = [replica(), replica()]
      const stated = await Promise.all(Array.from({ length: 8 }, (_, i) => activate('acme', '192.0.2.1', `z${i}.test`)))
      for (const state of await Promise.all(stated.map((one, i) => replicas[i % 2]?.dns.waitUntilApplied(one)))) {
        expect(state).toEqual({ status: 'published' })
      }
      if (only) expect(scene.provider.mostAtOnce).toBe(1)
      else expect(scene.provider.mostAtOnce).toBeGreaterThan(1)
    },
  )

  test('a writer whose connection dies loses its claim: another goes on, and it writes nothing more', async () => {
    const one = replica({ waitMs: 300 })
    const two = replica()
    const gate = Promise.withResolvers<void>()
    scene.provider.readGate = gate.promise
    expect((await one.dns.waitUntilApplied(await activate('acme'))).status).toBe('pending')
    expect(scene.provider.reading).toBe(1)
    scene.provider.readGate = Promise.resolve()
    await scene.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'allocation-api zone' and state = 'idle in transaction'`

    expect(await two.dns.waitUntilApplied(await free('acme'))).toEqual({ status: 'published' })
    const before = scene.provider.calls.length
    gate.resolve()
    await until('it has come about', () => one.errors.length > 0)
    // Whichever is noticed first: that the connection is gone, or that a new one has no claim.
    expect(String(one.errors[0])).toMatch(/zone lock lost: pool\.test|CONNECTION_CLOSED/)
    expect(scene.provider.calls.slice(before)).toEqual([])
    expect(scene.provider.names()).toEqual([])
  })
})

import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'
import { holdLock, untilBlocks } from '../support/locks.ts'

const down = { kind: 'unavailable', reason: 'The provider is down.' } as const

/** The delay of a name's next attempt after the circuit closes, at a `random` of 0.5. */
const SPREAD_S = 0.125

/** Fails unless the pause can have this duration. */
const expectPause = ({ min, max }: { readonly min: number; readonly max: number }, seconds: number) => {
  expect(min).toBeLessThanOrEqual(seconds)
  expect(max).toBeGreaterThanOrEqual(seconds)
}

describe('the reconciler', () => {
  const fixture = useDnsFixture()
  const { replica, activate, attempt, release, row, advance } = fixture

  test('publishes the records of a commit and withdraws them after a release', async () => {
    const { dns } = replica()
    expect(await dns.waitUntilApplied(await activate('acme'))).toEqual({ status: 'published' })
    expect(fixture.provider.names()).toEqual(['*.acme.pool.test', 'acme.pool.test'])
    expect(await dns.waitUntilApplied(await release('acme'))).toEqual({ status: 'published' })
    expect(fixture.provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
  })

  test('one hundred commits during a write are batched into the next write', async () => {
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    fixture.provider.applyGate = gate.promise
    const first = dns.waitUntilApplied(await activate('first'))
    await until('the write is in flight', () => fixture.provider.appliesInFlight === 1)
    const others = await Promise.all(Array.from({ length: 100 }, (_, i) => activate(`n${i}`)))
    const settled = others.map(stated => dns.waitUntilApplied(stated))
    gate.resolve()
    for (const state of await Promise.all([first, ...settled])) expect(state.status).toBe('published')
    expect(fixture.provider.calls).toEqual(['read', 'apply', 'read', 'apply'])
    expect(fixture.provider.names()).toHaveLength(202)
  })

  test.each([
    { what: 'the whole zone are part of the same sync', isWhole: true, calls: ['read', 'apply'] },
    {
      what: 'only the requested names are part of the next sync',
      isWhole: undefined,
      calls: ['read', 'apply', 'read', 'apply'],
    },
  ] as const)('commits during a read that returns $what', async ({ isWhole, calls }) => {
    if (isWhole) fixture.provider.isFullZone = isWhole
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    const first = dns.waitUntilApplied(await activate('first'))
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    const others = await Promise.all(Array.from({ length: 20 }, (_, i) => activate(`n${i}`)))
    const settled = others.map(stated => dns.waitUntilApplied(stated))
    fixture.provider.readGate = Promise.resolve()
    gate.resolve()
    for (const state of await Promise.all([first, ...settled])) expect(state.status).toBe('published')
    expect(fixture.provider.calls).toEqual(calls)
    expect(fixture.provider.names()).toHaveLength(42)
  })

  test.each([false, true])('a zone that is stopped during a read is not written (whole zone: %s)', async isWhole => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('first'))
    if (isWhole) fixture.provider.isFullZone = true
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    const second = dns.waitUntilApplied(await activate('second'))
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    await fixture.sql`
      update dns_zone_writes set stopped_cause = 'imported', stopped_at = statement_timestamp() where zone = ${poolDomain}`
    gate.resolve()
    expect(await second).toMatchObject({ status: 'failing' })
    expect(fixture.provider.calls).toEqual(['read', 'apply', 'read'])
    expect(fixture.provider.names()).toEqual(['*.first.pool.test', 'first.pool.test'])
  })

  test('a name that is released during a read of the whole zone is never written', async () => {
    fixture.provider.isFullZone = true
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    const published = dns.waitUntilApplied(await activate('acme'))
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    const withdrawn = dns.waitUntilApplied(await release('acme'))
    gate.resolve()
    expect((await published).status).toBe('published')
    expect((await withdrawn).status).toBe('published')
    expect(fixture.provider.calls).toEqual(['read'])
    expect(await fixture.events('acme')).toEqual(['reserved', 'committed', 'released', 'withdrawn'])
  })

  test('across replicas, a zone has one writer at a time, and every caller gets its result', async () => {
    fixture.provider.applyMs = 5
    const replicas = [replica(), replica(), replica(), replica()]
    const stated = await Promise.all(Array.from({ length: 40 }, (_, i) => activate(`n${i}`)))
    const states = await Promise.all(stated.map((version, i) => replicas[i % 4]?.dns.waitUntilApplied(version)))
    for (const state of states) expect(state?.status).toBe('published')
    expect(fixture.provider.maxAppliesInFlight).toBe(1)
    expect(fixture.provider.names()).toHaveLength(80)
  })

  test('an unavailable provider is reported to the caller immediately and retried with exponential backoff', async () => {
    const { dns } = replica()
    fixture.provider.faults.push({ result: down })
    const first = await activate('acme')
    const waitUntilFailing = async () => {
      expect(await attempt(dns, first)).toEqual({ status: 'failing', detail: down.reason })
    }
    expectPause(await fixture.measurePause(waitUntilFailing), 0.5 + SPREAD_S)
    for (const [i, seconds] of [1, 2, 4, 8].entries()) {
      fixture.provider.faults.push({ result: down })
      await advance((seconds / 2 + SPREAD_S) * 1_000)
      const next = async () => {
        await dns.syncDueZones()
        await until('the attempt is recorded', async () => (await row('acme'))?.attempts === i + 2)
      }
      expectPause(await fixture.measurePause(next), seconds + SPREAD_S)
    }
    await advance(60_000)
    await dns.syncDueZones()
    await until('the name is published', () => fixture.provider.names().length === 2)
    await until('the error is cleared', async () => (await row('acme'))?.last_error === null)
  })

  test('a name that is not due is not synced', async () => {
    const { dns } = replica()
    fixture.provider.faults.push({ result: down })
    await attempt(dns, await activate('acme'))
    const calls = fixture.provider.calls.length
    await fixture.sql`update dns_names set next_attempt_at = now() + interval '1 hour'`
    await dns.syncDueZones()
    await dns.waitUntilApplied(await activate('beta'))
    expect(fixture.provider.calls.slice(calls)).toEqual(['read', 'apply'])
    expect(fixture.provider.names()).toEqual(['*.beta.pool.test', 'beta.pool.test'])
  })

  test('a Retry-After longer than the backoff is respected', async () => {
    const { dns } = replica()
    fixture.provider.faults.push({ result: { ...down, retryAfterMs: 90_000 } })
    const stated = await activate('acme')
    expectPause(await fixture.measurePause(() => dns.waitUntilApplied(stated)), 90 + SPREAD_S)
  })

  test('a name that the provider rejects is failing with the reason, and the others are published', async () => {
    const { dns } = replica()
    fixture.provider.rejectedNames.add('*.bad.pool.test')
    const stated = await Promise.all(['good', 'bad', 'fine'].map(name => activate(name)))
    const [good, bad, fine] = await Promise.all(stated.map(dns.waitUntilApplied))
    expect(good).toEqual({ status: 'published' })
    expect(fine).toEqual({ status: 'published' })
    expect(bad).toEqual({ status: 'failing', detail: 'The DNS provider rejected *.bad.pool.test: not allowed' })
  })

  test('rejected names are tried one after the other, and all of them when one is accepted', async () => {
    const { sync } = replica()
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) {
      fixture.provider.rejectedNames.add(`${name}.${poolDomain}`)
      await activate(name)
    }
    await sync()
    const waits = await fixture.sql<{ s: number }[]>`
      select extract(epoch from next_attempt_at - lag(next_attempt_at) over (order by next_attempt_at))::float8 as s from dns_names`
    expect(Math.min(...waits.slice(2).map(({ s }) => s))).toBeGreaterThanOrEqual(25)
    await advance(1_000)
    await sync()
    expect(await fixture.sql`select subdomain from dns_names where attempts > 1`).toHaveLength(1)
    fixture.provider.rejectedNames.clear()
    await advance(60_000)
    await sync()
    await sync()
    expect(fixture.provider.names()).toHaveLength(2 * names.length)
  })

  test('a foreign record at a name is not changed, and the name is failing with that reason', async () => {
    const { dns } = replica()
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example'] }
    fixture.provider.records.set('acme.pool.test CNAME', foreign)
    const state = await dns.waitUntilApplied(await activate('acme'))
    expect(state).toMatchObject({ status: 'failing', detail: expect.stringContaining('acme.pool.test') })
    expect([...fixture.provider.records.values()]).toEqual([foreign])
  })

  test('a call that hangs is aborted at its timeout, and the caller waits no longer than its own timeout', async () => {
    const { dns } = replica({ callTimeoutMs: 200, waitMs: 100 })
    fixture.provider.faults.push(null, { result: 'hang' })
    expect(await dns.waitUntilApplied(await activate('acme'))).toEqual({ status: 'pending' })
    await until('the attempt is recorded', async () => (await row('acme'))?.attempts === 1)
    expect((await row('acme'))?.last_error).toBe('The DNS provider did not answer within 0.2 s.')
  })

  test('an exception of the provider is logged as a defect, and the caller does not get its text', async () => {
    const one = replica()
    fixture.provider.faults.push({ result: 'throw' })
    const state = await one.dns.waitUntilApplied(await activate('acme'))
    expect(state.status).toBe('failing')
    expect(JSON.stringify(state)).not.toContain('secret')
    expect(one.errors).toHaveLength(1)
  })

  test('records of a write that timed out after it took effect are owned and are withdrawn later', async () => {
    const { dns } = replica()
    fixture.provider.faults.push(null, { result: down, takesEffect: true })
    const committed = await attempt(dns, await activate('acme'))
    expect(committed.status).toBe('failing')
    expect(fixture.provider.names()).toHaveLength(2)
    expect(await dns.waitUntilApplied(await release('acme'))).toEqual({ status: 'published' })
    expect(fixture.provider.names()).toEqual([])
  })

  test('an unconfirmed write is repeated although its records exist, because an older write could still undo it', async () => {
    const { dns } = replica()
    fixture.provider.faults.push(null, { result: down, takesEffect: true })
    await attempt(dns, await activate('acme'))
    const [unconfirmed] =
      await fixture.sql`select attempted_version = version and applied_version = 0 as expected from dns_names`
    expect(unconfirmed).toEqual({ expected: true })
    await advance(1_000)
    await dns.syncDueZones()
    await until('the name is published', async () => (await row('acme'))?.last_error === null)
    expect(fixture.provider.calls).toEqual(['read', 'apply', 'read', 'apply'])
  })

  test('a write that did not take effect does not make a foreign record owned', async () => {
    const { dns } = replica()
    const foreign = { name: 'acme.pool.test', type: 'A', ttl: 60, values: ['198.51.100.9'] }
    fixture.provider.records.set('acme.pool.test A', foreign)
    fixture.provider.staleRead = []
    fixture.provider.faults.push(null, { result: { ...down, scope: 'zone' } })
    await dns.waitUntilApplied(await activate('acme'))
    expect(fixture.provider.calls).toEqual(['read', 'apply'])
    await advance(1_000)
    await dns.syncDueZones()
    await until('the conflict is recorded', async () => (await row('acme'))?.failure === 'foreign-record')
    expect([...fixture.provider.records.values()]).toEqual([foreign])
  })

  test('a name that a foreign record blocks has that failure even while the provider is unavailable', async () => {
    const { dns } = replica()
    const foreign = { name: 'acme.pool.test', type: 'CNAME', ttl: 60, values: ['elsewhere.example.'] }
    fixture.provider.records.set('acme.pool.test CNAME', foreign)
    fixture.provider.faults.push(null, { result: down })
    const stated = [await activate('acme'), await activate('other')]
    await Promise.all(stated.map(version => attempt(dns, version)))
    expect(await row('acme')).toMatchObject({ failure: 'foreign-record' })
    expect(await row('other')).toMatchObject({ failure: 'provider' })
  })

  test('a failing withdrawal never undoes the publication of the next owner of the name', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme', '192.0.2.1'))
    fixture.provider.faults.push({ result: down })
    expect((await attempt(dns, await release('acme'))).status).toBe('failing')
    expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
    await advance(600_000)
    await dns.syncDueZones()
    await dns.waitUntilApplied(await activate('other'))
    expect(fixture.provider.records.get('acme.pool.test A')?.values).toEqual(['192.0.2.2'])
  })

  test('a release during a sync: the sync does not mark the newer version as applied', async () => {
    const { dns } = replica()
    const gate = Promise.withResolvers<void>()
    fixture.provider.applyGate = gate.promise
    const publishing = dns.waitUntilApplied(await activate('acme'))
    await until('the write is in flight', () => fixture.provider.appliesInFlight === 1)
    const withdrawing = dns.waitUntilApplied(await release('acme'))
    gate.resolve()
    await publishing
    expect(await withdrawing).toEqual({ status: 'published' })
    expect(fixture.provider.names()).toEqual([])
    expect(await row('acme')).toMatchObject({ desired: [], owned: [] })
  })

  test('a name that another process left due is synced without a request', async () => {
    await activate('left')
    const { dns } = replica()
    await dns.syncDueZones()
    await until('the name is published', () => fixture.provider.names().length === 2)
  })

  test('more names than one batch are all published after one request', async () => {
    await fixture.sql`
      insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
      select ${poolDomain}, 'n' || n, nextval('dns_version'),
        jsonb_build_array(jsonb_build_object(
          'name', 'n' || n || '.pool.test', 'type', 'A', 'ttl', 60, 'values', jsonb_build_array('192.0.2.1'))),
        now(), now()
      from generate_series(1, 2500) n`
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('last'))
    await until('all names are published', () => fixture.provider.records.size === 2_502)
    expect(fixture.provider.calls).toHaveLength(6)
  })

  test('names that the provider skipped are neither published nor failing, and the next sync publishes them', async () => {
    const { dns } = replica()
    fixture.provider.maxChanges = 5
    const stated = await Promise.all(['a', 'b', 'c', 'd'].map(name => activate(name)))
    for (const state of await Promise.all(stated.map(dns.waitUntilApplied)))
      expect(state).toEqual({ status: 'published' })
    expect(fixture.provider.names()).toHaveLength(8)
    expect(await fixture.events('d')).toEqual(['reserved', 'committed', 'published'])
  })

  test('the next sync after skipped names starts without a request', async () => {
    const { dns } = replica()
    fixture.provider.maxChanges = 5
    for (const name of ['a', 'b', 'c', 'd']) await activate(name)
    await dns.syncDueZones()
    await until('all names are published', () => fixture.provider.names().length === 8)
  })

  test('an unavailable zone delays no other zone, and its own names with exponential backoff', async () => {
    const { dns } = replica()
    const noZone = { ...down, reason: 'There is no zone.', scope: 'zone' } as const
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      fixture.provider.faults.push({ result: noZone })
      const pause = await fixture.measurePause(async () => {
        if (attempt === 1) await dns.waitUntilApplied(await activate('acme'))
        else await dns.syncDueZones()
        await until('the attempt is recorded', async () => (await row('acme'))?.attempts === attempt)
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

  test('the preview of a zone that does not exist is unavailable, also in a pool without names', async () => {
    const { dns } = replica()
    const noZone = { ...down, reason: 'There is no zone.', scope: 'zone' } as const
    fixture.provider.faults.push({ result: noZone })
    expect(await dns.preview('pool.test')).toMatchObject({ kind: 'unavailable', reason: 'There is no zone.' })
  })

  test('while the circuit is open, a commit gets the reason immediately and the provider is not called', async () => {
    const { dns } = replica()
    fixture.provider.faults.push({ result: { ...down, retryAfterMs: 60_000 } })
    await dns.waitUntilApplied(await activate('first'))
    expect(await dns.waitUntilApplied(await activate('second'))).toEqual({
      status: 'failing',
      detail: 'The provider is down. Next attempt in 60 s.',
    })
    expect(fixture.provider.calls).toEqual(['read'])
    expect(dns.isCircuitOpen()).toBe(true)
    await advance(61_000)
    await dns.syncDueZones()
    await until('both names are published', () => fixture.provider.names().length === 4)
  })

  test('a circuit that no change would close is probed: it closes within seconds after the provider is back', async () => {
    const { dns } = replica()
    const failing = Array.from({ length: 4 }, () => ({ result: down }))
    fixture.provider.faults.push(...failing)
    for (let failures = 0; failures < 3; failures += 1) {
      expect(await dns.preview(poolDomain)).toMatchObject({ kind: 'unavailable' })
      await advance(1_000)
    }
    expect(dns.isCircuitOpen()).toBe(true)
    await dns.checkMarkers(new AbortController().signal)
    expect(fixture.provider.calls).toHaveLength(3)

    await advance(2_000)
    await dns.checkMarkers(new AbortController().signal)
    expect(fixture.provider.faults).toHaveLength(0)
    expect(dns.isCircuitOpen()).toBe(true)
    await until('the next probe is due', async () => {
      await advance(1_000)
      await dns.checkMarkers(new AbortController().signal)
      return fixture.provider.calls.length > 4
    })
    expect(dns.isCircuitOpen()).toBe(false)
    // The probe, and then the check of the other zone.
    expect(fixture.provider.calls).toHaveLength(6)
  })

  test('a change that is due when the circuit becomes half-open is the probe', async () => {
    const { dns } = replica()
    fixture.provider.faults.push({ result: { ...down, retryAfterMs: 60_000 } })
    await dns.waitUntilApplied(await activate('first'))
    await advance(60_500)
    await dns.checkMarkers(new AbortController().signal)
    expect(fixture.provider.calls).toEqual(['read'])
    await dns.syncDueZones()
    await until('the name is published', () => fixture.provider.names().length === 2)
    expect(fixture.provider.calls).toEqual(['read', 'read', 'apply'])
  })

  test('a sync in which a name fails is incomplete', async () => {
    const { dns, syncs } = replica()
    fixture.provider.faults.push({ result: down })
    await attempt(dns, await activate('acme'))
    expect(syncs).toEqual(['incomplete'])
    await dns.waitUntilApplied(await activate('beta'))
    expect(syncs).toEqual(['incomplete', 'done'])
  })

  test.each([1, undefined] as const)(
    'a provider with a concurrency of %s: the limit holds across zones and replicas',
    async concurrency => {
      if (concurrency) fixture.provider.concurrency = concurrency
      fixture.provider.applyMs = 20
      const gate = Promise.withResolvers<void>()
      if (!concurrency) fixture.provider.applyGate = gate.promise
      const replicas = [replica(), replica()]
      const stated = await Promise.all(Array.from({ length: 8 }, (_, i) => activate('acme', '192.0.2.1', `z${i}.test`)))
      const states = stated.map((version, i) => replicas[i % 2]?.dns.waitUntilApplied(version))
      if (!concurrency) await until('two writes are in flight', () => fixture.provider.appliesInFlight > 1)
      gate.resolve()
      for (const state of await Promise.all(states)) expect(state).toEqual({ status: 'published' })
      if (concurrency) expect(fixture.provider.maxAppliesInFlight).toBe(1)
    },
  )

  test('a writer that loses its zone lock writes nothing more, and another replica continues', async () => {
    const one = replica({ waitMs: 300 })
    const two = replica()
    const gate = Promise.withResolvers<void>()
    fixture.provider.readGate = gate.promise
    expect((await one.dns.waitUntilApplied(await activate('acme'))).status).toBe('pending')
    await until('the read is in flight', () => fixture.provider.readsInFlight === 1)
    fixture.provider.readGate = Promise.resolve()
    await fixture.loseZoneLocks()

    expect(await two.dns.waitUntilApplied(await release('acme'))).toEqual({ status: 'published' })
    expect(await two.dns.waitUntilApplied(await activate('other'))).toEqual({ status: 'published' })
    const before = fixture.provider.calls.length
    gate.resolve()
    await until('the lost lock is reported', () => one.errors.length > 0)
    expect(String(one.errors[0])).toMatch(/zone lock lost: pool\.test/)
    expect(fixture.provider.calls.slice(before)).toEqual([])
    expect(fixture.provider.names()).toEqual(['*.other.pool.test', 'other.pool.test'])
    // Its read has the number of the other replica, which is higher than the one that it knew before.
    expect(one.stops).toEqual([])
  })

  test('a writer whose attempt is committed after its lease writes nothing then, and continues with a new lease', async () => {
    const { sql, provider } = fixture
    // The commit of the attempt waits for this lock, as it would for a disk or a standby. The statements that only renew the lease
    // fail: one that waits behind the attempt could extend the lease before the writer looks at it.
    await sql.unsafe(`
      create function fail_renewal() returns trigger language plpgsql as
        $$ begin if current_query() !~ 'dns_zone_writes' then raise 'no renewal'; end if; return new; end $$;
      create trigger fail_renewal before update on zone_leases for each row when (old.holder = new.holder)
        execute function fail_renewal();
      create function wait_at_commit() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock_shared(4711); return null; end $$;
      create constraint trigger wait_at_commit after insert or update on dns_zone_writes
        deferrable initially deferred for each row execute function wait_at_commit()`)
    const disk = await holdLock(sql, tx => tx`select pg_advisory_xact_lock(4711)`)
    const leaseMs = 1_000
    const one = replica({ waitMs: 300, leaseMs })
    expect((await one.dns.waitUntilApplied(await activate('acme'))).status).toBe('pending')
    await untilBlocks(sql, disk)
    const since = performance.now()
    await until('the lease is over', () => performance.now() - since > leaseMs)
    await disk.release()
    await until('the sync has ended', async () => (await row('acme'))?.failure === 'zone')
    expect(provider.calls).toEqual(['read'])
    await sql`drop function wait_at_commit, fail_renewal cascade`
    await until('the name is published', async () => {
      await one.dns.syncDueZones()
      return provider.names().length > 0
    })
    expect(one.errors).toEqual([])
  })

  test('a writer that loses its zone lock during the write stores no result; the next sync does', async () => {
    const one = replica({ waitMs: 300 })
    const gate = Promise.withResolvers<void>()
    fixture.provider.applyGate = gate.promise
    expect((await one.dns.waitUntilApplied(await activate('acme'))).status).toBe('pending')
    await until('the write is in flight', () => fixture.provider.appliesInFlight === 1)
    fixture.provider.applyGate = Promise.resolve()
    await fixture.loseZoneLocks()
    gate.resolve()
    await until('the lost lock is reported', () => one.errors.length > 0)
    expect(await row('acme')).toMatchObject({ applied_version: 0 })
    await one.dns.syncDueZones()
    await until('the result is stored', async () => (await row('acme'))?.applied_version !== 0)
    expect(fixture.provider.names()).not.toEqual([])
  })
})

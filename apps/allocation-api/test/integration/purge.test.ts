import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../src/dns/domain/rrset.ts'
import { poolDomain, useDnsFixture } from '../support/dns-fixture.ts'

/** For longer than a caller waits. */
const down = { kind: 'unavailable', reason: 'The provider is down.', retryAfterMs: 30_000 } as const
const MINUTE_MS = 60_000

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 60, values })
const leftovers = [
  set('acme.pool.test', 'MX', '10 mail.example.'),
  set('_acme-challenge.acme.pool.test', 'TXT', '"challenge"'),
  set('shop.acme.pool.test', 'A', '198.51.100.1', '198.51.100.2'),
]

describe('the records of other writers at and below a released name', () => {
  const fixture = useDnsFixture()
  const { replica, activate, update, release, row, advance } = fixture
  const put = (...sets: readonly RecordSet[]) => {
    for (const record of sets) fixture.provider.records.set(recordKey(record), record)
  }
  const present = () =>
    [...fixture.provider.records.values()].filter(({ type, values }) => type !== 'A' || !/^192/.test(values[0] ?? ''))
  const ownAddress = () => fixture.provider.records.get('acme.pool.test A')?.values
  /** The record sets in the history of the name, with the event of their entry, oldest first. */
  const deletedRecords = async (subdomain = 'acme') => {
    const rows = await fixture.sql<
      { event: string; deleted: { name: string; type: string; ttl: number; data: string[] }[] }[]
    >`
      select event, deleted_records as deleted from allocation_history
      where subdomain = ${subdomain} and deleted_records is not null order by id`
    return rows.map(({ event, deleted }) => [
      event,
      deleted.map(({ data, ...other }): RecordSet => ({ ...other, values: data })).sort(byKey),
    ])
  }
  const byKey = (a: RecordSet, b: RecordSet) => (recordKey(a) < recordKey(b) ? -1 : 1)
  const listed = [...leftovers].sort(byKey)

  test('a release deletes them, and the history lists them so that they can be restored', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await activate('other', '192.0.2.2'))
    const others = [set('shop.other.pool.test', 'A', '198.51.100.9'), set('pool.test', 'TXT', '"zone"')]
    put(...leftovers, ...others)
    expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 0 })
    expect(await dns.waitUntilApplied(await release('acme'))).toEqual({ status: 'published' })
    expect(present()).toEqual(others)
    expect(ownAddress()).toBeUndefined()
    expect(await deletedRecords()).toEqual([['withdrawn', listed]])
  })

  test('an update of the address leaves them', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await release('acme'))
    await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))
    put(...leftovers)
    await dns.waitUntilApplied(await update('acme', '192.0.2.3'))
    expect(ownAddress()).toEqual(['192.0.2.3'])
    expect(present()).toEqual(leftovers)
    expect(await deletedRecords()).toEqual([])
  })

  test('a name that was never held: they stay, and one in the way is a conflict', async () => {
    const { dns } = replica()
    const inTheWay = set('acme.pool.test', 'CNAME', 'elsewhere.example.')
    put(...leftovers, inTheWay)
    expect((await dns.waitUntilApplied(await activate('acme'))).status).toBe('failing')
    expect(present()).toEqual([...leftovers, inTheWay])
  })

  describe('a crash between the deletion and its confirmation', () => {
    test('the history lists them all the same', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      put(...leftovers)
      fixture.provider.faults.push(null, { result: down, takesEffect: true })
      expect((await dns.waitUntilApplied(await release('acme'))).status).toBe('failing')
      expect(present()).toEqual([])
      expect(await deletedRecords()).toEqual([])
      await advance(MINUTE_MS)
      const next = replica()
      await next.dns.syncDueZones()
      await until(
        'the name is withdrawn',
        async () => (await row('acme'))?.applied_version === (await row('acme'))?.version,
      )
      expect(await deletedRecords()).toEqual([['withdrawn', listed]])
    })

    test('after a new grant in between, the publication of the next holder lists them', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      put(...leftovers)
      fixture.provider.faults.push(null, { result: down, takesEffect: true })
      await dns.waitUntilApplied(await release('acme'))
      const next = await activate('acme', '192.0.2.2')
      await advance(MINUTE_MS)
      expect(await dns.waitUntilApplied(next)).toEqual({ status: 'published' })
      expect(present()).toEqual([])
      expect(await deletedRecords()).toEqual([['published', listed]])
    })
  })

  describe('the first publication of the next holder leaves none', () => {
    const regrant = async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      put(...leftovers)
      fixture.provider.faults.push({ result: down })
      await dns.waitUntilApplied(await release('acme'))
      await advance(MINUTE_MS)
      return dns
    }

    test('if the withdrawal never reached the provider', async () => {
      const dns = await regrant()
      expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
      expect(present()).toEqual([])
      expect(ownAddress()).toEqual(['192.0.2.2'])
      expect(await deletedRecords()).toEqual([['published', listed]])
    })

    test('if a stale read hid them from the plan', async () => {
      const dns = await regrant()
      fixture.provider.staleRead = []
      expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
      expect(present()).toEqual([])
      expect(await deletedRecords()).toEqual([['published', listed]])
    })

    test('not even an own record of the earlier holder, if a stale read hid it from the plan', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      const former = set('api.acme.pool.test', 'A', '192.0.2.1')
      await fixture.sql`update dns_names set desired = desired || ${fixture.sql.json([former] as never)}`
      fixture.provider.faults.push({ result: down })
      await dns.waitUntilApplied(await release('acme'))
      await advance(MINUTE_MS)
      put(former)
      fixture.provider.staleRead = []
      await fixture.sql`update dns_names set attempted_version = applied_version`
      expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
      expect(fixture.provider.records.has(recordKey(former))).toBe(false)
    })

    test('not before a read has confirmed it', async () => {
      const dns = await regrant()
      fixture.provider.faults.push(null, null, { result: down })
      expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({
        status: 'failing',
        detail: down.reason,
      })
      await advance(MINUTE_MS)
      await dns.syncDueZones()
      await until('the name is published', async () => (await row('acme'))?.failure === null)
      expect(await deletedRecords()).toEqual([['published', listed]])
    })

    test('if they were written after the row of the withdrawn name was deleted', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await release('acme'))
      await advance(MINUTE_MS + 1_000)
      await dns.repair(poolDomain)
      expect(await row('acme')).toBeUndefined()
      put(...leftovers, set('*.acme.pool.test', 'CNAME', 'elsewhere.example.'))
      expect(await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))).toEqual({ status: 'published' })
      expect(present()).toEqual([])
    })

    test('and from then on the records of other writers stay', async () => {
      const dns = await regrant()
      await dns.waitUntilApplied(await activate('acme', '192.0.2.2'))
      put(...leftovers)
      expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 0, driftedCount: 0 })
      await advance(MINUTE_MS + 1_000)
      expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 0, driftedCount: 0 })
      expect(present()).toEqual(leftovers)
    })
  })

  test('a row stays until a drift check finds nothing, and what it finds is deleted and listed', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await release('acme'))
    await advance(MINUTE_MS + 1_000)
    put(...leftovers)
    expect(await dns.repair(poolDomain)).toMatchObject({ driftedCount: 1, pending: 0 })
    expect(present()).toEqual([])
    expect(await row('acme')).toBeDefined()
    await advance(MINUTE_MS + 1_000)
    await dns.repair(poolDomain)
    expect(await row('acme')).toBeUndefined()
    expect(await deletedRecords()).toEqual([['repaired', listed]])
  })

  test('a zone that another replica manages, below the name, keeps its records', async () => {
    const { dns } = replica()
    const zone = 'eu.acme.pool.test'
    await fixture.sql`insert into dns_zones (zone, next_drift_check_at) values (${zone}, now() + interval '1 day')`
    await dns.waitUntilApplied(await activate('acme'))
    const theirs = [set(zone, 'NS', 'ns.eu.acme.pool.test.'), set(`ns.${zone}`, 'A', '198.51.100.1')]
    put(...theirs, ...leftovers)
    await dns.waitUntilApplied(await release('acme'))
    expect(present()).toEqual(theirs)
  })

  test('a pool below the name that another replica has just registered keeps its records', async () => {
    const { dns } = replica()
    const zone = 'eu.acme.pool.test'
    await fixture.sql`insert into pools (domain, listed_at) values (${zone}, now())`
    await dns.waitUntilApplied(await activate('acme'))
    const theirs = [set(zone, 'NS', 'ns.eu.acme.pool.test.'), set(`ns.${zone}`, 'A', '198.51.100.1')]
    put(...theirs, ...leftovers)
    await dns.waitUntilApplied(await release('acme'))
    expect(present()).toEqual(theirs)
  })

  test('a repeated release reports nothing about the records of the next holder', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    const released = await release('acme')
    expect(await dns.waitUntilApplied(released)).toEqual({ status: 'published' })
    const next = await activate('acme', '192.0.2.2')
    fixture.provider.faults.push({ result: down })
    expect((await dns.waitUntilApplied(next)).status).toBe('failing')
    expect(await dns.waitUntilApplied(released)).toEqual({ status: 'published' })
  })

  test('a deletion that the provider rejects: the release is failing with the reason, and nothing else waits', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await activate('other', '192.0.2.2'))
    put(...leftovers)
    fixture.provider.rejectedNames.add('shop.acme.pool.test')
    const [withdrawn, published] = await Promise.all([release('acme'), activate('third', '192.0.2.3')])
    const [first, second] = await Promise.all([withdrawn, published].map(dns.waitUntilApplied))
    expect(first).toEqual({ status: 'failing', detail: 'The DNS provider rejected shop.acme.pool.test: not allowed' })
    expect(second).toEqual({ status: 'published' })
    expect(await dns.waitUntilApplied(await release('other'))).toEqual({ status: 'published' })
    expect(present()).toEqual([leftovers[2]])
    fixture.provider.rejectedNames.clear()
    expect(await dns.repair(poolDomain)).toMatchObject({ pending: 0 })
    expect(present()).toEqual([])
    expect(await deletedRecords()).toEqual([['withdrawn', listed]])
  })

  describe('one that the provider keeps, although it says that it deletes it', () => {
    const keep = 'shop.acme.pool.test'
    const applies = () => fixture.provider.calls.filter(call => call === 'apply').length
    const regrant = async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      fixture.provider.keptNames.add(keep)
      put(...leftovers)
      await dns.waitUntilApplied(await release('acme'))
      return { dns, next: await activate('acme', '192.0.2.2'), before: applies() }
    }

    test('is a failure that names it, with a pause before the next attempt', async () => {
      const { dns, next, before } = await regrant()
      const { status, detail } = await fixture.attempt(dns, next)
      expect([status, detail]).toEqual(['failing', expect.stringContaining(`${keep} A`)])
      expect(applies() - before).toBe(1)
    })

    test('the next holder is published after three writes, with its name, and nothing repeats', async () => {
      const { dns, next, before } = await regrant()
      const published = { status: 'published', detail: expect.stringContaining(`${keep} A`) }
      expect(await dns.waitUntilApplied(next)).toEqual(published)
      expect(applies() - before).toBe(3)
      expect(ownAddress()).toEqual(['192.0.2.2'])
      expect(await dns.waitUntilApplied(next)).toEqual(published)
      await advance(MINUTE_MS + 1_000)
      expect(await dns.repair(poolDomain)).toMatchObject({ changeCount: 0, driftedCount: 0, pending: 0 })
      expect(applies() - before).toBe(3)
    })

    test('a name whose own records are missing is not published because of that', async () => {
      const { dns, next } = await regrant()
      fixture.provider.rejectedNames.add('*.acme.pool.test')
      await fixture.attempt(dns, next)
      for (const attempts of [2, 3, 4]) {
        await advance(MINUTE_MS)
        await dns.syncDueZones()
        await until('the next attempt has ended', async () => (await row('acme'))?.attempts === attempts)
      }
      expect(await row('acme')).toMatchObject({ failure: 'rejected' })
    })

    test('a name without a holder is failing, with one entry in the history and not one for each drift check', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      await dns.waitUntilApplied(await release('acme'))
      fixture.provider.keptNames.add(keep)
      put(...leftovers)
      for (let checks = 0; checks < 3; checks += 1) {
        await advance(MINUTE_MS + 1_000)
        await fixture.replica({ waitMs: 200 }).dns.repair(poolDomain)
        await until('the attempt has failed', async () => (await row('acme'))?.failure === 'rejected')
      }
      expect((await fixture.events('acme')).slice(4)).toEqual(['withdrawn', 'failing'])
    })

    test('5000 of them, of which none is deleted: a pause too', async () => {
      const { dns } = replica()
      await dns.waitUntilApplied(await activate('acme'))
      const many = Array.from({ length: 5_000 }, (_, i) => set(`n${i}.acme.pool.test`, 'TXT', `"${i}"`))
      put(...many)
      for (const { name } of many) fixture.provider.keptNames.add(name)
      const before = applies()
      const { detail } = await fixture.attempt(dns, await release('acme'))
      expect(detail).toMatch(/n\d+\.acme\.pool\.test TXT and 495 more/)
      expect(applies() - before).toBe(1)
    })
  })

  test('a read after the write that shows an older state confirms nothing, and is a failure with a pause', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await release('acme'))
    const next = await activate('acme', '192.0.2.2')
    const { provider } = fixture
    const read = provider.read.bind(provider)
    const marker = new Map(provider.markers)
    provider.read = async (zone, wanted, signal) => {
      const current = new Map(provider.markers)
      provider.markers.clear()
      for (const [key, old] of marker) provider.markers.set(key, old)
      return read(zone, wanted, signal).finally(() => {
        for (const [key, newer] of current) provider.markers.set(key, newer)
      })
    }
    const { status, detail } = await fixture.attempt(dns, next)
    expect([status, detail]).toEqual(['failing', expect.stringContaining('as it was before the last write')])
    provider.read = read
    await advance(MINUTE_MS)
    expect(await dns.waitUntilApplied(next)).toEqual({ status: 'published' })
  })

  test('5000 of them are deleted in parts, and small names do not wait', async () => {
    const { dns } = replica()
    await dns.waitUntilApplied(await activate('acme'))
    await dns.waitUntilApplied(await activate('other', '192.0.2.2'))
    const many = Array.from({ length: 5_000 }, (_, i) => set(`n${i}.acme.pool.test`, 'TXT', `"${i}"`))
    put(...many)
    const sizes: number[] = []
    const { provider } = fixture
    const apply = provider.apply.bind(provider)
    provider.apply = async (zone, changes, signal) => {
      sizes.push(changes.length)
      return apply(zone, changes, signal)
    }
    const [large, small] = await Promise.all([release('acme'), release('other')])
    expect(await dns.waitUntilApplied(small)).toEqual({ status: 'published' })
    expect(provider.records.size).toBeGreaterThan(1_000)
    expect(await dns.waitUntilApplied(large)).toEqual({ status: 'published' })
    expect(provider.names()).toEqual([])
    expect(Math.max(...sizes)).toBeLessThan(520)
    expect(await deletedRecords()).toEqual([['withdrawn', many.toSorted(byKey)]])
  })
})

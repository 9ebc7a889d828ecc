import { describe, expect, test } from 'vitest'
import { recordKey } from '../../src/dns/domain/rrset.ts'
import { createRecords } from '../../src/dns/domain/target.ts'
import { createMarkerRecord, parseMarkers, toMarkerName } from '../../src/reconciler/domain/zone-marker.ts'
import { createOperationsRepository } from '../../src/reconciler/operations-repository.ts'
import type { Lease } from '../../src/reconciler/zone-lock.ts'
import { repositoryOptions } from '../support/database.ts'
import { poolDomain, template, useDnsFixture } from '../support/dns-fixture.ts'
import { runInOrder, withLease } from '../support/locks.ts'
import { createTokenRepository } from '../support/token-repository.ts'

const OWN = '192.0.2.1'
const OTHER = '192.0.2.9'
const operator = { actor: 'operator', address: null, requestId: 'resume' } as const
const client = { actor: 'in-cluster', address: null, requestId: 'client' } as const
const toRecords = (subdomain: string, address: string) =>
  createRecords(`${subdomain}.${poolDomain}`, { loadBalancerIP: address }, template)

const STATES = ['free', 'reserved', 'lapsed', 'held', 'cooling', 'active'] as const
type State = (typeof STATES)[number]
const ZONES = { absent: null, same: OWN, other: OTHER } as const

/** `unknown`: the database has no desired records, not even those of a former holder. */
const cases = STATES.flatMap(state =>
  Object.entries(ZONES).flatMap(([zone, zoneAddress]) =>
    (state === 'active' ? ['known'] : ['known', 'unknown']).map(row => ({
      ...{ subdomain: `${state}-${zone}-${row}`, state, zoneAddress, row },
    })),
  ),
)
type Case = (typeof cases)[number]

const toAction = (trust: 'database' | 'zone', { state, zoneAddress }: Case): string | undefined => {
  if (state !== 'active') {
    if (zoneAddress === null) return undefined
    return trust === 'zone' ? 'adopt' : 'withdraw'
  }
  if (zoneAddress === OWN) return undefined
  if (trust === 'database') return 'publish'
  return zoneAddress === null ? 'release' : 'readdress'
}

const fixture = useDnsFixture()
const { replica, activate } = fixture

/** Makes the rows of the name those of `state`. */
const setState = async (subdomain: string, state: State, row = 'known') => {
  const { sql } = fixture
  if (state === 'active') return
  await sql`delete from pool_allocations where subdomain = ${subdomain}`
  await sql`update dns_names set desired = '[]' where subdomain = ${subdomain}`
  if (row === 'unknown') await sql`delete from dns_names where subdomain = ${subdomain}`
  if (state === 'free') return
  const isCooling = state === 'cooling'
  await sql`
    insert into pool_allocations
      (pool_domain, subdomain, state, reserved_at, expires_at, cool_off_until, lineage_id, token_hash, created_by, renewal_count)
    values (${poolDomain}, ${subdomain}, ${isCooling ? 'released' : 'reserved'}, now() - interval '2 hours',
      case when not ${isCooling}::boolean then now() + ${state === 'lapsed' ? -1 : 1} * interval '1 hour' end,
      case when ${isCooling}::boolean then now() + interval '1 hour' end,
      case when ${state === 'held'}::boolean then gen_random_uuid() end, sha256('x'), 'tenant', 0)`
}

const setZone = (subdomain: string, address: string | null) => {
  for (const set of toRecords(subdomain, OWN)) fixture.provider.records.delete(recordKey(set))
  if (address) for (const set of toRecords(subdomain, address)) fixture.provider.records.set(recordKey(set), set)
}

const makeZoneNewer = () => {
  const [marker] = parseMarkers(poolDomain, [...fixture.provider.markers.values()])
  const record = createMarkerRecord(poolDomain, { installation: marker?.installation ?? '', serial: 999 }, 60)
  fixture.provider.markers.set(`${toMarkerName(poolDomain)} TXT`, record)
}

const findAllocation = async (subdomain: string) => {
  const [found] = await fixture.sql`
    select state, host(load_balancer_ip) as address, token_hash = sha256('x') as has_token, lineage_id, expires_at,
      cool_off_until, created_by
    from pool_allocations where subdomain = ${subdomain}`
  return found
}
const getZoneAddress = (subdomain: string) =>
  [...fixture.provider.records.values()].find(({ name }) => name === `${subdomain}.${poolDomain}`)?.values[0] ?? null

describe.each(['database', 'zone'] as const)('trust in the %s', trust => {
  test('for each state of the database and of the zone, the plan is what is done', async () => {
    const { dns } = replica()
    const versions = await Promise.all(cases.map(({ subdomain }) => activate(subdomain, OWN)))
    for (const version of versions) await dns.waitUntilApplied(version)
    for (const { subdomain, state, zoneAddress, row } of cases) {
      await setState(subdomain, state, row)
      setZone(subdomain, zoneAddress)
    }
    makeZoneNewer()
    const before = new Map<string, Awaited<ReturnType<typeof findAllocation>>>()
    for (const { subdomain } of cases) before.set(subdomain, await findAllocation(subdomain))

    const plan = await dns.resume(poolDomain, { trust, caller: null })
    if (plan.kind !== 'planned') throw new Error(plan.kind)
    const planned = Object.fromEntries(plan.differences.map(({ subdomain, action }) => [subdomain, action]))
    const expected = cases.flatMap(one => {
      const action = toAction(trust, one)
      return action ? [[one.subdomain, action]] : []
    })
    expect(planned).toEqual(Object.fromEntries(expected))
    const { kind: _, ...listed } = plan
    expect(await dns.resume(poolDomain, { trust, caller: operator })).toMatchObject({
      ...{ ...listed, kind: 'resumed', pending: 0, failing: 0 },
    })

    for (const { subdomain, zoneAddress } of cases) {
      const former = before.get(subdomain)
      const done = { allocation: await findAllocation(subdomain), zone: getZoneAddress(subdomain) }
      const action = planned[subdomain]
      if (action === undefined) expect(done, subdomain).toEqual({ allocation: former, zone: zoneAddress })
      if (action === 'withdraw') expect(done, subdomain).toEqual({ allocation: former, zone: null })
      if (action === 'publish') expect(done, subdomain).toEqual({ allocation: former, zone: OWN })
      if (action === 'release') expect(done, subdomain).toEqual({ allocation: undefined, zone: null })
      if (action !== 'adopt' && action !== 'readdress') continue
      const { lineage_id = null, created_by } = former ?? {}
      const active = { state: 'active', address: zoneAddress, has_token: false, expires_at: null, cool_off_until: null }
      const createdBy = action === 'adopt' ? 'operator' : created_by
      expect(done, subdomain).toEqual({
        allocation: { ...active, lineage_id, created_by: createdBy },
        zone: zoneAddress,
      })
    }
    const rows = await fixture.sql<{ subdomain: string; events: string }[]>`
      select subdomain, string_agg(event, ' ' order by id) as events from allocation_history
      where request_id = 'resume' group by subdomain`
    const events = Object.fromEntries(rows.map(row => [row.subdomain, row.events]))
    if (trust === 'database')
      expect(events).toEqual(
        Object.fromEntries(
          Object.entries(planned).flatMap(([name, action]) =>
            action === 'withdraw' && name.endsWith('-unknown') ? [[name, 'orphan-removed']] : [],
          ),
        ),
      )
    else
      expect(events).toMatchObject({
        'free-same-known': 'adopted',
        'free-same-unknown': 'adopted',
        'reserved-same-known': 'released adopted',
        'reserved-same-unknown': 'released adopted',
        'lapsed-same-known': 'expired adopted',
        'lapsed-same-unknown': 'expired adopted',
        'cooling-same-known': 'adopted',
        'cooling-same-unknown': 'adopted',
        'active-absent-known': 'released',
        'active-other-known': 'updated',
      })
    expect(await dns.repair(poolDomain)).toMatchObject({ stopCause: null, changeCount: 0, orphanCount: 0 })
  })
})

test('orphans/adopt changes every name that its dry run lists', async () => {
  const { dns } = replica()
  const orphans = cases.filter(({ row, zoneAddress }) => row === 'unknown' && zoneAddress !== null)
  for (const { subdomain, state, zoneAddress, row } of orphans) {
    await setState(subdomain, state, row)
    setZone(subdomain, zoneAddress)
  }
  const plan = await dns.changeOrphans(poolDomain, { action: 'adopt', caller: null, subdomains: null })
  expect(plan).toMatchObject({ kind: 'orphans', orphanCount: orphans.length, changedCount: 0 })
  const result = await dns.changeOrphans(poolDomain, { action: 'adopt', caller: operator, subdomains: null })
  expect(result).toMatchObject({ orphanCount: orphans.length, changedCount: orphans.length, pending: 0 })
  for (const { subdomain, zoneAddress } of orphans) {
    expect(await findAllocation(subdomain), subdomain).toMatchObject({
      ...{ state: 'active', address: zoneAddress, has_token: false },
    })
  }
})

describe.each(['known', 'unknown'])('the adoption of a reserved name with %s records, and at the same moment', row => {
  const options = { timeoutMs: 10_000 }

  /** A reservation with records in the zone, and the calls that compete for it. */
  const prepare = async () => {
    const { sql } = fixture
    const subdomain = 'acme'
    const { dns } = replica()
    const { version } = await activate(subdomain, OWN)
    await dns.waitUntilApplied({ zone: poolDomain, subdomain, version })
    await setState(subdomain, 'free', row)
    const store = createTokenRepository(sql, repositoryOptions)
    const granted = await store.reserve({ poolDomain, subdomain, createdBy: 'tenant' }, client)
    if (granted.kind !== 'granted') throw new Error(granted.kind)
    const { reservationToken } = granted
    const name = { poolDomain, subdomain }
    const records = toRecords(subdomain, OTHER)
    const adoptUnder = (lease: Lease) =>
      row === 'known'
        ? createOperationsRepository(sql, options).trustZone(
            poolDomain,
            [
              {
                ...{ subdomain, version, action: 'adopt', databaseAddress: null, zoneAddress: OTHER },
                ...{ target: { loadBalancerIP: OTHER }, desired: records },
              },
            ],
            operator,
            lease,
          )
        : createOperationsRepository(sql, options).adopt(
            poolDomain,
            [{ subdomain, target: { loadBalancerIP: OTHER }, records, otherCount: 0 }],
            operator,
            lease,
          )
    const adopt = () => withLease(sql, poolDomain, adoptUnder)
    const commit = () =>
      store.commit(
        { ...name, reservationToken, sovereignFQDN: `${subdomain}.${poolDomain}`, loadBalancerIP: OWN },
        toRecords(subdomain, OWN),
        client,
      )
    const others = {
      commit,
      renew: () => store.renew({ ...name, reservationToken }),
      release: () => store.release({ ...name, reservationToken }, client),
      expiry: async () => ({ kind: `${await store.deleteExpired(10)}` }),
    }
    return { subdomain, adopt, others }
  }
  const findTransitions = async (subdomain: string) => {
    const rows = await fixture.sql<{ event: string; from: string; to: string }[]>`
      select event, from_state as from, to_state as to from allocation_history where subdomain = ${subdomain} order by id`
    const changes = rows.filter(({ event }) => !['published', 'withdrawn', 'failing', 'repaired'].includes(event))
    return changes.map(({ event, from, to }) => `${event} ${from} ${to}`)
  }
  const start = ['reserved none reserved', 'committed reserved active', 'reserved none reserved']
  const adopted = 'adopted none active'
  const ended = 'released reserved none'

  test.each([
    ['commit', 'already-active'],
    ['renew', 'already-active'],
    ['release', 'token-mismatch'],
  ] as const)('%s after it: %s', async (call, rejection) => {
    const { subdomain, adopt, others } = await prepare()
    const [names, result] = await runInOrder<string[], { kind: string }>(
      fixture.sql,
      { poolDomain, subdomain },
      adopt,
      others[call],
    )
    expect(result.kind).toBe(rejection)
    expect(names).toContain(subdomain)
    expect(await findAllocation(subdomain)).toMatchObject({ state: 'active', address: OTHER })
    expect(await findTransitions(subdomain)).toEqual([...start, ended, adopted])
  })

  test('a commit before it: the client keeps the name', async () => {
    const { subdomain, adopt, others } = await prepare()
    const [result, names] = await runInOrder(fixture.sql, { poolDomain, subdomain }, others.commit, adopt)
    expect([result.kind, names]).toEqual(['committed', []])
    expect(await findAllocation(subdomain)).toMatchObject({ state: 'active', address: OWN })
    expect((await fixture.row(subdomain))?.desired).toEqual(toRecords(subdomain, OWN))
    expect(await findTransitions(subdomain)).toEqual([...start, 'committed reserved active'])
  })

  test('a commit during the resume: the response has what the database decides', async () => {
    const { subdomain, others } = await prepare()
    setZone(subdomain, OTHER)
    makeZoneNewer()
    const [committed, resumed] = await runInOrder(fixture.sql, { poolDomain, subdomain }, others.commit, () =>
      replica().dns.resume(poolDomain, { trust: 'zone', caller: operator }),
    )
    // Records that the database never had are in conflict with those of the client.
    const isConflict = row === 'unknown'
    expect(committed.kind).toBe('committed')
    expect(resumed).toMatchObject({
      ...{ kind: 'resumed', differenceCount: 1, pending: isConflict ? 1 : 0 },
      differences: [{ subdomain, databaseAddress: OWN, zoneAddress: OTHER, action: 'publish' }],
    })
    expect(getZoneAddress(subdomain)).toBe(isConflict ? OTHER : OWN)
  })

  test.each(['renew', 'release', 'expiry'] as const)('%s before it: it is adopted', async call => {
    const { subdomain, adopt, others } = await prepare()
    if (call === 'expiry')
      await fixture.sql`
        update pool_allocations set reserved_at = now() - interval '2 hours', expires_at = now() - interval '1 hour'`
    // The sweeper does not wait for a locked row.
    const [result, names] =
      call === 'expiry'
        ? await Promise.all([others.expiry(), adopt()])
        : await runInOrder<{ kind: string }, string[]>(fixture.sql, { poolDomain, subdomain }, others[call], adopt)
    expect(names).toContain(subdomain)
    expect(result.kind).toMatch(/^(renewed|released|0|1)$/)
    expect(await findAllocation(subdomain)).toMatchObject({ state: 'active', address: OTHER })
    const end = call === 'expiry' ? 'expired reserved none' : ended
    expect(await findTransitions(subdomain)).toEqual([...start, end, adopted])
  })
})

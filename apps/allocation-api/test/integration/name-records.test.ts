import { describe, expect, test } from 'vitest'
import type { DesiredVersion, Reconciler } from '../../src/reconciler/reconciler.ts'
import { useDnsFixture } from '../support/dns-fixture.ts'

const fixture = useDnsFixture()
const zone = 'pool.test'
const toA = (name: string, address: string) => ({ name, type: 'A', ttl: 60, values: [address] })
const wait = async (reconciler: Reconciler, version: DesiredVersion) => {
  expect(await reconciler.waitUntilApplied(version)).toEqual({ status: 'published' })
}

const publish = async () => {
  const { dns: reconciler } = fixture.replica()
  await wait(reconciler, await fixture.activate('acme'))
  return reconciler
}
const records = [toA('acme.pool.test', '192.0.2.1'), toA('*.acme.pool.test', '192.0.2.1')]

describe('the records of a name', () => {
  test('are compared with the zone, without a change', async () => {
    const reconciler = await publish()
    fixture.provider.records.set('mail.acme.pool.test A', toA('mail.acme.pool.test', '192.0.2.9'))
    fixture.provider.calls.length = 0
    expect(await reconciler.compareName(zone, 'acme')).toMatchObject({
      kind: 'compared',
      desired: records,
      found: expect.arrayContaining([...records, toA('mail.acme.pool.test', '192.0.2.9')]),
      changes: [],
      conflict: null,
    })
    expect(fixture.provider.calls).toEqual(['read'])
  })

  test('are unknown while the provider is unavailable', async () => {
    const reconciler = await publish()
    fixture.provider.faults.push({ result: { kind: 'unavailable', reason: 'It is away.' } })
    expect(await reconciler.compareName(zone, 'acme')).toMatchObject({ kind: 'unavailable', reason: 'It is away.' })
  })

  test('of a foreign record in the way: the reason, and nothing is planned', async () => {
    const { dns: reconciler } = fixture.replica()
    fixture.provider.records.set('acme.pool.test CNAME', {
      name: 'acme.pool.test',
      type: 'CNAME',
      ttl: 60,
      values: ['elsewhere.test.'],
    })
    await reconciler.waitUntilApplied(await fixture.activate('acme'))
    expect(await reconciler.compareName(zone, 'acme')).toMatchObject({
      changes: [],
      conflict: expect.stringContaining('CNAME'),
    })
  })
})

describe('the plan of an action', () => {
  test('of a release is what the release then does', async () => {
    const reconciler = await publish()
    fixture.provider.records.set('mail.acme.pool.test A', toA('mail.acme.pool.test', '192.0.2.9'))
    const plan = await reconciler.planAction(zone, 'acme', { action: 'release' })
    expect(plan).toMatchObject({
      kind: 'planned',
      deletedRecords: [toA('mail.acme.pool.test', '192.0.2.9')],
      unavailable: null,
    })
    const planned = 'changes' in plan ? plan.changes.map(change => change.kind === 'delete' && change.name) : []
    expect(planned.toSorted()).toEqual(['*.acme.pool.test', 'acme.pool.test', 'mail.acme.pool.test'])
    expect(fixture.provider.records.size).toBe(3)
    await wait(reconciler, await fixture.release('acme'))
    expect([...fixture.provider.records.values()]).toEqual([])
  })

  test('of an update is what the update then does', async () => {
    const reconciler = await publish()
    fixture.provider.records.set('mail.acme.pool.test A', toA('mail.acme.pool.test', '192.0.2.9'))
    const plan = await reconciler.planAction(zone, 'acme', {
      action: 'update',
      target: { loadBalancerIP: '192.0.2.2' },
    })
    expect(plan).toMatchObject({
      changes: [
        { kind: 'upsert', set: toA('acme.pool.test', '192.0.2.2') },
        { kind: 'upsert', set: toA('*.acme.pool.test', '192.0.2.2') },
      ],
      deletedRecords: [],
    })
    await wait(reconciler, await fixture.update('acme', '192.0.2.2'))
    expect([...fixture.provider.records.values()].map(({ values }) => values[0]).toSorted()).toEqual([
      '192.0.2.2',
      '192.0.2.2',
      '192.0.2.9',
    ])
  })

  test('comes from the database while the zone cannot be read', async () => {
    const reconciler = await publish()
    fixture.provider.faults.push({ result: { kind: 'unavailable', reason: 'It is away.' } })
    expect(await reconciler.planAction(zone, 'acme', { action: 'release' })).toEqual({
      kind: 'planned',
      changes: records.map(({ name }) => ({ kind: 'delete', name, type: 'A' })),
      deletedRecords: [],
      unavailable: 'It is away.',
      conflict: null,
    })
  })
})

test('a read for an operator does not change what the next write of the zone is planned on', async () => {
  const reconciler = await publish()
  const [compared] = await Promise.all([
    reconciler.compareName(zone, 'acme'),
    wait(reconciler, await fixture.update('acme', '192.0.2.3')),
    reconciler.planAction(zone, 'acme', { action: 'release' }),
  ])
  expect(compared.kind).toBe('compared')
  expect([...fixture.provider.records.values()].map(({ values }) => values)).toEqual([['192.0.2.3'], ['192.0.2.3']])
})

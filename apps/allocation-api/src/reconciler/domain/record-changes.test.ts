import { expect, test } from 'vitest'
import type { RecordSet } from '../../dns/domain/rrset.ts'
import { createRecords } from '../../dns/domain/target.ts'
import type { DesiredName } from './name.ts'
import { applyAction, toRecordChanges } from './record-changes.ts'

const record = (name: string, address: string) => ({ name, type: 'A', ttl: 300, values: [address] })
const old = [record('acme.pool.test', '203.0.113.1'), record('*.acme.pool.test', '203.0.113.1')]
const next = [record('acme.pool.test', '203.0.113.2'), record('*.acme.pool.test', '203.0.113.1')]
const name: DesiredName = {
  subdomain: 'acme',
  desired: old,
  owned: [...old, { name: 'api.acme.pool.test', type: 'A' }],
  previous: [],
  hasInFlightWrite: false,
  isPurged: false,
}

test('a released name has no records, and everything below it is deleted', () => {
  expect(applyAction(name, 'release', [])).toEqual({ ...name, desired: [], previous: old, isPurged: true })
})

test('an updated name keeps what others put below it', () => {
  expect(applyAction(name, 'update', next)).toEqual({ ...name, desired: next, previous: old })
})

test('without the zone, a release deletes what the service wrote', () => {
  expect(toRecordChanges(name, applyAction(name, 'release', []).desired)).toEqual([
    { kind: 'delete', name: 'acme.pool.test', type: 'A' },
    { kind: 'delete', name: '*.acme.pool.test', type: 'A' },
    { kind: 'delete', name: 'api.acme.pool.test', type: 'A' },
  ])
})

test('without the zone, an update writes what differs', () => {
  expect(toRecordChanges(name, applyAction(name, 'update', next).desired)).toEqual([
    { kind: 'delete', name: 'api.acme.pool.test', type: 'A' },
    { kind: 'upsert', set: next[0] },
  ])
})

const create = (names: string[], ttl = 300): RecordSet[] =>
  createRecords('acme.pool.test', { loadBalancerIP: '192.0.2.1' }, { names, ttl })
const upsert = (set: RecordSet | undefined) => ({ kind: 'upsert', set })
const remove = (name: string) => ({ kind: 'delete', name, type: 'A' })

test.each([
  ['the same record sets', create(['@', '*']), create(['@', '*']), []],
  ['another order', create(['@', '*']), create(['*', '@']), []],
  ['one more name', create(['@']), create(['@', 'api']), [upsert(create(['api'])[0])]],
  ['one name less', create(['@', 'api']), create(['@']), [remove('api.acme.pool.test')]],
  ['another TTL', create(['@', '*']), create(['@', '*'], 60), create(['@', '*'], 60).map(upsert)],
  [
    'other names, deletions first',
    create(['@', 'api']),
    create(['@', 'www']),
    [remove('api.acme.pool.test'), upsert(create(['www'])[0])],
  ],
])('the changes to the records of another template: %s', (_, desired, wanted, changes) => {
  expect(toRecordChanges({ owned: [], desired }, wanted)).toEqual(changes)
})

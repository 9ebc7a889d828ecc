import { expect, test } from 'vitest'
import { applyAction, planWithoutZone } from './action-plan.ts'
import type { DesiredName } from './name.ts'

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
  expect(planWithoutZone(name, applyAction(name, 'release', []))).toEqual([
    { kind: 'delete', name: 'acme.pool.test', type: 'A' },
    { kind: 'delete', name: '*.acme.pool.test', type: 'A' },
    { kind: 'delete', name: 'api.acme.pool.test', type: 'A' },
  ])
})

test('without the zone, an update writes what differs', () => {
  expect(planWithoutZone(name, applyAction(name, 'update', next))).toEqual([
    { kind: 'delete', name: 'api.acme.pool.test', type: 'A' },
    { kind: 'upsert', set: next[0] },
  ])
})

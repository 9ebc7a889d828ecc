import { expect, test } from 'vitest'
import type { RecordChange } from './domain/rrset.ts'
import { groupByOwner, toApplyResult } from './group-changes.ts'

const upsert = (name: string, type: string, ...values: string[]): RecordChange => ({
  kind: 'upsert',
  set: { name, type, ttl: 300, values },
})
const remove = (name: string, type = 'A'): RecordChange => ({ kind: 'delete', name, type })

test('groups by owner: the last change of a record set wins, and deletions come first', () => {
  const cname = upsert('a', 'CNAME', 'x.example.')
  const older = upsert('b', 'A', '192.0.2.1')
  const newer = upsert('b', 'A', '192.0.2.2')
  const { owners, rejected } = groupByOwner([cname, older, remove('a'), newer], () => undefined)
  expect(owners.toSorted((x, y) => (x.name < y.name ? -1 : 1))).toEqual([
    { name: 'a', changes: [remove('a'), cname] },
    { name: 'b', changes: [newer] },
  ])
  expect(rejected).toEqual(new Map())
})

test('the owner of the first change comes first, with its own deletions first', () => {
  const changes = [upsert('marker', 'TXT', '"1"'), upsert('b', 'A', '192.0.2.1'), remove('c'), remove('marker')]
  const { owners } = groupByOwner(changes, () => undefined)
  expect(owners.map(({ name }) => name)).toEqual(['marker', 'c', 'b'])
  expect(owners[0]?.changes).toEqual([remove('marker'), upsert('marker', 'TXT', '"1"')])
})

test('one rejected change rejects all changes at its name', () => {
  const changes = [upsert('a', 'A', 'bad'), upsert('a', 'TXT', 'good'), upsert('b', 'A', 'good')]
  const isBad = (change: RecordChange) => change.kind === 'upsert' && change.set.values.includes('bad')
  const { owners, rejected } = groupByOwner(changes, change => (isBad(change) ? 'it is bad' : undefined))
  expect(owners.map(({ name }) => name)).toEqual(['b'])
  expect(rejected).toEqual(new Map([['a', 'it is bad']]))
})

test.each([
  [[], { kind: 'applied', rejected: [{ name: 'a', reason: 'no' }] }],
  [['a'], { kind: 'applied', rejected: [{ name: 'a', reason: 'no' }] }],
  [['a', 'b'], { kind: 'applied', rejected: [{ name: 'a', reason: 'no' }], skipped: ['b'] }],
])('with a rejected name and %j skipped', (skipped, expected) => {
  expect(toApplyResult(new Map([['a', 'no']]), skipped)).toStrictEqual(expected)
})

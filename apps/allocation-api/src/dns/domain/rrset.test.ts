import { describe, expect, test } from 'vitest'
import { groupByOwner, isAtOrBelow, type RecordChange, sameRecordSet, toApplyResult } from './rrset.ts'
import { createRecords } from './target.ts'

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

describe('record sets', () => {
  test('an active name has one A record for each name of the template', () => {
    const sets = createRecords('acme.pool.test', { loadBalancerIP: '192.0.2.1' }, { names: ['@', '*', 'api'], ttl: 60 })
    expect(sets.map(set => set.name)).toEqual(['acme.pool.test', '*.acme.pool.test', 'api.acme.pool.test'])
    for (const set of sets) expect(set).toMatchObject({ type: 'A', ttl: 60, values: ['192.0.2.1'] })
  })

  test.each([
    ['acme.pool.test', true],
    ['a.b.acme.pool.test', true],
    ['*.acme.pool.test', true],
    ['xacme.pool.test', false],
    ['pool.test', false],
    ['acme.pool.test.example', false],
    // The dot is in the label `x.acme`.
    ['x\\.acme.pool.test', false],
    ['x\\\\.acme.pool.test', true],
  ])('%s is at or below acme.pool.test: %s', (name, below) => {
    expect(isAtOrBelow(name, 'acme.pool.test')).toBe(below)
  })

  const set = { name: 'a.test', type: 'A', ttl: 1, values: ['192.0.2.1'] }
  test.each([
    [set, true],
    [{ ...set, name: 'b.test' }, false],
    [{ ...set, type: 'AAAA' }, false],
    [{ ...set, ttl: 2 }, false],
    [{ ...set, values: [] }, false],
    [{ ...set, values: ['192.0.2.2'] }, false],
  ])('%j equals the first: %s', (other, same) => {
    expect(sameRecordSet(set, other)).toBe(same)
  })
})

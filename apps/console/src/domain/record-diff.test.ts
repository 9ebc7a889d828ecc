import type { PlannedChange } from '@pool/contract'
import { expect, test } from 'vitest'
import { diffRecords, type RecordSet, toDifferenceRows, toPlanRows } from './record-diff.ts'

const a = (name: string, data: readonly string[] = ['203.0.113.10'], ttl = 300): RecordSet => ({
  name,
  type: 'A',
  ttl,
  data,
})
const deletion = (name: string, type: string): PlannedChange => ({ subdomain: 'acme', action: 'delete', name, type })

test.each<[string, readonly RecordSet[], readonly RecordSet[], readonly PlannedChange[], readonly unknown[]]>([
  ['equal, in any order', [a('x', ['1', '2'])], [a('x', ['2', '1'])], [], [['same', 'x', 'A', false]]],
  ['not in the zone', [a('x')], [], [], [['added', 'x', 'A', false]]],
  ['another address', [a('x')], [a('x', ['203.0.113.11'])], [], [['changed', 'x', 'A', false]]],
  ['another TTL', [a('x')], [a('x', ['203.0.113.10'], 60)], [], [['changed', 'x', 'A', false]]],
  [
    'a record of another writer stays, one that is deleted does not',
    [a('x')],
    [a('x'), { name: 'x', type: 'TXT', ttl: 60, data: ['"v"'] }, a('old.x')],
    [deletion('old.x', 'A')],
    [
      ['removed', 'old.x', 'A', false],
      ['same', 'x', 'A', false],
      ['same', 'x', 'TXT', true],
    ],
  ],
])('compares records: %s', (_, desired, found, changes, expected) =>
  expect(
    diffRecords(desired, found, changes).map(({ kind, name, type, isForeign }) => [kind, name, type, isForeign]),
  ).toEqual(expected),
)

test('the rows of a plan', () =>
  expect(
    toPlanRows([
      {
        subdomain: 'acme',
        action: 'upsert',
        name: 'acme.pool.test',
        type: 'A',
        ttl: 60,
        values: ['1.2.3.4', '1.2.3.5'],
      },
      deletion('old.pool.test', 'A'),
    ]),
  ).toEqual([
    { sign: '+', kind: 'added', name: 'acme.pool.test', type: 'A', text: '1.2.3.4, 1.2.3.5, TTL 60 s' },
    { sign: '−', kind: 'removed', name: 'old.pool.test', type: 'A', text: '' },
  ]))

test('the rows of a plan have the values that the zone loses', () => {
  const upsert: PlannedChange = { ...deletion('x', 'A'), action: 'upsert', ttl: 300, values: ['203.0.113.20'] }
  const text = '203.0.113.20, TTL 300 s'
  const before = '203.0.113.10, TTL 300 s'
  expect(toPlanRows([upsert, deletion('old.x', 'A')], [a('x'), a('old.x')])).toEqual([
    { sign: '~', kind: 'changed', name: 'x', type: 'A', text, before },
    { sign: '−', kind: 'removed', name: 'old.x', type: 'A', text: before },
  ])
})

test('the rows of a resume say which side wins', () =>
  expect(
    toDifferenceRows([
      { subdomain: 'a', databaseAddress: '1.2.3.4', zoneAddress: '1.2.3.5', action: 'readdress' },
      { subdomain: 'b', zoneAddress: '1.2.3.5', action: 'adopt' },
    ]).map(({ sign, text }) => `${sign} ${text}`),
  ).toEqual([
    '~ database 1.2.3.4, zone 1.2.3.5: the name gets the address of the zone',
    '+ database none, zone 1.2.3.5: the name becomes active with the address of the zone',
  ]))

import { expect, test } from 'vitest'
import type { RecordChange } from '../../domain/rrset.ts'
import { applyChanges } from './apply-changes.ts'
import type { DynadotRecord } from './record.ts'

const ZONE = 'pool.example'
const sub = (host: string, type = 'A', value = '192.0.2.1'): DynadotRecord => ({
  place: 'sub',
  host,
  type,
  value,
  extra: '',
})
const main = (type = 'A', value = '192.0.2.1'): DynadotRecord => ({ ...sub('', type, value), place: 'main' })
const toFqdn = (host: string) => (host === '' ? ZONE : `${host}.${ZONE}`)
const up = (host: string, ...values: string[]): RecordChange => ({
  kind: 'upsert',
  set: { name: toFqdn(host), type: 'A', ttl: 300, values: values.length > 0 ? values : ['192.0.2.1'] },
})
const del = (host: string, type = 'A'): RecordChange => ({ kind: 'delete', name: toFqdn(host), type })
const many = (count: number) => Array.from({ length: count }, (_, i) => sub(`n${i}`))

interface Case {
  readonly before: readonly DynadotRecord[]
  readonly changes: readonly RecordChange[]
  /** `host TYPE value` of each record afterwards; a number: only the count. */
  readonly after: readonly string[] | number
  readonly rejected?: Readonly<Record<string, RegExp>>
  readonly unchanged?: boolean
}

test.each<[string, Case]>([
  ['creates', { before: [sub('b')], changes: [up('a')], after: ['b A 192.0.2.1', 'a a 192.0.2.1'] }],
  ['replaces', { before: [sub('a')], changes: [up('a', '192.0.2.2')], after: ['a a 192.0.2.2'] }],
  [
    'leaves a matching record unchanged',
    { before: [sub('a')], changes: [up('a')], after: ['a A 192.0.2.1'], unchanged: true },
  ],
  ['deletes', { before: [sub('a'), sub('a', 'TXT')], changes: [del('a')], after: ['a TXT 192.0.2.1'] }],
  ['deletes nothing', { before: [sub('b')], changes: [del('a')], after: ['b A 192.0.2.1'], unchanged: true }],
  [
    'a deleted CNAME makes room',
    { before: [sub('a', 'CNAME', 'b.example')], changes: [up('a'), del('a', 'CNAME')], after: ['a a 192.0.2.1'] },
  ],
  ['the last change wins', { before: [], changes: [up('a'), up('a', '192.0.2.2')], after: ['a a 192.0.2.2'] }],
  [
    'a conflicting CNAME',
    {
      before: [sub('a', 'cname', 'b.example')],
      changes: [up('a'), up('c')],
      after: ['a cname b.example', 'c a 192.0.2.1'],
      rejected: { a: /CNAME/ },
    },
  ],
  [
    'a conflicting forward',
    { before: [sub('a', 'forward')], changes: [up('a')], after: 1, rejected: { a: /FORWARD/ }, unchanged: true },
  ],
  [
    'a rejected name is unchanged',
    {
      before: [sub('a', 'TXT', 'x')],
      changes: [del('a', 'TXT'), up('a', 'nonsense'), up('b')],
      after: ['a TXT x', 'b a 192.0.2.1'],
      rejected: { a: /not a valid/ },
    },
  ],
  ['100 below the domain', { before: many(99), changes: [up('a')], after: 100 }],
  [
    'not 101; the other changes are applied',
    {
      before: many(99),
      changes: [up('a'), up('b'), up('n0', '192.0.2.7')],
      after: 100,
      rejected: { b: /100 records.*make 101/ },
    },
  ],
  [
    'all values or none',
    {
      before: many(99),
      changes: [up('a', '192.0.2.1', '192.0.2.2')],
      after: 99,
      rejected: { a: /101/ },
      unchanged: true,
    },
  ],
  ['a deletion makes room', { before: many(100), changes: [up('a'), del('n3')], after: 100 }],
  [
    'a rejected deletion makes no room',
    {
      before: [...many(99), sub('t', 'TXT', 'x')],
      changes: [del('t', 'TXT'), up('t', 'nonsense'), up('a')],
      after: 100,
      rejected: { t: /not a valid/, a: /101/ },
      unchanged: true,
    },
  ],
  [
    'a deletion that is rejected later makes no room',
    {
      before: [...many(98), sub('t', 'TXT', 'x'), sub('t', 'FORWARD')],
      changes: [del('t', 'TXT'), up('t'), up('a')],
      after: 100,
      rejected: { t: /FORWARD/, a: /101/ },
      unchanged: true,
    },
  ],
  [
    'a CNAME at a name with another record',
    {
      before: [sub('a', 'TXT', 'x')],
      changes: [{ kind: 'upsert', set: { name: toFqdn('a'), type: 'CNAME', ttl: 300, values: ['b.example.'] } }],
      after: ['a TXT x'],
      rejected: { a: /conflicting TXT record/ },
      unchanged: true,
    },
  ],
  [
    'the domain itself has a separate limit',
    {
      before: [...Array.from({ length: 19 }, (_, i) => main('TXT', `${i}`)), ...many(100)],
      changes: [up('', '192.0.2.1', '192.0.2.2')],
      after: 119,
      rejected: { '': /20 records.*make 21/ },
      unchanged: true,
    },
  ],
])('%s', (_, { before, changes, after, rejected = {}, unchanged = false }) => {
  const outcome = applyChanges(before, changes, ZONE)
  const records = outcome.records.map(({ host, type, value }) => `${host} ${type} ${value}`)
  if (typeof after === 'number') expect(records).toHaveLength(after)
  else expect(records).toEqual(after)
  expect(outcome.isChanged).toBe(!unchanged)
  expect([...outcome.rejected.keys()].sort()).toEqual(Object.keys(rejected).map(toFqdn).sort())
  for (const [host, reason] of Object.entries(rejected)) expect(outcome.rejected.get(toFqdn(host))).toMatch(reason)
})

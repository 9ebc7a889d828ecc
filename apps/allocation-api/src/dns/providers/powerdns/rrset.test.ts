import { describe, expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../domain/rrset.ts'
import { isSecondary, parseOwner, splitRecords, toRrset, validatePowerdnsChange } from './rrset.ts'

test('splitRecords separates served records, normalized, from disabled ones', () => {
  const record = (content: string, disabled = false) => ({ content, disabled })
  const rrsets = [
    { name: 'WWW.pool.test.', type: 'A', ttl: 60, records: [record('192.0.2.2'), record('192.0.2.1')] },
    { name: 'twice.pool.test.', type: 'A', ttl: 60, records: [record('192.0.2.1'), record('192.0.2.1')] },
    { name: 'half.pool.test.', type: 'A', ttl: 60, records: [record('192.0.2.1', true), record('192.0.2.2')] },
    { name: 'off.pool.test.', type: 'A', ttl: 61, records: [record('192.0.2.2', true), record('192.0.2.1', true)] },
    { name: 'comment-only.pool.test.', type: 'A', ttl: 0, records: [] },
    { name: 'mail.pool.test.', type: 'MX', ttl: 60, records: [record('10 MX.example.')] },
  ]
  const { served, unserved } = splitRecords(rrsets)
  expect(served).toEqual([
    { name: 'www.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1', '192.0.2.2'] },
    { name: 'twice.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1'] },
    { name: 'half.pool.test', type: 'A', ttl: 60, values: ['192.0.2.2'] },
    { name: 'mail.pool.test', type: 'MX', ttl: 60, values: ['10 MX.example.'] },
  ])
  expect(unserved).toEqual([
    { name: 'half.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1'] },
    { name: 'off.pool.test', type: 'A', ttl: 61, values: ['192.0.2.1', '192.0.2.2'] },
  ])
})

test.each([
  ['Native', false],
  ['Master', false],
  ['Primary', false],
  ['Slave', true],
  ['Secondary', true],
  ['Consumer', true],
  ['Producer', true],
])('a zone of the kind %s is secondary: %s', (kind, expected) => {
  expect(isSecondary(kind)).toBe(expected)
})

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type = 'A'): RecordChange => ({ kind: 'delete', name, type })

test.each([
  { change: upsert(set('a.pool.test', 'A', 'the server decides')), expected: undefined },
  { change: upsert(set('pool.test', 'A', '192.0.2.1')), expected: undefined },
  { change: remove('a.pool.test'), expected: undefined },
  { change: remove('a.spool.test'), expected: /not in the zone pool\.test/ },
  { change: upsert(set('apool.test', 'A', '192.0.2.1')), expected: /not in the zone pool\.test/ },
  { change: upsert(set('a.pool.test', 'A')), expected: /no value/ },
  { change: upsert({ ...set('a.pool.test', 'A', '192.0.2.1'), ttl: 0 }), expected: undefined },
  { change: upsert({ ...set('a.pool.test', 'A', '192.0.2.1'), ttl: 2 ** 31 - 1 }), expected: undefined },
  { change: upsert({ ...set('a.pool.test', 'A', '192.0.2.1'), ttl: 2 ** 31 }), expected: /TTL/ },
  { change: upsert({ ...set('a.pool.test', 'A', '192.0.2.1'), ttl: -1 }), expected: /TTL/ },
  { change: upsert({ ...set('a.pool.test', 'A', '192.0.2.1'), ttl: 1.5 }), expected: /TTL/ },
])('validatePowerdnsChange: $change gives $expected', ({ change, expected }) => {
  const reason = validatePowerdnsChange('pool.test', change)
  if (expected) expect(reason).toMatch(expected)
  else expect(reason).toBeUndefined()
})

describe('toRrset', () => {
  const on = (content: string) => ({ content, disabled: false })
  const off = (content: string) => ({ content, disabled: true })
  const rrset = { name: 'a.pool.test.', type: 'A' }
  const disabled = { ...set('a.pool.test', 'A', '192.0.2.8', '192.0.2.9'), ttl: 60 }
  test.each([
    {
      what: 'an upsert',
      change: upsert(set('a.pool.test', 'A', '192.0.2.1')),
      unserved: undefined,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 300, records: [on('192.0.2.1')] },
    },
    {
      what: 'an upsert keeps disabled records, except those it enables',
      change: upsert(set('a.pool.test', 'A', '192.0.2.9')),
      unserved: disabled,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 300, records: [on('192.0.2.9'), off('192.0.2.8')] },
    },
    {
      what: 'a deletion',
      change: remove('a.pool.test'),
      unserved: undefined,
      expected: { ...rrset, changetype: 'DELETE' },
    },
    {
      what: 'a deletion keeps disabled records',
      change: remove('a.pool.test'),
      unserved: disabled,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 60, records: [off('192.0.2.8'), off('192.0.2.9')] },
    },
    {
      what: 'an upsert that drops the disabled records',
      change: { ...upsert(set('a.pool.test', 'A', '192.0.2.1')), dropsUnserved: true as const },
      unserved: disabled,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 300, records: [on('192.0.2.1')] },
    },
    {
      what: 'a deletion that drops the disabled records',
      change: { ...remove('a.pool.test'), dropsUnserved: true as const },
      unserved: disabled,
      expected: { ...rrset, changetype: 'DELETE' },
    },
    {
      what: 'a CNAME replaces a disabled one',
      change: upsert(set('a.pool.test', 'CNAME', 'x.example.')),
      unserved: set('a.pool.test', 'CNAME', 'y.example.'),
      expected: { ...rrset, type: 'CNAME', changetype: 'REPLACE', ttl: 300, records: [on('x.example.')] },
    },
  ])('$what', ({ change, unserved, expected }) => {
    expect(toRrset(change, unserved)).toEqual(expected)
  })
})

// Error texts of 4.7.3.
test.each([
  ["Record b.pool.test./A 'bad': Parsing record content (try 'pdnsutil check-zone'): while parsing", 'b.pool.test'],
  ["Record *.b.pool.test./TXT 'RRset c.pool.test. IN A': Not in expected format", '*.b.pool.test'],
  ['RRset c.pool.test. IN A: Conflicts with pre-existing RRset', 'c.pool.test'],
  ['RRset C.pool.test. IN A: Name is out of zone', 'c.pool.test'],
  ['RRset c.pool.test. IN CNAME has more than one record', 'c.pool.test'],
  ['Duplicate RRset d.pool.test. IN A with changetype: REPLACE', 'd.pool.test'],
  ['Duplicate record in RRset e.pool.test. IN A with content "192.0.2.1"', 'e.pool.test'],
  ["Unable to parse DNS Name 'e..pool.test.'", 'e..pool.test'],
  ["Name 'e\\032e.pool.test.' contains unsupported characters", 'e\\032e.pool.test'],
  ['No rrsets given in update request', undefined],
  ['Something about RRset c.pool.test. IN A', undefined],
  ['', undefined],
])('parseOwner: %s', (error, expected) => {
  expect(parseOwner(error)).toBe(expected)
})

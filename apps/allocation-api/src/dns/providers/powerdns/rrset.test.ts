import { describe, expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../domain/rrset.ts'
import { toRrset, validatePowerdnsChange } from './rrset.ts'

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type = 'A'): RecordChange => ({ kind: 'delete', name, type })

test.each([
  { change: upsert(set('a.pool.test', 'A', 'the server judges')), expected: undefined },
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

describe('rrsetOf', () => {
  const on = (content: string) => ({ content, disabled: false })
  const off = (content: string) => ({ content, disabled: true })
  const rrset = { name: 'a.pool.test.', type: 'A' }
  const laidAside = { ttl: 60, values: ['192.0.2.8', '192.0.2.9'] }
  test.each([
    {
      what: 'an upsert',
      change: upsert(set('a.pool.test', 'A', '192.0.2.1')),
      unserved: undefined,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 300, records: [on('192.0.2.1')] },
    },
    {
      what: 'an upsert hands back what is disabled, but not what it enables',
      change: upsert(set('a.pool.test', 'A', '192.0.2.9')),
      unserved: laidAside,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 300, records: [on('192.0.2.9'), off('192.0.2.8')] },
    },
    {
      what: 'a deletion',
      change: remove('a.pool.test'),
      unserved: undefined,
      expected: { ...rrset, changetype: 'DELETE' },
    },
    {
      what: 'a deletion leaves what is disabled',
      change: remove('a.pool.test'),
      unserved: laidAside,
      expected: { ...rrset, changetype: 'REPLACE', ttl: 60, records: [off('192.0.2.8'), off('192.0.2.9')] },
    },
    {
      what: 'a CNAME takes the place of a disabled one',
      change: upsert(set('a.pool.test', 'CNAME', 'x.example.')),
      unserved: { ttl: 60, values: ['y.example.'] },
      expected: { ...rrset, type: 'CNAME', changetype: 'REPLACE', ttl: 300, records: [on('x.example.')] },
    },
  ])('$what', ({ change, unserved, expected }) => {
    expect(toRrset(change, unserved)).toEqual(expected)
  })
})

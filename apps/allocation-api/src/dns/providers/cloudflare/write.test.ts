import { expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../domain/rrset.ts'
import type { CloudflareRecord } from './record.ts'
import { planBatch, toOperations, validateCloudflareChange } from './write.ts'

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = ({ name, type }: RecordSet): RecordChange => ({ kind: 'delete', name, type })
const record = (id: string, value: string, more: Partial<CloudflareRecord> = {}): CloudflareRecord => ({
  ...{ id, name: 'a.z', type: 'A', ttl: 300, isProxied: false, value },
  ...more,
})

test.each([
  [upsert(set('a.z.example', 'A', '192.0.2.1')), undefined],
  [upsert(set('a.other.example', 'A', '192.0.2.1')), /zone/],
  [upsert(set('az.example', 'A', '192.0.2.1')), /zone/],
  [remove(set('a.other.example', 'A')), /zone/],
  [upsert(set('a.z.example', 'A', 'x')), /not a valid A record/],
  [upsert(set('a.z.example', 'A')), /no value/],
  [upsert(set('a.z.example', 'CNAME', 'a.', 'b.')), /only one CNAME/],
  [upsert({ ...set('a.z.example', 'A', '192.0.2.1'), ttl: 1 }), /TTL/],
  [upsert({ ...set('a.z.example', 'A', '192.0.2.1'), ttl: 86_401 }), /TTL/],
  [remove(set('a.z.example', 'TLSA')), undefined],
])('%j is rejected before it is sent: %s', (change, reason) => {
  const found = validateCloudflareChange('z.example', change)
  if (reason) expect(found).toMatch(reason)
  else expect(found).toBeUndefined()
})

const fields = (content: string) => ({ name: 'a.z', type: 'A', ttl: 300, proxied: false, content })

test.each([
  ['nothing there', [], ['192.0.2.1'], { posts: [fields('192.0.2.1')] }],
  ['the same record', [record('1', '192.0.2.1')], ['192.0.2.1'], {}],
  ['another address', [record('1', '192.0.2.9')], ['192.0.2.1'], { patches: [{ id: '1', ...fields('192.0.2.1') }] }],
  [
    'another TTL',
    [record('1', '192.0.2.1', { ttl: 60 })],
    ['192.0.2.1'],
    { patches: [{ id: '1', ...fields('192.0.2.1') }] },
  ],
  [
    'proxied',
    [record('1', '192.0.2.1', { isProxied: true })],
    ['192.0.2.1'],
    { patches: [{ id: '1', ...fields('192.0.2.1') }] },
  ],
  ['one more value', [record('1', '192.0.2.1')], ['192.0.2.1', '192.0.2.2'], { posts: [fields('192.0.2.2')] }],
  [
    'one of two stays, and one changes',
    [record('1', '192.0.2.9'), record('2', '192.0.2.2')],
    ['192.0.2.1', '192.0.2.2'],
    { patches: [{ id: '1', ...fields('192.0.2.1') }] },
  ],
  [
    'surplus records',
    [record('1', '192.0.2.9'), record('2', '192.0.2.1'), record('3', '192.0.2.1')],
    ['192.0.2.1'],
    { deletes: [{ id: '1' }, { id: '3' }] },
  ],
  [
    'other names and types are untouched',
    [record('1', '192.0.2.9', { name: 'b.z' }), record('2', '"t"', { type: 'TXT' })],
    ['192.0.2.1'],
    { posts: [fields('192.0.2.1')] },
  ],
])('operations: %s', (_, present, values, expected) => {
  const found = toOperations(present, upsert(set('a.z', 'A', ...values)))
  expect(found).toEqual({ deletes: [], patches: [], posts: [], ...expected })
})

test('operations of a delete: every record of the set', () => {
  const present = [record('1', 'a'), record('2', 'b'), record('3', 't', { type: 'TXT' })]
  expect(toOperations(present, remove(set('a.z', 'A')))).toMatchObject({ deletes: [{ id: '1' }, { id: '2' }] })
})

test.each([
  ['an address beside a CNAME', ['CNAME'], [upsert(set('a.z', 'A', '192.0.2.1'))], /CNAME/],
  ['a CNAME beside an address', ['AAAA'], [upsert(set('a.z', 'CNAME', 'x.'))], /CNAME/],
  ['both in one change list', [], [upsert(set('a.z', 'CNAME', 'x.')), upsert(set('a.z', 'A', '192.0.2.1'))], /CNAME/],
  ['a deleted CNAME', ['CNAME'], [remove(set('a.z', 'CNAME')), upsert(set('a.z', 'A', '192.0.2.1'))], undefined],
  [
    'a TXT record beside a CNAME, which Cloudflare checks',
    ['CNAME', 'MX'],
    [upsert(set('a.z', 'TXT', '"t"'))],
    undefined,
  ],
  ['more than a batch', [], [upsert(set('a.z', 'A', '192.0.2.1', '192.0.2.2', '192.0.2.3'))], /more than 2 records/],
  ['exactly a batch', [], [upsert(set('a.z', 'A', '192.0.2.1', '192.0.2.2'))], undefined],
  ['more deletions than a batch', ['TXT', 'TXT', 'TXT'], [remove(set('a.z', 'TXT'))], undefined],
])('the plan for a name: %s', (_, types, changes, fault) => {
  const present = types.map((type, i) => record(String(i), 'x', { type }))
  const plan = planBatch(present, changes, 2)
  expect('fault' in plan ? plan.fault : undefined).toEqual(fault && expect.stringMatching(fault))
})

import { expect, test } from 'vitest'
import { type CloudflareRecord, parseRecord, toRecordSets } from './record.ts'

const record = (id: string, value: string, more: Partial<CloudflareRecord> = {}): CloudflareRecord => ({
  ...{ id, name: 'a.z', type: 'A', ttl: 300, isProxied: false, value },
  ...more,
})

test('records of one name and type are one set; a TTL left to Cloudflare shows as 1', () => {
  const records = [record('1', 'b'), record('2', 'a', { ttl: 1 }), record('3', 'a'), record('4', 'x', { type: 'TXT' })]
  expect(toRecordSets(records)).toEqual([
    { name: 'a.z', type: 'A', ttl: 1, values: ['a', 'b'] },
    { name: 'a.z', type: 'TXT', ttl: 300, values: ['x'] },
  ])
})

test.each([
  [
    { id: '1', name: 'A.z', type: 'A', ttl: 300, proxied: false, content: '192.0.2.1' },
    { id: '1', name: 'a.z', type: 'A', ttl: 300, isProxied: false, value: '192.0.2.1' },
  ],
  [
    { id: '1', name: 'a.z.', type: 'A', ttl: 1, proxied: true, content: '192.0.2.1' },
    { id: '1', name: 'a.z', type: 'A', ttl: 1, isProxied: true, value: '192.0.2.1' },
  ],
  [{ name: 'a.z', type: 'A', ttl: 300, content: '192.0.2.1' }, undefined],
  [{ id: '1', name: '', type: 'A', ttl: 300, content: '192.0.2.1' }, undefined],
  [{ id: '1', name: 'a.z', ttl: 300, content: '192.0.2.1' }, undefined],
  [{ id: '1', name: 'a.z', type: 'A', ttl: '300', content: '192.0.2.1' }, undefined],
])('%j is read as %j', (json, expected) => {
  expect(parseRecord(json)).toEqual(expected)
})

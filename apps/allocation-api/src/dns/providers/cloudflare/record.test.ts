import { expect, test } from 'vitest'
import { type CloudflareRecord, groupRecords, parseRecord, toContent, toPresentation } from './record.ts'

const record = (id: string, value: string, more: Partial<CloudflareRecord> = {}): CloudflareRecord => ({
  ...{ id, name: 'a.z', type: 'A', ttl: 300, isProxied: false, value },
  ...more,
})

test('records of one name and type are one set; an automatic TTL is 1', () => {
  const records = [record('1', 'b'), record('2', 'a', { ttl: 1 }), record('3', 'a'), record('4', 'x', { type: 'TXT' })]
  expect(groupRecords(records)).toEqual([
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
])('%j parses as %j', (json, expected) => {
  expect(parseRecord(json)).toEqual(expected)
})

test.each([
  [{ type: 'A', content: '192.0.2.1' }, '192.0.2.1'],
  [{ type: 'AAAA', content: '2001:DB8:0::1' }, '2001:db8::1'],
  [{ type: 'CNAME', content: 'Web.example' }, 'web.example.'],
  [{ type: 'CNAME', content: 'web.example.' }, 'web.example.'],
  [{ type: 'MX', content: 'mail.example', priority: 10 }, '10 mail.example.'],
  [{ type: 'MX', content: '.', priority: 0 }, '0 .'],
  [{ type: 'TXT', content: 'bare "text" \\ here' }, '"bare \\"text\\" \\\\ here"'],
  [{ type: 'TXT', content: '"one"  "two \\"2\\""' }, '"one" "two \\"2\\""'],
  [{ type: 'TXT', content: 'é' }, '"\\195\\169"'],
  [{ type: 'TXT', content: '"\\195\\169"' }, '"\\195\\169"'],
  [{ type: 'TXT', content: '' }, '""'],
  [{ type: 'TXT', content: 'x'.repeat(300) }, `"${'x'.repeat(255)}" "${'x'.repeat(45)}"`],
  [
    {
      type: 'SRV',
      content: '60 5060 sip.example',
      priority: 10,
      data: { weight: 60, port: 5060, target: 'sip.example' },
    },
    '10 60 5060 sip.example.',
  ],
  [
    { type: 'CAA', content: '0 issue "ca.example"', data: { flags: 0, tag: 'issue', value: 'ca.example' } },
    '0 issue "ca.example"',
  ],
  [{ type: 'TLSA', content: '3 1 1 abcd' }, '3 1 1 abcd'],
])('%j has the value %s', (record, value) => {
  expect(toPresentation(record)).toBe(value)
})

test.each([
  ['A', '192.0.2.1', { content: '192.0.2.1' }],
  ['A', '192.0.2', undefined],
  ['AAAA', '2001:db8::1', { content: '2001:db8::1' }],
  ['AAAA', 'fe80::1%eth0', undefined],
  ['CNAME', 'web.example.', { content: 'web.example' }],
  ['CNAME', 'two words', undefined],
  ['MX', '10 mail.example.', { content: 'mail.example', priority: 10 }],
  ['MX', '65536 mail.example.', undefined],
  ['TXT', '"one" "two"', { content: '"one" "two"' }],
  ['TXT', 'bare', undefined],
  ['SRV', '1 2 3 s.example.', { priority: 1, data: { priority: 1, weight: 2, port: 3, target: 's.example' } }],
  ['SRV', '1 2 s.example.', undefined],
  ['CAA', '0 issue "ca.example"', { data: { flags: 0, tag: 'issue', value: 'ca.example' } }],
  ['CAA', '0 issue', undefined],
  ['TLSA', '3 1 1 abcd', undefined],
])('%s %s is written as %j', (type, value, fields) => {
  expect(toContent(type, value)).toEqual(fields)
})

import { expect, test } from 'vitest'
import { parseRecordData, validateChange } from './rdata.ts'

const octets = (...texts: string[]) => texts.map(text => Buffer.from(text, 'latin1'))

test.each([
  ['A', '192.0.2.1', '192.0.2.1'],
  ['A', '192.0.2', undefined],
  ['A', '192.0.2.256', undefined],
  ['A', ' 192.0.2.1', undefined],
  ['AAAA', '2001:db8::1', '2001:db8::1'],
  ['AAAA', 'fe80::1%eth0', undefined],
  ['AAAA', '192.0.2.1', undefined],
  ['CNAME', 'a.example.', 'a.example.'],
  ['CNAME', 'a..example', undefined],
  ['CNAME', `${'a'.repeat(64)}.example`, undefined],
  ['CNAME', `${'a'.repeat(63)}.`.repeat(4), undefined],
  ['CNAME', '', undefined],
  ['MX', '10 mail.example.', { preference: 10, exchange: 'mail.example.' }],
  ['MX', '65536 mail.example.', undefined],
  ['MX', 'mail.example.', undefined],
  ['TXT', '"one" "two"', octets('one', 'two')],
  ['TXT', '"a \\"b\\" \\\\ \\200"', octets('a "b" \\ \u00c8')],
  ['TXT', '""', octets('')],
  ['TXT', 'bare', undefined],
  ['TXT', '"open', undefined],
  ['TXT', '"\\300"', undefined],
  ['TXT', `"${'x'.repeat(256)}"`, undefined],
  ['SRV', '0 0 53 ns.example.', undefined],
])('%s %s', (type, value, data) => {
  expect(parseRecordData(type, value)).toEqual(data === undefined ? undefined : { type, data })
})

const upsert = (name: string, type: string, ttl: number, ...values: string[]) =>
  ({ kind: 'upsert', set: { name, type, ttl, values } }) as const

test.each([
  [upsert('a.pool.test', 'A', 60, '192.0.2.1'), undefined],
  [upsert('*.a.pool.test', 'A', 0, '192.0.2.1'), undefined],
  [upsert('pool.test', 'A', 60, '192.0.2.1'), undefined],
  [{ kind: 'delete', name: 'a.pool.test', type: 'SRV' } as const, undefined],
  [upsert('a.test', 'A', 60, '192.0.2.1'), /not a name of this zone/],
  [upsert('a b.pool.test', 'A', 60, '192.0.2.1'), /not a name of this zone/],
  [upsert('pool.test', 'NS', 60, 'ns.example.'), /NS and SOA/],
  [upsert('a.pool.test', 'A', -1, '192.0.2.1'), /TTL/],
  [upsert('a.pool.test', 'A', 2 ** 31, '192.0.2.1'), /TTL/],
  [upsert('a.pool.test', 'A', 60), /no value/],
  [upsert('a.pool.test', 'A', 60, '192.0.2.1', 'x'), /cannot serve/],
  [upsert('a.pool.test', 'CNAME', 60, 'a.example', 'b.example'), /one CNAME/],
])('%j is refused as %s', (change, reason) => {
  const refusal = validateChange('pool.test', change)
  if (reason === undefined) expect(refusal).toBeUndefined()
  else expect(refusal).toMatch(reason)
})

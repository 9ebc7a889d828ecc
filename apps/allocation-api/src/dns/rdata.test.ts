import { expect, test } from 'vitest'
import { encodeRecordValue } from './rdata.ts'

test.each([
  ['A', '192.0.2.1', 'c0000201'],
  ['A', '192.0.2', undefined],
  ['A', '192.0.2.256', undefined],
  ['A', ' 192.0.2.1', undefined],
  ['AAAA', '2001:db8::1', '20010db8000000000000000000000001'],
  ['AAAA', 'fe80::1%eth0', undefined],
  ['AAAA', '192.0.2.1', undefined],
  ['CNAME', 'a.example.', '0161076578616d706c6500'],
  ['CNAME', 'a.example', '0161076578616d706c6500'],
  ['CNAME', 'a..example', undefined],
  ['CNAME', `${'a'.repeat(64)}.example`, undefined],
  ['CNAME', `${'a'.repeat(63)}.`.repeat(4), undefined],
  ['CNAME', '', undefined],
  ['MX', '10 mail.example.', '000a046d61696c076578616d706c6500'],
  ['MX', '65536 mail.example.', undefined],
  ['MX', 'mail.example.', undefined],
  ['TXT', '"one" "two"', '036f6e650374776f'],
  ['TXT', '"a \\"b\\" \\\\ \\200"', '096120226222205c20c8'],
  ['TXT', '""', '00'],
  ['TXT', 'bare', undefined],
  ['TXT', '"open', undefined],
  ['TXT', '"\\300"', undefined],
  ['TXT', `"${'x'.repeat(256)}"`, undefined],
  ['SRV', '0 0 53 ns.example.', undefined],
])('%s %s', (type, value, data) => {
  expect(encodeRecordValue(type, value)?.toString('hex')).toBe(data)
})

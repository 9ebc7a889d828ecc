import { expect, test } from 'vitest'
import { encodeRdata, encodeRecordValue, printRdata, toTypeCode } from './rdata.ts'

const normalize = (type: string, value: string): string | undefined => {
  const data = encodeRdata(type, value)
  return data && printRdata(toTypeCode(type) ?? 0, data, 0, data.length)
}

test.each([
  ['A', '192.0.2.1', 'c0000201'],
  ['AAAA', '2001:db8::1', '20010db8000000000000000000000001'],
  ['CNAME', 'A.b.', '0141016200'],
  ['NS', '.', '00'],
  ['MX', '10 m.', '000a016d00'],
  ['TXT', '"a" "\\"\\\\\\200;"', '016104225cc83b'],
  ['TXT', '""', '00'],
  ['SRV', '1 2 443 s.', '0001000201bb017300'],
  ['CAA', '128 issue "ca.test; x=1"', '8005697373756563612e746573743b20783d31'],
  ['NAPTR', '1 2 "S" "" "" n.', '0001000201530000016e00'],
  ['SSHFP', '1 2 ABCD', '0102abcd'],
  ['TYPE65280', '\\# 2 ABCD', 'abcd'],
  ['LOC', '\\# 0', ''],
  ['CNAME', 'a\\.b\\032\\@c.d.', '06612e62204063016400'],
])('%s %s round-trips through the wire format', (type, value, wire) => {
  expect(encodeRdata(type, value)?.toString('hex')).toBe(wire)
  expect(normalize(type, value)).toBe(value)
})

test.each([
  ['AAAA', '2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['AAAA', '::ffff:192.0.2.1', '::ffff:192.0.2.1'],
  ['AAAA', '::', '::'],
  ['AAAA', '1::', '1::'],
  ['TXT', 'plain two', '"plain" "two"'],
  ['MX', '010   m.', '10 m.'],
  ['A', '\\# 4 c0 000201', '192.0.2.1'],
  ['DS', '1 8 2 ab cd', '1 8 2 ABCD'],
])('%s %s is normalized', (type, value, expected) => {
  expect(normalize(type, value)).toBe(expected)
})

test.each([
  ['A', '192.0.2'],
  ['A', '192.0.2.1 192.0.2.2'],
  ['A', ''],
  ['AAAA', 'fe80::1%eth0'],
  ['AAAA', '192.0.2.1'],
  ['CNAME', 'relative'],
  ['CNAME', 'a..'],
  ['CNAME', `${'a'.repeat(64)}.`],
  ['CNAME', `${`${'a'.repeat(63)}.`.repeat(4)}`],
  ['CNAME', 'a\\256.'],
  ['MX', '65536 m.'],
  ['MX', '10'],
  ['SRV', '1 2 s.'],
  ['TXT', '"open'],
  ['TXT', '"ü"'],
  ['TXT', `"${'a'.repeat(256)}"`],
  ['TXT', '"\\256"'],
  ['CAA', '0 is-sue "x"'],
  ['SSHFP', '1 2 ABC'],
  ['TYPE65280', 'ABCD'],
  ['TYPE65280', '\\# 3 ABCD'],
  ['TYPE65536', '\\# 0'],
  ['TSIG', '\\# 0'],
  ['NOSUCH', '1'],
])('%s %s is not a valid value', (type, value) => {
  expect(encodeRdata(type, value)).toBeUndefined()
})

test('compressed names in RDATA are expanded', () => {
  const message = Buffer.from('0161047465737400000a016dc002', 'hex')
  expect(printRdata(15, message, 8, 6)).toBe('10 m.test.')
})

test.each([
  ['is too short', 1, 'c00002'],
  ['is too long', 1, 'c000020101'],
  ['has a string that runs past the end', 16, '0561'],
  ['has a name that points to itself', 5, 'c000'],
  ['has a name that runs past the end', 5, '0361'],
])('RDATA is a format error if it %s', (_, type, data) => {
  const octets = Buffer.from(data, 'hex')
  expect(() => printRdata(type, octets, 0, octets.length)).toThrow()
})

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
  ['SRV', '0 0 53 ns.example.', '000000000035026e73076578616d706c6500'],
  ['SRV', '0 0 ns.example.', undefined],
  ['CAA', '0 issue "x"', '0005697373756578'],
  ['HINFO', 'a b', undefined],
])('%s %s as the local server and Dynadot accept it', (type, value, data) => {
  expect(encodeRecordValue(type, value)?.toString('hex')).toBe(data)
})
